"""The time that a request may take. Needs no SDK."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any, Protocol, Self

EXTENDS = 10
"""Progress restarts a request's clock, up to this many times its length in all."""


class Clock:
    """How much of a limit has passed, by the loop's clock. In seconds, as everything here."""

    __slots__ = ("_restarted", "deadline", "limit", "started")

    def __init__(self, limit: float, started: float | None = None) -> None:
        self.limit = limit
        self.started = asyncio.get_running_loop().time() if started is None else started
        self.deadline = self.started + limit
        self._restarted = False

    def restart(self) -> None:
        """Something came, if not the answer."""
        self._restarted = True
        last = self.started + EXTENDS * self.limit
        self.deadline = min(asyncio.get_running_loop().time() + self.limit, last)

    def describe(self) -> str:
        """What is to be said once it has run out."""
        if not self._restarted:
            return f"no answer within {self.limit:g} s"
        passed = asyncio.get_running_loop().time() - self.started
        return f"no answer within {passed:.1f} s, in which progress restarted the limit of {self.limit:g} s"


class Limit:
    """A clock around a block. Running out of it raises TimeoutError, worded.

    It cancels the task, as `asyncio.timeout` does. Unlike there, what has come when the time is up counts.
    """

    def __init__(self, limit: float) -> None:
        self._clock = Clock(limit)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._expired = False

    def restart(self) -> None:
        """Something came, if not all."""
        self._clock.restart()

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        if self._clock.deadline < math.inf:
            self._timer = self._loop.call_at(self._clock.deadline, self._run_out)
        return self

    def _run_out(self) -> None:
        if self._loop.time() < self._clock.deadline:  # it was restarted
            self._timer = self._loop.call_at(self._clock.deadline, self._run_out)
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
            raise TimeoutError(self._clock.describe()) from None


class Timed(Protocol):
    """What a limit is kept for; see `Limits`."""

    clock: Clock

    def expire(self) -> None:
        """Its time is up."""
        ...


class Limits:
    """Expires what takes too long. What has the usual limit shares one timer: it is due in its order.

    A timer for each would cost more than what it is there for; hardly any ever fires.
    """

    def __init__(self, usual: float) -> None:
        self._usual = usual
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Timed, None] = {}
        """By their deadlines, the first in front."""
        self._last = -math.inf
        """The deadline of the one at the end."""
        self._timer: asyncio.Handle | None = None
        """Set for the first, or for one that was the first: then it comes too early, and is set anew."""
        self._alone: dict[Timed, asyncio.Handle] = {}
        """What has a timer of its own."""

    def start(self, timed: Timed) -> None:
        """Expire it when its clock has run out."""
        deadline = timed.clock.deadline
        if timed.clock.limit == self._usual and self._last <= deadline < math.inf:
            self._waiting[timed] = None
            self._last = deadline
            if self._timer is None:
                self._timer = self._loop.call_at(deadline, self._run_out)
        elif deadline < math.inf:  # also what was begun before, or has had enough restarts
            self._alone[timed] = self._loop.call_at(deadline, self._expire_soon, timed)

    def stop(self, timed: Timed) -> None:
        """It need not be expired any more."""
        if self._waiting.pop(timed, self) is self and (timer := self._alone.pop(timed, None)) is not None:
            timer.cancel()

    def restart(self, timed: Timed) -> None:
        """Something came, if not the answer. Where that came before, its limit has ended."""
        if timed in self._waiting or timed in self._alone:
            self.stop(timed)
            timed.clock.restart()
            self.start(timed)

    def close(self) -> None:
        """Expire nothing any more."""
        for timer in (self._timer, *self._alone.values()):
            if timer is not None:
                timer.cancel()
        self._waiting.clear()
        self._alone.clear()

    def _run_out(self) -> None:
        now = self._loop.time()
        due: list[Timed] = []
        self._timer = None
        for timed in self._waiting:
            if timed.clock.deadline > now:
                self._timer = self._loop.call_at(timed.clock.deadline, self._run_out)
                break
            due.append(timed)
        for timed in due:
            del self._waiting[timed]
            self._expire_soon(timed)

    def _expire_soon(self, timed: Timed) -> None:
        # a turn later: what has come by then counts, however long the loop stood still
        self._alone[timed] = self._loop.call_soon(timed.expire)
