"""A trace as a table for people: who did what, in which order, one record a line.

    at  agent   kind     id  what                detail
     0  ada     call         call_tool           { tooling = "memo", name = "echo", arguments = { n = 1 } }
     1  ada     opened   #1  call_tool
     2  [memo]  state        ready

Details are written as patterns are, so that what is seen can be expected. UUIDs differ from run to run, so
sources are numbered by the order of their opening: runs of the same script give the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, assert_never, cast

from toolpost.expect.pattern import show
from toolpost.model import Json, JsonObject
from toolpost.trace.cells import CUT, columns, fitted, harmless
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, State, TraceEvent

T = TypeVar("T")

WIDTH = 160
"""Columns of a table, where nothing says how many there are."""

_AGENT = 24
"""Columns of an agent's name."""

_ALIGNED = 40
"""With fewer columns left for details, these do not stand below each other, but each right after its name."""

_DEPTH = 100
"""Levels of a value that are shown."""

_UNKNOWN = "#?"
"""A source whose opening the trace does not have."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_LENGTH = 36


class _Row(NamedTuple):
    """The cells of one line."""

    at: str
    agent: str = ""
    kind: str = ""
    id: str = ""
    what: str = ""
    detail: str = ""


_HEADER = _Row("at", "agent", "kind", "id", "what", "detail")
_GAP = _Row(CUT)


def table(
    trace: Sequence[TraceEvent],
    places: Iterable[int] | None = None,
    *,
    width: int = WIDTH,
    shows_gaps: bool = True,
) -> list[str]:
    """The lines of a table, the header first. Costs a glance at each record, and the text of those shown.

    Args:
        trace: The records; all of them, also where few are shown, since they tell each source's number.
        places: Which to show, by their index; what is outside the trace is left out. None is all of them.
        width: Columns that no line exceeds: details are cut to fit.
        shows_gaps: Put a line with `…` where records are left out between two.
    """
    numbers = _numbers(trace)
    chosen: Sequence[int] = range(len(trace))
    if places is not None:
        chosen = sorted({place for place in places if 0 <= place < len(trace)})
    rows = [_HEADER]
    for index, place in enumerate(chosen):
        if shows_gaps and index > 0 and chosen[index - 1] != place - 1:
            rows.append(_GAP)
        rows.append(_row(place, trace[place], numbers, width))
    return list(_aligned(rows, width))


def _numbers(trace: Iterable[TraceEvent]) -> dict[str, str]:
    """What each source is called here."""
    opened = dict.fromkeys(event.id for event in trace if isinstance(event, Opened))
    return {uuid: f"#{number}" for number, uuid in enumerate(opened, start=1)}


def _aligned(rows: Sequence[_Row], width: int) -> Iterator[str]:
    """Each row as a line; all cells but the last are as wide as the widest of their column."""
    *sizes, _, _ = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    sizes.append(max(columns(row.what) for row in rows if row.detail))
    if width - sum(sizes) - 2 * len(sizes) < _ALIGNED:
        sizes[-1] = 0
    for row in rows:
        cells = [_padded(cell, size) for cell, size in zip(row, sizes, strict=False)]
        cells[0] = f"{row.at:>{sizes[0]}}"
        yield fitted("  ".join([*cells, row.detail]).rstrip(), width)


def _padded(cell: str, size: int) -> str:
    return cell + " " * (size - columns(cell))


# -- one record ------------------------------------------------------------------------------------


def _row(place: int, event: TraceEvent, numbers: Mapping[str, str], width: int) -> _Row:
    what, uuid, detail = _told(event)
    number = numbers.get(uuid, _UNKNOWN) if uuid else ""
    if isinstance(event, Call) and number:
        detail = event.detail | {"uuid": number}
    agent = f"[{event.tooling}]" if isinstance(event, State) else event.agent
    return _Row(
        at=str(place),
        agent=fitted(harmless(agent), _AGENT),
        kind=event.kind,
        id=number,
        what=harmless(what),
        # a column may hold two characters: the second is a mark on the first then
        detail=harmless(show(_Beginning(2 * width, numbers).of(detail))) if detail else "",
    )


def _told(event: TraceEvent) -> tuple[str, str, Json]:
    """What happened, to which source if to one, and its details if it has any."""
    match event:
        case Call(op=op, detail=detail):
            uuid = detail.get("uuid")
            return op, uuid if isinstance(uuid, str) else "", detail
        case Opened(id=uuid, source=source):
            return source, uuid, None
        case Closed(id=uuid, reason=reason):
            return reason, uuid, None
        case Inbound(id=uuid, event=name, payload=payload):
            return name, uuid, _essence(name, payload)
        case State(state=state):
            return state, "", None
        case AgentOutcome(outcome=str(outcome)):
            return outcome, "", None
        case AgentOutcome(outcome={**outcome}) if len(outcome) == 1:
            [(how, text)] = outcome.items()
            return how, "", text
        case AgentOutcome(outcome=outcome):
            return "", "", outcome
        case _:
            assert_never(event)


def _essence(event: str, payload: Json) -> Json:
    """A payload with what tells most at its beginning, and without what goes without saying."""
    if not isinstance(payload, dict):
        return payload
    fields = cast("JsonObject", payload)
    first, repeated = _ORDER.get(event, ((), ()))
    if not fields.get("value"):  # a result without text, such as an image
        repeated = [key for key in repeated if key != "content"]
    ordered = [key for key in dict.fromkeys((*first, *fields)) if key in fields and key not in repeated]
    return {key: fields[key] for key in ordered if (key, fields[key]) not in _USUAL}


_ORDER: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    # the arguments stand with the call, and the value is the text of the content
    "tool-result": (("name", "is_error", "value"), ("arguments", "content")),
    "resource-updated": (("uri", "content"), ()),
}
"""Of some events: the keys that come first, and those that only repeat what stands elsewhere."""

_USUAL: Sequence[tuple[str, Json]] = (("is_error", False), ("encoding", "text"))
"""Not worth a word."""


class _Beginning:
    """Cuts a value behind what a line can show of it, so that a long one costs no more than a short one."""

    def __init__(self, room: int, numbers: Mapping[str, str]) -> None:
        self._room = room
        """Characters that are still of use."""
        self._numbers = numbers

    def of(self, value: Json, depth: int = 0) -> Json:
        """The value, with sources by their numbers. What is missing is beyond the room."""
        if depth == _DEPTH:
            return CUT
        if isinstance(value, str):
            return self._text(value)
        self._room -= 1
        if isinstance(value, list):
            return [self.of(each, depth + 1) for each in self._while_room(cast("list[Json]", value))]
        if isinstance(value, dict):
            items = self._while_room(cast("JsonObject", value).items())
            return {self._text(key): self.of(each, depth + 1) for key, each in items}
        return value

    def _while_room(self, items: Iterable[T]) -> Iterator[T]:
        for each in items:
            if self._room <= 0:
                return
            yield each

    def _text(self, text: str) -> str:
        room = max(self._room, 0)
        # more of it is never needed, even where all of it are UUIDs, which become shorter
        kept = _UUID.sub(self._number, text[: room * _UUID_LENGTH])[:room]
        self._room -= 1 + len(kept)
        return kept

    def _number(self, found: re.Match[str]) -> str:
        return self._numbers.get(found[0], found[0])
