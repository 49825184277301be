"""A trace that was written down as JSON Lines, read back."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from typing import cast

import msgspec

from toolpost.errors import UsageError
from toolpost.model import Json, JsonObject
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, State, TraceEvent

_KINDS = sorted(each.kind for each in (AgentOutcome, Call, Closed, Inbound, Opened, State))


def read_trace(lines: Iterable[str], label: str) -> list[TraceEvent]:
    """The records that the lines hold, one each; empty lines are skipped.

    Args:
        lines: As `Trace.json_lines()`, `toolpost run --trace` and `toolpost run --json` write them.
        label: What errors call the file.

    Raises:
        UsageError: A line is no record; says which and why.
    """
    records: list[TraceEvent] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            records.append(_record(line))
        except ValueError as error:
            hint = "a trace has one record a line, as `toolpost run --trace FILE` writes it"
            raise UsageError(f"{label}:{number}: {error}\n  ({hint})") from None
    return records


def _record(line: str) -> TraceEvent:
    """One record.

    Raises:
        ValueError: It is none; says why.
    """
    try:
        return _decode(line)
    except (ValueError, RecursionError):  # the slow way tells more, and takes half of a surrogate pair
        return _convert(_parse(line))


_decode = msgspec.json.Decoder[TraceEvent](TraceEvent).decode


def _parse(line: str) -> Json:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is no JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise ValueError("this JSON is nested too deeply") from None


def _convert(record: Json) -> TraceEvent:
    if not isinstance(record, dict):
        raise ValueError("this is no JSON object")
    kind: Json = cast("JsonObject", record).get("kind")
    if kind not in _KINDS:
        raise ValueError(f"no record is of kind {reprlib.repr(kind)}; the kinds are {', '.join(_KINDS)}")
    try:
        return msgspec.convert(record, TraceEvent)
    except ValueError as error:
        raise ValueError(f"this is no record of kind {kind!r}: {error}") from None
