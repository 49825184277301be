"""The time that one request may take. Needs no SDK."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any, Self

EXTENDS = 10
"""Progress restarts a request's clock, up to this many times its length in all."""


class Clock:
    """The limit of one request, as a block. Running out of it raises TimeoutError, worded.

    A timer that cancels the task, as `asyncio.timeout` is one, since a scope of anyio's costs several times
    as much. Unlike there, what has come when the time is up still counts, and a restart is only a number.
    """

    def __init__(self, limit: float, started: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._started = self._loop.time() if started is None else started
        self._deadline = self._started + limit
        self._restarted = False
        self._timer: asyncio.Handle | None = None
        self._expired = False

    def restart(self) -> None:
        """Something came, if not the answer."""
        self._restarted = True
        last = self._started + EXTENDS * self._limit
        self._deadline = min(self._loop.time() + self._limit, last)

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        if self._deadline < math.inf:
            self._timer = self._loop.call_at(self._deadline, self._run_out)
        return self

    def _run_out(self) -> None:
        if self._loop.time() < self._deadline:  # it was restarted
            self._timer = self._loop.call_at(self._deadline, self._run_out)
        else:  # a turn later: a task that has its answer leaves before, however long the loop stood still
            self._timer = self._loop.call_soon(self._expire)

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Whoever else cancelled the task at the same time is heard: it is their cancellation then.
        is_ours = self._expired and self._task.uncancel() <= self._cancelling
        if is_ours and isinstance(error, asyncio.CancelledError):
            raise TimeoutError(self._describe()) from None

    def _describe(self) -> str:
        if not self._restarted:
            return f"no answer within {self._limit:g} s"
        passed = self._loop.time() - self._started
        return f"no answer within {passed:.1f} s, in which progress restarted the limit of {self._limit:g} s"
