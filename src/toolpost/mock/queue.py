"""How far a mock's script came, as the report of a failed test tells it.

    mock 'files': 1 of 3 tool_calls taken
      taken    tool_calls[0]                ada: echo gave "hi"
      next     tool_calls[1]                { name = "add", result = "3" }
      left     tool_calls[2]                { name = "echo", result = "hi" }
      waiting  resource_content_updates[0]  { uri = "mem://notes", content = "v2" }
               after                        { kind = "call", op = "read_resource" }
               nearest                      record 2: op: wanted 'read_resource', found 'list_tools'

It reads the trace and the backend, and changes neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from toolpost.expect.event import EventPattern
from toolpost.expect.explain import nearest
from toolpost.expect.pattern import show
from toolpost.mock.backend import MockBackend
from toolpost.mock.steps import PlacedStep, Step
from toolpost.model import Json, JsonObject
from toolpost.secret import mask, mask_json
from toolpost.trace.events import TraceEvent

MAX_TEXT = 48
"""Characters of one string of a step."""
MAX_LINE = 100
"""Characters of a step, a gate or an explanation."""
MAX_LEFT = 8
"""Steps that are listed as left."""
MAX_TAKEN = 8
"""Calls that are listed: the last ones."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class _Row:
    label: str
    subject: str
    text: str


def describe(backend: MockBackend, trace: Sequence[TraceEvent], name: str) -> list[str]:
    """How far the script of a mock came, in lines of plain text without UUIDs.

    Args:
        backend: The mock, at work or closed.
        trace: The whole trace of the run; the numbers of records are places in it.
        name: The tooling's name.
    """
    held = backend.held
    rows = [
        *_calls(backend, name),
        *_left(backend),
        *(row for placed in held[:MAX_LEFT] for row in _waiting(placed, trace)),
    ]
    if len(held) > MAX_LEFT:
        rows.append(_Row("", f"… and {len(held) - MAX_LEFT} more wait", ""))
    label = max((len(row.label) for row in rows), default=0)
    subject = max((len(row.subject) for row in rows), default=0)
    return [
        f"mock {name!r}: {_taken(backend)}",
        *(f"  {row.label:<{label}}  {row.subject:<{subject}}  {row.text}".rstrip() for row in rows),
    ]


def line(placed: PlacedStep[Step]) -> str:
    """A step and its place, on one line of bounded length, with secrets masked."""
    return f"{placed.place} {_shown(placed.to_json())}"


def _taken(backend: MockBackend) -> str:
    if not backend.total:
        return "it has no tool_calls"
    return f"{backend.taken} of {backend.total} tool_calls taken"


def _calls(backend: MockBackend, name: str) -> Iterator[_Row]:
    """The calls that were made, each with the step that it took and what came of it.

    Not those whose step waits: they are told of with its gate.
    """
    calls, held = backend.calls, {placed.place for placed in backend.held}
    for index in range(max(0, len(calls) - MAX_TAKEN), len(calls)):
        call, place = calls[index], f"tool_calls[{index}]" if index < backend.total else ""
        if place in held:
            continue
        if call.result is not None:
            said = f"gave {show(_cut(mask(call.result.value), MAX_TEXT))}"
        elif call.error is not None:
            said = f"failed: {call.error.removeprefix(f'tooling {name!r}: call_tool {call.name!r}: ')}"
        else:
            said = "was not answered"
        text = _UUID.sub("<uuid>", mask(f"{call.agent}: {call.name} {said}"))
        yield _Row("taken" if place else "beyond", place, _cut(text, MAX_LINE))


def _left(backend: MockBackend) -> Iterator[_Row]:
    """What has not been used, but for the steps that wait: those are told of with their gates."""
    held = {placed.place for placed in backend.held}
    left = [placed for placed in backend.unused if placed.place not in held]
    for index, placed in enumerate(left[:MAX_LEFT]):
        is_next = index == 0 and bool(backend.remaining)
        yield _Row("next" if is_next else "left", placed.place, _shown(placed.to_json()))
    if len(left) > MAX_LEFT:
        yield _Row("", f"… and {len(left) - MAX_LEFT} more", "")


def _waiting(placed: PlacedStep[Step], trace: Sequence[TraceEvent]) -> Iterator[_Row]:
    gate = placed.gate
    assert gate is not None, "without a gate nothing waits"
    step = {key: value for key, value in placed.to_json().items() if key != "after"}
    yield _Row("waiting", placed.place, _shown(step))
    yield _Row("", "after", _shown(gate.to_json()))
    yield _Row("", "nearest", _nearest(gate, trace))


def _nearest(gate: EventPattern, trace: Sequence[TraceEvent]) -> str:
    """The record that came nearest to opening a gate, and why it did not."""
    misses = ((index, gate.explain(record)) for index, record in enumerate(trace))
    near = nearest((index, miss) for index, miss in misses if miss is not None and miss.agreed > 0)
    if near is None:
        return f"none: the trace has no {gate.kind} record"
    return _cut(_UUID.sub("<uuid>", mask(f"record {near[0]}: {near[1]}")), 2 * MAX_LINE)


def _shown(table: JsonObject) -> str:
    return _cut(_UUID.sub("<uuid>", show(_short(mask_json(table)))), MAX_LINE)


def _short(value: Json) -> Json:
    """A value with its long strings cut: so a long text hides no key behind it, and costs nothing to show."""
    match value:
        case str():
            return _cut(value, MAX_TEXT)
        case list():
            return [_short(each) for each in cast("list[Json]", value)]
        case dict():
            return {key: _short(each) for key, each in cast("JsonObject", value).items()}
        case _:
            return value


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
