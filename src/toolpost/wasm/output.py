"""What a guest prints, as lines of its agent's log."""

from __future__ import annotations

import logging
from types import TracebackType

from toolpost.secret import get_logger

MAX_LINE = 64 * 1024
"""Bytes; what has no end by then is logged in parts."""


class Lines:
    """Both outputs of one guest. What is left without an end is logged when it is over."""

    def __init__(self, agent: str) -> None:
        log = get_logger(f"toolpost.agent.{agent}")
        self.stdout = _Output(log, logging.INFO)
        self.stderr = _Output(log, logging.WARNING)

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stdout.flush()
        self.stderr.flush()


class _Output:
    def __init__(self, log: logging.Logger, level: int) -> None:
        self._log = log
        self._level = level
        self._rest = b""

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._log_line(line)
        if len(self._rest) > MAX_LINE:
            self.flush()

    def flush(self) -> None:
        if self._rest:
            rest, self._rest = self._rest, b""
            self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        self._log.log(self._level, "%s", line.decode(errors="replace").rstrip("\r"))
