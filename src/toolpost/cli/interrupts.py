"""SIGINT and SIGTERM, from the first line of the program to its last.

    plain ──(first signal)──▶ KeyboardInterrupt, which ends the program
    cancelling a task ──(any signal)──▶ the task is cancelled; cleaning up goes on, however many come
    ignoring: the program is at its end

While `toolpost.host.host.run_async` runs agents it has handlers of its own, and puts these back.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

STATUS = 130
"""What a shell reports for a command that Ctrl-C ended; SIGTERM ends one in the same way."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class _State:
    cancel: Callable[[], None] | None = None
    seen: bool = False


_state = _State()  # one for the process, as its signal handlers are


def install() -> None:
    """Handle both from now on, also where SIGINT was ignored: a script can end its background job so."""
    for number in _SIGNALS:
        signal.signal(number, _on_signal)


def ignore() -> None:
    """From now on nothing is interrupted."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def cancelling(cancel: Callable[[], None]) -> Generator[None]:
    """In this block a signal calls `cancel` (once) instead of raising `KeyboardInterrupt`."""
    _state.cancel = cancel
    try:
        yield
    finally:
        _state.cancel = None


def _on_signal(_number: int, _frame: FrameType | None) -> None:
    first, _state.seen = not _state.seen, True
    if not first:
        return
    if _state.cancel is None:
        raise KeyboardInterrupt
    _state.cancel()


def seen() -> bool:
    """Whether one has come."""
    return _state.seen
