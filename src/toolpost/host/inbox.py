"""The one bounded queue of an agent, and the sources that fill it.

A source is a queued call or a subscription. Its life:

    open ──(its last envelope enters the inbox)──▶ ended or failed ──(taken)──▶ forgotten
      ├──(shutdown, the agent's end)─────────────▶ cancelled ──(taken)──▶ forgotten
      └──(cancel)────────────────────────────────▶ cancelled: what waited of it is gone

- Only this room moves a source; a source that has ended puts nothing more.
- A call has its place from its opening until its envelope is taken: `calls_bound` counts these.
- Envelopes of subscriptions live within `bound`; `put` waits for room, first come, first served.
- After `put_shutdown` nothing opens and nothing enters; what waits is taken before `Shutdown`.

No step here awaits while it holds something back from others, so everything is done in one turn of the
event loop. Nothing here is safe to call from another thread: that is the bridge's work.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress

import anyio.lowlevel

from toolpost.errors import HostClosed, TooManyOpenCalls
from toolpost.events import Envelope, Event, Shutdown, payload
from toolpost.host.cancelling import Work
from toolpost.trace.events import Closed, Inbound, Opened, Reason, SourceKind
from toolpost.trace.log import Trace


class Source:
    """One queued call or subscription."""

    __slots__ = ("id", "is_call", "kind", "open", "waiting", "work")

    def __init__(self, id: str, kind: SourceKind) -> None:
        self.id = id
        self.kind: SourceKind = kind
        self.open = True
        self.is_call = kind == "call_tool"
        self.work: Work | None = None
        """What is done for this source; it ends with it."""
        self.waiting: deque[int] = deque()
        """Where its envelopes stand in the queue."""


class Inbox:
    """The envelopes that wait for one agent."""

    def __init__(
        self, *, agent: str, bound: int, calls_bound: int, trace: Trace | None, new_id: Callable[[], str]
    ) -> None:
        self._agent = agent
        self._bound = bound
        self._calls_bound = calls_bound
        self._trace = trace
        self._new_id = new_id
        self._sources: dict[str, Source] = {}
        self._queue: OrderedDict[int, tuple[Source | None, Event]] = OrderedDict()
        """By order of arrival; ordered and not a deque, since cancelling takes from its middle."""
        self._returned: deque[Envelope] = deque()
        """Taken, and put back: they come first."""
        self._arrivals = 0
        self._open_calls = 0
        self._filled = 0
        """Room taken by envelopes of subscriptions, or promised to one that waited for it."""
        self._room_waiters: deque[asyncio.Future[None]] = deque()
        self._readers: deque[asyncio.Future[None]] = deque()
        self._shut = False

    # -- sources ---------------------------------------------------------------------------------

    def open_source(self, kind: SourceKind) -> Source:
        """A new source under a new UUID.

        Raises:
            TooManyOpenCalls: Every place for calls is taken.
            HostClosed: Shutdown has begun.
        """
        self.check_can_open(kind)
        source = Source(self._new_id(), kind)
        self._sources[source.id] = source
        self._open_calls += source.is_call
        if self._trace is not None:
            self._trace.append(Opened(agent=self._agent, id=source.id, source=kind))
        return source

    def check_can_open(self, kind: SourceKind) -> None:
        """Raise what `open_source` would raise."""
        if self._shut:
            raise HostClosed(f"the host is shutting down: agent {self._agent!r} can open nothing new")
        if kind == "call_tool" and self._open_calls >= self._calls_bound:
            raise TooManyOpenCalls(
                f"agent {self._agent!r} has {self._open_calls} queued calls (open_calls_bound):"
                " take envelopes from the inbox before queueing more"
            )

    def is_open(self, uuid: str) -> bool:
        """Whether a source of this agent has not come to its end."""
        source = self._sources.get(uuid)
        return source is not None and source.open

    def cancel(self, uuid: str) -> None:
        """End a source: nothing of it is taken any more. Without effect for any other UUID."""
        self._returned = deque(envelope for envelope in self._returned if envelope.id != uuid or not uuid)
        source = self._sources.pop(uuid, None)
        if source is None:
            return
        for place in source.waiting:
            del self._queue[place]
            if not source.is_call:
                self._free_room()
        self._open_calls -= source.is_call
        source.waiting.clear()
        if source.open:
            self._cut_off(source)

    # -- putting ---------------------------------------------------------------------------------

    async def put(self, source: Source, event: Event) -> None:
        """Deliver an event of a subscription, waiting for room where there is none."""
        await self._take_room()
        if not source.open:
            self._free_room()
            return
        self._enqueue(source, event)

    async def put_last(self, source: Source, event: Event, reason: Reason) -> None:
        """Deliver the last event of a subscription and end it."""
        await self.put(source, event)
        if source.open:
            self._end(source, reason)

    def put_outcome(self, call: Source, event: Event, reason: Reason) -> None:
        """Deliver the one event of a call and end it. Its place was kept, so there is always room."""
        if call.open:
            self._enqueue(call, event)
            self._end(call, reason)

    def end(self, source: Source) -> None:
        """End a subscription that has nothing more to say."""
        if source.open:
            self._end(source, "ended")
            self._forget(source)

    def put_shutdown(self) -> None:
        """Cancel what is open and deliver `Shutdown`, the last envelope. Calling it again does nothing.

        What waits already stays and is taken first.
        """
        if not self._shut:
            for source in [source for source in self._sources.values() if source.open]:
                self._open_calls -= source.is_call  # an open call has nothing in the queue
                self._cut_off(source)
                self._forget(source)
            self._shut = True
            self._enqueue(None, Shutdown())

    # -- taking ----------------------------------------------------------------------------------

    def take_nowait(self) -> Envelope | None:
        """The next envelope, or None where none waits.

        Raises:
            HostClosed: `Shutdown` was taken already.
        """
        if self._returned:  # in the trace already
            return self._returned.popleft()
        if not self._queue:
            if self._shut:
                raise HostClosed(f"agent {self._agent!r} has taken Shutdown, the last envelope of its inbox")
            return None
        _, (source, event) = self._queue.popitem(last=False)
        if source is not None:
            source.waiting.popleft()
            if source.is_call:
                self._open_calls -= 1
            else:
                self._free_room()
            self._forget(source)
        elif self._readers:  # nothing follows Shutdown: all who still wait are told
            for _ in range(len(self._readers)):
                self._wake_reader()
        envelope = Envelope("" if source is None else source.id, event)
        if self._trace is not None:
            told = Inbound(agent=self._agent, id=envelope.id, event=event.kind, payload=payload(event))
            self._trace.append(told)
        return envelope

    def put_back(self, envelope: Envelope) -> None:
        """Who took it was interrupted before it had it: it is the next one to be taken."""
        self._returned.appendleft(envelope)
        self._wake_reader()

    async def take(self) -> Envelope:
        """The next envelope, waited for. Being cancelled, it takes none."""
        await anyio.lowlevel.checkpoint()
        while (envelope := self.take_nowait()) is None:
            await self._wait_for_arrival()
        return envelope

    def statistics(self) -> dict[str, int]:
        """How full it is."""
        return {
            "waiting": len(self._queue) + len(self._returned),
            "open_calls": self._open_calls,
            "filled": self._filled,
            "sources": len(self._sources),
        }

    # -- inside ----------------------------------------------------------------------------------

    def _enqueue(self, source: Source | None, event: Event) -> None:
        self._arrivals += 1
        self._queue[self._arrivals] = (source, event)
        if source is not None:
            source.waiting.append(self._arrivals)
        self._wake_reader()

    def _end(self, source: Source, reason: Reason) -> None:
        source.open = False
        if self._trace is not None:
            self._trace.append(Closed(agent=self._agent, id=source.id, reason=reason))

    def _cut_off(self, source: Source) -> None:
        self._end(source, "cancelled")
        if source.work is not None:
            source.work.cancel()

    def _forget(self, source: Source) -> None:
        if not source.open and not source.waiting:
            self._sources.pop(source.id, None)

    async def _wait_for_arrival(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.append(turn)
        try:
            await turn
        except BaseException:
            if turn.cancelled():
                with suppress(ValueError):
                    self._readers.remove(turn)
            elif (
                self._queue or self._returned
            ):  # this reader was called up for an envelope that it will not take
                self._wake_reader()
            raise

    def _wake_reader(self) -> None:
        _call_up_first(self._readers)

    async def _take_room(self) -> None:
        if self._filled < self._bound and not self._room_waiters:
            self._filled += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room_waiters.append(turn)
        try:
            await turn
        except BaseException:
            if not turn.cancelled():  # the room was ours already: hand it on
                self._free_room()
            else:
                with suppress(ValueError):
                    self._room_waiters.remove(turn)
            raise

    def _free_room(self) -> None:
        """Hand the room to the first who waits for it, or free it."""
        if not _call_up_first(self._room_waiters):
            self._filled -= 1


def _call_up_first(waiters: deque[asyncio.Future[None]]) -> bool:
    """Let the first go on who still waits; False if nobody does."""
    while waiters:
        turn = waiters.popleft()
        if not turn.done():  # else it has been cancelled, and not had its turn since
            turn.set_result(None)
            return True
    return False
