"""The memory of this process over time."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tests.soak.processes import resident_mib

SAMPLE_SECS = 0.25
WARM_SECS = 60.0
"""From then on memory must keep its level; in a short run, from a third of it on."""
SPAN = 40
"""Samples that make a level: their median."""


class Memory:
    """Samples, from the first to the last."""

    def __init__(self) -> None:
        self._samples: list[float] = []

    @contextmanager
    def sampled(self, progress: Callable[[], None], every: float) -> Generator[None]:
        """Take samples while the block runs, and call `progress` now and then."""
        over = threading.Event()

        def run() -> None:
            told = time.monotonic()
            while not over.wait(SAMPLE_SECS):
                self._samples.append(resident_mib())
                if time.monotonic() - told >= every:
                    told = time.monotonic()
                    progress()

        thread = threading.Thread(target=run, name="memory")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @property
    def latest_mib(self) -> float:
        return self._samples[-1] if self._samples else 0.0

    @property
    def peak_mib(self) -> float:
        return max(self._samples, default=0.0)

    @property
    def warm_mib(self) -> float:
        """Its level once the run was warm."""
        return self._level(self._warm_at())

    @property
    def highest_mib(self) -> float:
        """The highest level after that."""
        return max(map(self._level, range(self._warm_at(), len(self._samples), SPAN)), default=0.0)

    def _warm_at(self) -> int:
        return min(int(WARM_SECS / SAMPLE_SECS), len(self._samples) // 3)

    def _level(self, at: int) -> float:
        return statistics.median(self._samples[at : at + SPAN] or [0.0])
