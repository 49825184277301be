"""Patterns of the records of a run, written as calls.

What they give is what a test file writes, so a plain dict does as well wherever a pattern is wanted.
"""

from __future__ import annotations

from toolpost.expect.event import EventPattern, parse_event
from toolpost.expect.pattern import Path
from toolpost.model import Json, JsonObject


def call(op: str | None = None, /, *, agent: str | None = None, **detail: Json) -> JsonObject:
    """A call that an agent made: `call("call_tool", name="^add$", arguments={"n": 1})`.

    Args:
        op: The operation, such as `call_tool`; None is any.
        agent: Who made it; None is anybody.
        detail: What the call was about: `tooling`, and of `name`, `arguments`, `uri`, `uuid` what applies.
            A string is a regular expression, found anywhere in the value.

    Raises:
        UsageError: There is no such operation, or a regular expression is bad; says where.
    """
    return _written({"kind": "call", "op": op, "detail": detail or None, "agent": agent})


def inbound(event: str | None = None, /, payload: Json = None, *, agent: str | None = None) -> JsonObject:
    """An envelope that an agent took: `inbound("tool-result", {"value": "done"})`.

    Args:
        event: The event's kind, such as `tool-result`; None is any.
        payload: What the event holds. A string is a regular expression, found anywhere in the value.
        agent: Who took it; None is anybody.

    Raises:
        UsageError: There is no such event, or a regular expression is bad; says where.
    """
    return _written({"kind": "inbound", "event": event, "payload": payload, "agent": agent})


def _written(table: JsonObject) -> JsonObject:
    return pattern_of({key: each for key, each in table.items() if each is not None}).to_json()


def pattern_of(source: Json, path: Path = ()) -> EventPattern:
    """The pattern that a dict writes. It may name an agent: a test of several sees them all.

    Raises:
        UsageError: It writes none; says where.
    """
    return parse_event(source, path, may_name_agent=True)
