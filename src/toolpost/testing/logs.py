"""The log of a case: lines among what its agents print."""

from __future__ import annotations

import logging
import sys

from toolpost.secret import MaskingFilter

_AGENTS = "toolpost.agent"


def set_up_logging(level: int, *, agents: int) -> None:
    """Send every logger's records to what is standard error at that time.

    Args:
        level: From which on they are shown.
        agents: The same for what agents log themselves.
    """
    handler = _Handler()
    handler.addFilter(MaskingFilter())
    handler.setFormatter(_Formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger(_AGENTS).setLevel(agents)
    logging.captureWarnings(True)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except Exception:
            self.handleError(record)


class _Formatter(logging.Formatter):
    """`warning: text (logger)`; what an agent logs is `name: text`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the standard library's name)
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        if record.name.startswith(f"{_AGENTS}."):
            return f"{record.name.removeprefix(f'{_AGENTS}.')}: {level}{record.message}"
        return f"{record.levelname.lower()}: {record.message} ({record.name})"
