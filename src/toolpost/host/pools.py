"""The jobs of every thread pool in this process, whoever has submitted them.

What a pool shows is not all: from Python 3.13 on, a job that was handed to a thread stands in no queue, and
the thread looks idle until it wakes up. So in a `watched` block jobs are noted when they are submitted.
"""

from __future__ import annotations

import concurrent.futures.thread
import functools
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

_module: Any = concurrent.futures.thread  # what it keeps of its threads has no public name
_queues: Any = _module._threads_queues
"""Every thread of a `ThreadPoolExecutor`, weakly, and the queue of its jobs."""


class _Notes:
    """Which jobs are submitted, in this process, while somebody watches."""

    def __init__(self) -> None:
        self.jobs: dict[Future[Any], None] = {}
        """Those that no thread had begun when they were last looked at."""
        self._watchers = 0
        self._ours: Any = None
        self._mutex = threading.Lock()

    @contextmanager
    def watching(self) -> Generator[None]:
        with self._mutex:
            self._watchers += 1
            if self._watchers == 1:
                ThreadPoolExecutor.submit = self._noting(ThreadPoolExecutor.submit)
        try:
            yield
        finally:
            with self._mutex:
                self._watchers -= 1
                if not self._watchers:
                    self._leave()

    def _noting(self, submit: Callable[..., Future[Any]]) -> Any:
        @functools.wraps(submit)
        def noting(pool: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            job = submit(pool, fn, *args, **kwargs)
            if self._watchers:
                self.jobs[job] = None
            return job

        self._ours = noting
        return noting

    def _leave(self) -> None:
        if ThreadPoolExecutor.submit is self._ours:  # else somebody has put another around it
            ThreadPoolExecutor.submit = self._ours.__wrapped__
        self.jobs.clear()


_notes = _Notes()
watched = _notes.watching
"""In a block with this, `job` misses none that is submitted. From any thread."""


def has(thread: threading.Thread) -> bool:
    """Whether it is a pool's."""
    return thread in _queues


def job() -> str | None:
    """Where a job is that has not ended; None where none is."""
    for each in tuple(_notes.jobs):
        if not each.running() and not each.done():
            return "a pool"
        _notes.jobs.pop(each, None)  # what is left of it is seen in its thread
    for key in _queues.keyrefs():
        thread = key()
        if thread is not None and thread.is_alive() and (_queues[thread].qsize() or _is_busy(thread)):
            return f"the pool of {thread.name!r}"
    return None


def _is_busy(thread: threading.Thread) -> bool:
    """Whether a pool's thread is at a job; else it waits for one, in the function of the pool itself."""
    frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]: the documented way
    return frame is not None and frame.f_code is not _module._worker.__code__
