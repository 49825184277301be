"""The end of what nothing inside Python can end: code that lets no other thread run.

A regular expression that explodes, a loop in C: no exception can be raised there, since no other thread gets
a turn. `faulthandler` has one that needs none. It is wound up like a dead man's switch: once a case's time is
up, a thread of Python must go on winding it, or the stacks are written down and the process ends.
"""

from __future__ import annotations

import faulthandler
import threading
import time
from io import FileIO

_WINDING_SECS = 0.5
_PATIENCE_SECS = 60.0
"""So long is it wound at most: the watchdog of a case is done after 37 s, if nothing has hurt that too."""
LONGEST_SECS = 1e8
"""Three years: what `faulthandler` can count to, and more than anybody waits."""


class HardLimit:
    """Around one case."""

    def __init__(self, seconds: float, *, silence_secs: float, file: FileIO) -> None:
        """End the process with status 1 where it is silent once its time is up.

        Args:
            seconds: The time.
            silence_secs: So long may no thread get a turn then.
            file: Where the stacks go.
        """
        self._seconds = min(seconds, LONGEST_SECS)
        self._silence = silence_secs
        self._file = file
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._wind, name="toolpost limit", daemon=True)

    def __enter__(self) -> None:
        self._set(self._seconds + self._silence)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()  # so that nobody winds it up after the next line
        faulthandler.cancel_dump_traceback_later()

    def _wind(self) -> None:
        if self._is_over.wait(self._seconds):
            return
        deadline = time.monotonic() + _PATIENCE_SECS
        while time.monotonic() < deadline:
            self._set(self._silence)
            if self._is_over.wait(min(_WINDING_SECS, self._silence / 4)):
                return

    def _set(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._file)
