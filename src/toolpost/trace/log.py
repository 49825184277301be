"""The trace: an append-only record of a run.

The main line writes to it and never reads it; gates, assertions and people read. Secrets are masked when
a record is written, so nothing that reads a trace can give one away. It is kept whole in memory, and a
reader goes through it by index: however slow it is, it misses nothing and delays nobody.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import overload

import anyio
import msgspec

from toolpost.secret import get_logger, has_secrets, mask_json
from toolpost.trace.events import AgentOutcome, Call, Inbound, State, TraceEvent

Tap = Callable[[TraceEvent], None]
"""Called with each record as it is written. One that raises is detached and logged."""

_log = get_logger("toolpost.trace")


class Trace(Sequence[TraceEvent]):
    """The records of one run, oldest first.

    for event in host.trace: ...
    async for event in host.trace.follow(): ...
    """

    def __init__(self) -> None:
        self._events: list[TraceEvent] = []
        self._taps: list[Tap] = []
        self._followers: list[anyio.Event] = []
        """Set and forgotten with the next record."""
        self._ended = False

    def append(self, event: TraceEvent) -> None:
        """Write a record and tell those who wait for it."""
        if has_secrets():
            event = _masked(event)
        self._events.append(event)
        if self._taps:
            for tap in tuple(self._taps):
                self._tell(tap, event)
        if self._followers:
            self._wake_followers()

    def end(self) -> None:
        """The run is over: readers that follow come to their end."""
        self._ended = True
        self._wake_followers()

    def tap(self, tap: Tap) -> Callable[[], None]:
        """Call `tap` with every record from now on; the function that is returned detaches it."""
        self._taps.append(tap)
        return lambda: self._taps.remove(tap) if tap in self._taps else None

    async def follow(self, start: int = 0) -> AsyncIterator[TraceEvent]:
        """Every record from index `start` on, those to come included, until the run ends."""
        position = start
        while True:
            while position < len(self._events):
                yield self._events[position]
                position += 1
            if self._ended:
                return
            grown = anyio.Event()
            self._followers.append(grown)
            await grown.wait()

    def json_lines(self) -> Iterator[str]:
        """Each record as one line of JSON, without the line's end."""
        for event in self._events:
            yield to_json_line(event)

    @overload
    def __getitem__(self, index: int) -> TraceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceEvent]: ...
    def __getitem__(self, index: int | slice) -> TraceEvent | list[TraceEvent]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<Trace of {len(self._events)} events>"

    def _wake_followers(self) -> None:
        for grown in self._followers:
            grown.set()
        self._followers.clear()

    def _tell(self, tap: Tap, event: TraceEvent) -> None:
        try:
            tap(event)
        except Exception:
            if tap in self._taps:  # it may have detached itself
                self._taps.remove(tap)
            _log.exception("a tap on the trace raised, and is detached")


def to_json_line(event: TraceEvent) -> str:
    """A record as one line of JSON."""
    try:
        return msgspec.json.encode(event).decode()
    except UnicodeEncodeError:  # a lone surrogate, which msgspec refuses and JSON's escapes can carry
        return json.dumps(msgspec.to_builtins(event))


def _masked(event: TraceEvent) -> TraceEvent:
    match event:
        case Call(detail=detail) if (masked := mask_json(detail)) is not detail:
            return msgspec.structs.replace(event, detail=masked)
        case Inbound(payload=payload) if (masked := mask_json(payload)) is not payload:
            return msgspec.structs.replace(event, payload=masked)
        case State(state=state) if (masked := mask_json(state)) is not state:
            return msgspec.structs.replace(event, state=masked)
        case AgentOutcome(outcome=outcome) if (masked := mask_json(outcome)) is not outcome:
            return msgspec.structs.replace(event, outcome=masked)
        case _:
            return event
