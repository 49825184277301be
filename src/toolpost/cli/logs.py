"""The log on standard error: short lines for people on a terminal, JSON lines on a pipe.

One handler on the root logger, with the masking filter on it: so records of loggers that are not ours (the
SDK's, asyncio's, an agent's own) have their secrets masked too.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from toolpost.cli.options import LogLevel
from toolpost.cli.terminal import Talk, printable
from toolpost.errors import ToolpostError
from toolpost.secret import MaskingFilter

_AGENTS = "toolpost.agent"
_STYLES = {logging.DEBUG: "2", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31;1"}
_BY_VERBOSITY = (logging.WARNING, logging.INFO, logging.DEBUG)


def set_up_logging(talk: Talk, *, verbose: int, level: LogLevel | None) -> None:
    """Send every logger's records to standard error.

    Shown are warnings and errors, and from INFO on what agents log themselves; `verbose` shows INFO, then
    DEBUG, and `level` wins over both.
    """
    if level is not None:
        general = agents = logging.getLevelNamesMapping()[level.value.upper()]
    else:
        general = _BY_VERBOSITY[min(verbose, 2)]
        agents = min(general, logging.INFO)
    handler = _Handler(talk)
    handler.addFilter(MaskingFilter())
    handler.setFormatter(_ForPeople(talk, general) if talk.is_terminal else _ForPrograms())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(general)
    logging.getLogger(_AGENTS).setLevel(agents)
    logging.captureWarnings(True)


class _Handler(logging.Handler):
    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._talk = talk

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._talk.say(self.format(record))
        except Exception:
            self.handleError(record)


class _ForPeople(logging.Formatter):
    """`warning: text (logger)`; what an agent logs is `name: text`."""

    def __init__(self, talk: Talk, level: int) -> None:
        super().__init__()
        self._talk = talk
        self._is_verbose = level <= logging.INFO

    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        text = printable(record.getMessage())
        if record.name.startswith(f"{_AGENTS}."):
            name = record.name.removeprefix(f"{_AGENTS}.")
            kind = "" if record.levelno == logging.INFO else f"{self._paint(level, record)}: "
            line = f"{self._talk.paint(name, '36')}: {kind}{text}"
        else:
            where = self._talk.paint(f"({record.name})", "2")
            line = f"{self._paint(level, record)}: {text} {where}"
        return line + self._cause(record)

    def _paint(self, text: str, record: logging.LogRecord) -> str:
        style = _STYLES.get(record.levelno)
        return self._talk.paint(text, style) if style else text

    def _cause(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ToolpostError) and not self._is_verbose:
            # raised on purpose, and its text says all; where it passed through is for those who ask
            return f": {printable(f'{type(error).__name__}: {error}')}"
        text = _exception(self, record)
        return f"\n{printable(text)}" if text else ""


class _ForPrograms(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, `message`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        text = _exception(self, record)
        return json.dumps(fields | ({"exception": text} if text else {}))


def _exception(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback, masked already where the filter found something in it."""
    text = record.exc_text or ""
    if not text and record.exc_info and record.exc_info[0]:
        text = formatter.formatException(record.exc_info)
    return "\n".join(each for each in (text, record.stack_info) if each)
