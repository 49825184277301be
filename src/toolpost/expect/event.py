"""Patterns of the records of a run: `{ kind = "call", op = "call_tool", detail = { name = "echo" } }`.

`kind`, `op`, `event` and `agent` are compared exactly; `detail` and `payload` are patterns of values. The
same patterns say what an assertion wants to see and what a gate of a mock waits for.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from toolpost.expect.explain import Difference, explain
from toolpost.expect.pattern import Path, Pattern, PatternError, Takes, parse, refuse_dollars, take_dollar
from toolpost.expect.sequence import Step
from toolpost.model import Json, JsonObject
from toolpost.trace.events import EVENTS, OPS, Call, Inbound, TraceEvent


@dataclass(frozen=True, slots=True)
class EventPattern:
    """A call that an agent made, or an envelope that it took."""

    kind: Literal["call", "inbound"]
    name: str | None = None
    """The operation of a call, the event of an envelope; None is any."""
    inside: Pattern | None = None
    """What the call's `detail`, or the envelope's `payload`, matches."""
    agent: str | None = None

    def matches(self, record: TraceEvent) -> bool:
        """Whether a record is such an event."""
        match record:
            case Call(agent=agent, op=name, detail=inside) if self.kind == "call":
                pass
            case Inbound(agent=agent, event=name, payload=inside) if self.kind == "inbound":
                pass
            case _:
                return False
        return (
            self.agent in (None, agent)
            and self.name in (None, name)
            and (self.inside is None or self.inside.matches(inside))
        )

    def explain(self, record: TraceEvent) -> Difference | None:
        """The first difference, or None if the record matches."""
        if record.kind != self.kind:
            return Difference(("kind",), repr(self.kind), repr(record.kind), 0)
        name, inside = _parts(record)
        agent = getattr(record, "agent", None)
        if self.agent is not None and agent != self.agent:
            return Difference(("agent",), repr(self.agent), repr(agent), 1)
        if self.name is not None and name != self.name:
            return Difference((_NAME[self.kind],), repr(self.name), repr(name), 1)
        if self.inside is None:
            return None
        miss = explain(self.inside, inside, (_INSIDE[self.kind],))
        if miss is None:
            return None
        return Difference(miss.path, miss.wanted, miss.found, miss.agreed + 2)

    def to_json(self) -> JsonObject:
        """As it is written."""
        keys: JsonObject = {
            "kind": self.kind,
            _NAME[self.kind]: self.name,
            _INSIDE[self.kind]: None if self.inside is None else self.inside.to_json(),
            "agent": self.agent,
        }
        return {key: each for key, each in keys.items() if each is not None}


@dataclass(frozen=True, slots=True)
class EventItem:
    """One item of a list of expected events."""

    pattern: EventPattern
    takes: Takes = "next"

    @property
    def step(self) -> Step[TraceEvent]:
        return Step(self.pattern.matches, repeats=self.takes == "while")

    def to_json(self) -> JsonObject:
        """As it is written."""
        plain = self.pattern.to_json()
        return plain if self.takes == "next" else {f"${self.takes}": plain}


Kind: TypeAlias = Literal["call", "inbound"]
_NAME: dict[Kind, str] = {"call": "op", "inbound": "event"}
_INSIDE: dict[Kind, str] = {"call": "detail", "inbound": "payload"}


def parse_event(source: Json, path: Path = (), *, may_name_agent: bool = False) -> EventPattern:
    """The pattern of a record that a JSON value writes.

    Args:
        source: The value.
        path: Where it stands, for errors.
        may_name_agent: Whether the key `agent` is allowed: a gate sees all agents, an assertion only one.

    Raises:
        PatternError: It is none; says where and what would be.
    """
    if not isinstance(source, dict):
        raise PatternError(path, f'expected a pattern such as {{ kind = "call" }}, found {_named(source)}')
    table = cast("JsonObject", source)
    refuse_dollars(table, path)
    kind = table.get("kind")
    if kind not in ("call", "inbound"):
        found = "no kind" if kind is None else repr(kind)
        raise PatternError((*path, "kind"), f'expected "call" or "inbound", found {found}')
    name, inside = _NAME[kind], _INSIDE[kind]
    known = ("kind", name, inside, *(("agent",) if may_name_agent else ()))
    for key in table:
        if key not in known:
            raise PatternError((*path, key), f"unknown key; known keys: {_nearest(key, known)}")
    return EventPattern(
        kind=kind,
        name=_choice(table.get(name), (*path, name), OPS if kind == "call" else EVENTS),
        inside=parse(table[inside], (*path, inside)) if inside in table else None,
        agent=_text(table.get("agent"), (*path, "agent")),
    )


def parse_events(source: Json, path: Path = ()) -> tuple[EventItem, ...]:
    """A list of expected events."""
    if not isinstance(source, list):
        raise PatternError(path, f"expected a list of patterns, found {_named(source)}")
    items = cast("list[Json]", source)
    return tuple(parse_event_item(each, (*path, index)) for index, each in enumerate(items))


def parse_event_item(source: Json, path: Path = ()) -> EventItem:
    """One item of such a list."""
    takes, plain, inside = take_dollar(source, path)
    return EventItem(parse_event(plain, inside), takes)


def _parts(record: TraceEvent) -> tuple[str, Json]:
    match record:
        case Call(op=name, detail=inside):
            return name, inside
        case Inbound(event=name, payload=inside):
            return name, inside
        case _:
            return "", None


def _choice(value: Json, path: Path, known: Collection[str]) -> str | None:
    text = _text(value, path)
    if text is not None and text not in known:
        raise PatternError(path, f"unknown name {text!r}; known: {_nearest(text, known)}")
    return text


def _text(value: Json, path: Path) -> str | None:
    if value is not None and not isinstance(value, str):
        raise PatternError(path, f"expected a string, found {_named(value)}")
    return value


def _nearest(name: str, known: Collection[str]) -> str:
    similar = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return ", ".join([*similar, *sorted(set(known) - set(similar))])


def _named(value: Json) -> str:
    match value:
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return repr(value)
