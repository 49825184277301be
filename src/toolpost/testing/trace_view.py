"""A trace as a test looks at it: the records of one sort, and whether it shows what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import cast, overload

from toolpost.errors import UsageError
from toolpost.expect.assertions import UnmetEvent, first_unmet_event
from toolpost.expect.event import EventItem
from toolpost.expect.pattern import take_dollar
from toolpost.model import Json, JsonObject
from toolpost.testing.excerpt import around, lines_of, places_of
from toolpost.testing.patterns import call, inbound, pattern_of
from toolpost.trace.events import Call, Inbound, TraceEvent
from toolpost.trace.log import Trace


class TraceView(Sequence[TraceEvent]):
    """The trace of the latest host of a test, also while it runs: its records, oldest first."""

    def __init__(self, find: Callable[[], Trace | None]) -> None:
        self._find = find

    def calls(self, op: str | None = None, /, *, agent: str | None = None, **detail: Json) -> list[Call]:
        """The calls that agents made. Takes what `toolpost.testing.call` takes.

        Raises:
            UsageError: There is no such operation, a pattern is bad, or no host has run.
        """
        return cast("list[Call]", self._matching(call(op, agent=agent, **detail)))

    def inbound(
        self, event: str | None = None, /, payload: Json = None, *, agent: str | None = None
    ) -> list[Inbound]:
        """The envelopes that agents took. Takes what `toolpost.testing.inbound` takes.

        Raises:
            UsageError: There is no such event, a pattern is bad, or no host has run.
        """
        return cast("list[Inbound]", self._matching(inbound(event, payload, agent=agent)))

    def expect(self, events: Sequence[JsonObject], *, agent: str | None = None) -> None:
        """Hold the trace to show these events, in this order; others may stand between them.

        Args:
            events: Each is `call(…)`, `inbound(…)` or a dict like them; or `{"$while": …}`, a run of
                matches, possibly none, or `{"$until": …}`, which skips to the first match.
            agent: Whose; None is everybody's.

        Raises:
            AssertionError: They did not come; tells the first that is missing, what came nearest, and the
                trace around it.
            UsageError: A pattern is bad, or no host has run.
        """
        __tracebackhide__ = True  # what failed is the test's line
        wanted = [_item(each, place) for place, each in enumerate(events)]
        trace = self._trace
        own = [(place, record) for place, record in enumerate(trace) if _concerns(record, agent)]
        unmet = first_unmet_event(wanted, own)
        if unmet is not None:
            raise AssertionError("\n".join(_told(unmet, len(wanted), trace)))

    @overload
    def __getitem__(self, index: int) -> TraceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceEvent]: ...
    def __getitem__(self, index: int | slice) -> TraceEvent | list[TraceEvent]:
        return self._trace[index]

    def __len__(self) -> int:
        return len(self._trace)

    def __repr__(self) -> str:
        trace = self._find()
        return f"<TraceView of {'no host yet' if trace is None else f'{len(trace)} records'}>"

    @property
    def _trace(self) -> Trace:
        trace = self._find()
        if trace is None:
            raise UsageError("there is no trace yet: no host of this test has run or was opened")
        return trace

    def _matching(self, source: JsonObject) -> list[TraceEvent]:
        pattern = pattern_of(source)
        return [record for record in self._trace if pattern.matches(record)]


def _item(source: Json, place: int) -> EventItem:
    takes, plain, inside = take_dollar(source, ("events", place))
    return EventItem(pattern_of(plain, inside), takes)


def _concerns(record: TraceEvent, agent: str | None) -> bool:
    return isinstance(record, Call | Inbound) and agent in (None, record.agent)


def _told(unmet: UnmetEvent, count: int, trace: Trace) -> Iterator[str]:
    yield f"the trace does not show events[{unmet.index}] of {count}"
    yield from lines_of(unmet)
    yield from around(trace, places_of(unmet))
