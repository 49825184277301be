"""One thread that looks after all guests of the process: none computes for longer than it may."""

from __future__ import annotations

import threading
import time
from typing import Protocol

TICK_SECS = 0.05


class Watched(Protocol):
    """A guest that runs."""

    def check(self, now: float) -> None:
        """Interrupt it, if it is time. `now` is of `time.monotonic`."""
        ...


class Watch:
    """The thread runs while there is a guest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guests: set[Watched] = set()
        self._thread: threading.Thread | None = None

    def add(self, guest: Watched) -> None:
        """From now on it is looked after."""
        with self._lock:
            self._guests.add(guest)
            if self._thread is None or not self._thread.is_alive():
                # named as ours: a simulated run does not wait for it
                self._thread = threading.Thread(target=self._look, name="toolpost guests", daemon=True)
                self._thread.start()

    def remove(self, guest: Watched) -> None:
        """It has ended."""
        with self._lock:
            self._guests.discard(guest)

    def _look(self) -> None:
        while True:
            time.sleep(TICK_SECS)
            with self._lock:
                if not self._guests:
                    self._thread = None
                    return
                guests = tuple(self._guests)
            now = time.monotonic()
            for each in guests:
                each.check(now)


WATCH = Watch()
