"""In which order a simulated run does what is ready at one instant: by coming, or by chance."""

from __future__ import annotations

import asyncio
import heapq
import random
from asyncio import events
from collections import deque
from contextvars import ContextVar
from typing import Any, cast

YIELDING = 0.1
"""How likely an actor lets all others go first after one of its callbacks."""

ACTOR: ContextVar[tuple[str, ...]] = ContextVar("toolpost actor", default=())
"""Whose doing the current callback is: an agent's name, and behind it the pump's number; () is the house."""


class Timer(events.TimerHandle):
    """A timer that knows which of those at the same instant comes first."""

    rank: float

    def __lt__(self, other: Any) -> bool:
        return (self.when(), self.rank) < (other.when(), other.rank)


class Queued(deque[asyncio.Handle]):
    """The callbacks that are ready: first come, first served."""

    def first(self) -> asyncio.Handle:
        """The one that is next."""
        return self[0]

    def begin_instant(self) -> None:
        """Time has passed, which changes nothing here."""


class Shuffled:
    """The callbacks that are ready: each actor's in order, and by chance whose is next.

    Each actor draws a priority for an instant, and the first in order goes on while it has something ready.
    So one that needs many callbacks to its next call comes first as often as one that needs few, which a
    choice for each callback would not give. Now and then one goes behind all others, so that none, going on
    for ever, can keep them waiting: a cancellation is delivered again and again until it is heeded.
    """

    def __init__(self, chance: random.Random) -> None:
        self._random = chance
        self._queues: dict[tuple[str, ...], deque[asyncio.Handle]] = {}
        self._order: list[tuple[float, tuple[str, ...]]] = []
        """A heap of those that have something ready, by their priorities."""
        self._came: deque[asyncio.Handle] = deque()
        """What other threads may have put there; only the loop's own sorts it into the queues."""
        self._priorities: dict[tuple[str, ...], float] = {}
        self._last = 1
        """No priority is behind it; those that are drawn are below 1."""
        self._size = 0

    def append(self, handle: asyncio.Handle) -> None:
        self._came.append(handle)

    def first(self) -> asyncio.Handle:
        """The one that is next."""
        self._sort_in_all()
        return self._queues[self._order[0][1]][0]

    def popleft(self) -> asyncio.Handle:
        self._sort_in_all()
        _, actor = heapq.heappop(self._order)
        queue = self._queues[actor]
        handle = queue.popleft()
        self._size -= 1
        if self._random.random() < YIELDING:
            self._last += 1
            self._priorities[actor] = self._last
        if queue:
            heapq.heappush(self._order, (self._priorities[actor], actor))
        else:
            del self._queues[actor]
        return handle

    def _sort_in_all(self) -> None:
        while self._came:
            handle = self._came.popleft()
            actor = cast("Any", handle)._context.get(ACTOR, ())
            queue = self._queues.get(actor)
            if queue is None:
                queue = self._queues[actor] = deque()
                if actor not in self._priorities:
                    self._priorities[actor] = self._random.random()
                heapq.heappush(self._order, (self._priorities[actor], actor))
            queue.append(handle)
            self._size += 1

    def begin_instant(self) -> None:
        """Time has passed: priorities are drawn anew."""
        self._priorities.clear()
        self._last = 1

    def clear(self) -> None:
        self._came.clear()
        self._queues.clear()
        self._order.clear()
        self._size = 0

    def __len__(self) -> int:
        return self._size + len(self._came)
