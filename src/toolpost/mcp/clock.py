"""The time that a request may take. Needs no SDK."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

EXTENDS = 10
"""Progress restarts a request's clock, up to this many times its length in all."""


class Clock:
    """The limit of one request: calls `expire` when it has run out, once.

    A timer, since a scope of anyio's costs several times as much. A restart is only a number.
    """

    __slots__ = ("_deadline", "_expire", "_limit", "_loop", "_restarted", "_started", "_timer")

    def __init__(self, limit: float, expire: Callable[[], object], started: float | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._expire = expire
        self._started = self._loop.time() if started is None else started
        self._deadline = self._started + limit
        self._restarted = False
        self._timer: asyncio.Handle | None = None

    def start(self) -> None:
        """From here on it may expire; its time has counted since it was made."""
        if self._deadline < math.inf:
            self._timer = self._loop.call_at(self._deadline, self._run_out)

    def stop(self) -> None:
        """From here on it does not expire."""
        if self._timer is not None:
            self._timer.cancel()

    def restart(self) -> None:
        """Something came, if not the answer."""
        self._restarted = True
        last = self._started + EXTENDS * self._limit
        self._deadline = min(self._loop.time() + self._limit, last)

    def describe(self) -> str:
        """What is to be said once it has expired."""
        if not self._restarted:
            return f"no answer within {self._limit:g} s"
        passed = self._loop.time() - self._started
        return f"no answer within {passed:.1f} s, in which progress restarted the limit of {self._limit:g} s"

    def _run_out(self) -> None:
        if self._loop.time() < self._deadline:  # it was restarted
            self._timer = self._loop.call_at(self._deadline, self._run_out)
        else:  # a turn later: what has come by then counts, however long the loop stood still
            self._timer = self._loop.call_soon(self._expire)


class Limit:
    """A clock around a block. Running out of it raises TimeoutError, worded.

    It cancels the task, as `asyncio.timeout` does. Unlike there, what has come when the time is up counts.
    """

    def __init__(self, limit: float) -> None:
        self._clock = Clock(limit, self._expire)
        self._expired = False

    def restart(self) -> None:
        """Something came, if not all."""
        self._clock.restart()

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        self._clock.start()
        return self

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clock.stop()
        # Whoever else cancelled the task at the same time is heard: it is their cancellation then.
        is_ours = self._expired and self._task.uncancel() <= self._cancelling
        if is_ours and isinstance(error, asyncio.CancelledError):
            raise TimeoutError(self._clock.describe()) from None
