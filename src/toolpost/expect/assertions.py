"""What a test expects of one agent: its outcome, and the events that its trace must show in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from toolpost.expect.event import EventItem, parse_events
from toolpost.expect.explain import Difference, nearest
from toolpost.expect.pattern import Path, PatternError, compile_regex, show
from toolpost.expect.sequence import Cursor
from toolpost.model import Json, JsonObject
from toolpost.trace.events import Call, Inbound, TraceEvent

_KEYS = ("outcome", "events")


@dataclass(frozen=True, slots=True)
class WantedOutcome:
    """The outcome that an agent must come to."""

    kind: Literal["completed", "exited", "failed", "asserted"]
    text: str | None = None
    """What `exited` must equal; the regular expression that is found in what `failed` says."""

    def accepts(self, outcome: Json) -> bool:
        """Whether an outcome, as the trace writes it, is the wanted one."""
        match self.kind:
            case "completed" | "asserted":
                return outcome == self.kind
            case "exited":
                return outcome == {"exited": self.text}
            case "failed":
                said = cast("JsonObject", outcome).get("failed") if isinstance(outcome, dict) else None
                return isinstance(said, str) and re.search(self.text or "", said) is not None

    def to_json(self) -> Json:
        """As it is written."""
        return self.kind if self.text is None else {self.kind: self.text}


@dataclass(frozen=True, slots=True)
class Expectations:
    """`[assertions.<agent>]`."""

    agent: str
    outcome: WantedOutcome | None = None
    events: tuple[EventItem, ...] = ()

    def concerns(self, record: TraceEvent) -> bool:
        """Whether a record is one that `events` speaks of: a call or an envelope of this agent."""
        return isinstance(record, Call | Inbound) and record.agent == self.agent

    def follow(self) -> Cursor[TraceEvent]:
        """A cursor that goes along with the agent's records as they are written."""
        return Cursor([item.step for item in self.events])


@dataclass(frozen=True, slots=True)
class UnmetOutcome:
    """The agent came to another outcome."""

    wanted: WantedOutcome | None
    """None where nothing was said: an agent that fails then fails the case."""
    found: Json

    def __str__(self) -> str:
        wanted = "any but a failure" if self.wanted is None else show(self.wanted.to_json())
        return f"outcome: wanted {wanted}, found {show(self.found)}"


@dataclass(frozen=True, slots=True)
class UnmetEvent:
    """An expected event did not come, or not in this order."""

    index: int
    """Which item of the list."""
    item: EventItem
    after: int | None
    """The index, in the trace, of the record that met the item before; None if there is none."""
    near: tuple[int, Difference] | None
    """The record behind that one which came nearest, and why it misses."""

    def __str__(self) -> str:
        text = f"events[{self.index}]: nothing matches {show(self.item.to_json())}"
        if self.after is not None:
            text += f" after trace record {self.after}"
        return text if self.near is None else f"{text}; nearest is record {self.near[0]}: {self.near[1]}"


Unmet: TypeAlias = UnmetOutcome | UnmetEvent


def parse_expectations(agent: str, source: Json, path: Path = ()) -> Expectations:
    """The table `[assertions.<agent>]`.

    Raises:
        PatternError: It is malformed; says where.
    """
    if not isinstance(source, dict):
        raise PatternError(path, "expected a table with outcome or events")
    table = cast("JsonObject", source)
    for key in table:
        if key not in _KEYS:
            raise PatternError((*path, key), f"unknown key; known keys: {', '.join(_KEYS)}")
    outcome = table.get("outcome")
    return Expectations(
        agent,
        None if outcome is None else parse_outcome(outcome, (*path, "outcome")),
        parse_events(table.get("events", []), (*path, "events")),
    )


def check(expected: Expectations, trace: Sequence[TraceEvent], outcome: Json) -> list[Unmet]:
    """What of the expectations a run did not meet.

    Args:
        expected: What is expected of the agent.
        trace: The whole trace, of all agents; indices of the answer are places in it.
        outcome: The agent's, as the trace writes it.
    """
    unmet: list[Unmet] = []
    if not _accepts(expected.outcome, outcome):
        unmet.append(UnmetOutcome(expected.outcome, outcome))
    if (event := _unmet_event(expected, trace)) is not None:
        unmet.append(event)
    return unmet


def _accepts(wanted: WantedOutcome | None, outcome: Json) -> bool:
    if wanted is None:
        return not (isinstance(outcome, dict) and "failed" in outcome)
    return wanted.accepts(outcome)


def _unmet_event(expected: Expectations, trace: Sequence[TraceEvent]) -> UnmetEvent | None:
    own = [(place, record) for place, record in enumerate(trace) if expected.concerns(record)]
    return first_unmet_event(expected.events, own)


def first_unmet_event(
    events: Sequence[EventItem], records: Sequence[tuple[int, TraceEvent]]
) -> UnmetEvent | None:
    """The first of the expected events that these records, each with its place in the trace, do not show."""
    cursor, after = Cursor([item.step for item in events]), None
    for place, record in records:
        if cursor.take(record):
            after = place
    if (index := cursor.unmet) is None:
        return None
    item = events[index]
    behind = ((place, record) for place, record in records if after is None or place > after)
    misses = ((place, item.pattern.explain(record)) for place, record in behind)
    near = nearest((place, miss) for place, miss in misses if miss is not None and miss.agreed > 0)
    return UnmetEvent(index, item, after, near)


def parse_outcome(source: Json, path: Path = ()) -> WantedOutcome:
    """The outcome that `outcome` writes.

    Raises:
        PatternError: It writes none; says what would.
    """
    match source:
        case "completed" | "asserted":
            return WantedOutcome(source)
        case {"exited": str() as text} if len(cast("JsonObject", source)) == 1:
            return WantedOutcome("exited", text)
        case {"failed": str() as text} if len(cast("JsonObject", source)) == 1:
            compile_regex(text, (*path, "failed"))
            return WantedOutcome("failed", text)
        case _:
            wanted = '"completed", "asserted", { exited = "text" } or { failed = "regex" }'
            raise PatternError(path, f"expected {wanted}, found {show(source)}")
