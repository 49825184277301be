"""What is told of an event that was expected and did not come: what was near, and the trace around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolpost.expect.assertions import UnmetEvent
from toolpost.expect.pattern import show
from toolpost.trace.events import TraceEvent
from toolpost.trace.table import table

AROUND = 5
"""Records that are shown before and after one that a failure names."""
LAST = 12
"""Records at the end of the trace that are shown in any case."""


def lines_of(unmet: UnmetEvent) -> Iterator[str]:
    """The event that was wanted, and the record that came nearest."""
    yield f"  wanted   {show(unmet.item.to_json())}"
    if unmet.after is not None:
        yield f"  after    record {unmet.after}"
    none = f"none: no {unmet.item.pattern.kind} record of the agent comes then"
    yield f"  nearest  {none if unmet.near is None else f'record {unmet.near[0]}: {unmet.near[1]}'}"


def places_of(unmet: UnmetEvent) -> tuple[int, ...]:
    """The records that those lines name."""
    near = None if unmet.near is None else unmet.near[0]
    return tuple(place for place in (unmet.after, near) if place is not None)


def around(trace: Sequence[TraceEvent], places: Iterable[int]) -> Iterator[str]:
    """The trace about these records, and its end."""
    if not trace:
        yield "the trace is empty"
        return
    shown = set(range(len(trace) - LAST, len(trace)))
    for place in places:
        shown.update(range(place - AROUND, place + AROUND + 1))
    yield "trace"
    for each in table(trace, shown):
        yield f"  {each}"
