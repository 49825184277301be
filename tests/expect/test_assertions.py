"""What a test expects of an agent, checked against a trace."""

from __future__ import annotations

from typing import Any

import pytest

from toolpost import Tooling
from toolpost.expect.assertions import Expectations, check, parse_expectations
from toolpost.expect.event import parse_event
from toolpost.expect.pattern import PatternError
from toolpost.trace.events import EVENTS, OPS, AgentOutcome, Call, Inbound, State, TraceEvent

TRACE: list[TraceEvent] = [
    Call(agent="ann", op="list_tools", detail={"tooling": "web"}),
    State(tooling="web", state="ready"),
    Call(agent="ann", op="call_tool", detail={"tooling": "web", "name": "add", "arguments": {"a": 1}}),
    Call(agent="bob", op="read_resource", detail={"tooling": "web", "uri": "mem://x"}),
    Inbound(agent="ann", id="1", event="tool-result", payload={"name": "add", "value": "3"}),
    Inbound(agent="ann", id="2", event="resource-list-updated", payload=[{"uri": "a"}, {"uri": "b"}]),
    Inbound(agent="ann", id="3", event="error", payload="tooling 'web': gone"),
    AgentOutcome(agent="ann", outcome="completed"),
]


def expectations(**keys: Any) -> Expectations:
    return parse_expectations("ann", keys)


def unmet(came_to: Any = "completed", /, **keys: Any) -> list[str]:
    return [str(each) for each in check(expectations(**keys), TRACE, came_to)]


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"kind": "call"}],
        [{"kind": "call", "op": "call_tool", "detail": {"arguments": {"a": 1}}}],
        [{"kind": "call", "op": "list_tools"}, {"kind": "inbound", "event": "error", "payload": "gone"}],
        [{"kind": "inbound", "payload": [{"uri": "^b$"}]}],
        [{"$while": {"kind": "call"}}, {"kind": "inbound", "payload": {"value": "3"}}],
        [{"$until": {"kind": "inbound", "event": "error"}}],
    ],
)
def test_events_that_came_in_this_order_are_met(events: list[Any]) -> None:
    assert unmet(events=events) == []


def test_another_agents_events_do_not_count() -> None:
    (text,) = unmet(events=[{"kind": "call", "op": "read_resource"}])

    assert text.startswith('events[0]: nothing matches { kind = "call", op = "read_resource" }')


def test_an_unmet_event_names_what_was_met_before_and_what_came_nearest() -> None:
    (text,) = unmet(
        events=[
            {"kind": "call", "op": "call_tool"},
            {"kind": "inbound", "event": "tool-result", "payload": {"name": "add", "value": "^4$"}},
        ]
    )

    assert text == (
        'events[1]: nothing matches { kind = "inbound", event = "tool-result", payload = '
        '{ name = "add", value = "^4$" } } after trace record 2; '
        'nearest is record 4: payload.value: wanted a text with "^4$", found "3"'
    )


def test_the_wrong_order_is_unmet() -> None:
    assert unmet(events=[{"kind": "inbound"}, {"kind": "call"}]) != []


@pytest.mark.parametrize(
    ("wanted", "outcome"),
    [
        (None, "completed"),
        (None, {"exited": "x"}),
        ("completed", "completed"),
        ("asserted", "asserted"),
        ({"exited": "a.c"}, {"exited": "a.c"}),
        ({"failed": "Val.*x"}, {"failed": "ValueError: x"}),
    ],
)
def test_an_outcome_that_is_wanted(wanted: Any, outcome: Any) -> None:
    assert unmet(outcome, **({} if wanted is None else {"outcome": wanted})) == []


@pytest.mark.parametrize(
    ("wanted", "outcome", "text"),
    [
        (None, {"failed": "x"}, 'outcome: wanted any but a failure, found { failed = "x" }'),
        ("completed", {"exited": "x"}, 'outcome: wanted "completed", found { exited = "x" }'),
        (
            {"exited": "a.c"},
            {"exited": "abc"},
            'outcome: wanted { exited = "a.c" }, found { exited = "abc" }',
        ),
        ({"failed": "y"}, "completed", 'outcome: wanted { failed = "y" }, found "completed"'),
    ],
)
def test_an_outcome_that_is_not_wanted(wanted: Any, outcome: Any, text: str) -> None:
    assert unmet(outcome, **({} if wanted is None else {"outcome": wanted})) == [text]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([], "expected a table with outcome or events"),
        ({"event": []}, "event: unknown key; known keys: outcome, events"),
        ({"outcome": "done"}, 'outcome: expected "completed", "asserted", { exited = "text" } or { failed = "regex" }, found "done"'),  # noqa: E501  one case, one line
        ({"outcome": {"failed": "("}}, "outcome.failed: bad regular expression '(': missing ), unterminated subpattern at position 0"),  # noqa: E501  one case, one line
        ({"events": {}}, "events: expected a list of patterns, found a table"),
        ({"events": ["start"]}, "events[0]: expected a pattern such as { kind = \"call\" }, found 'start'"),
        ({"events": [{"op": "call_tool"}]}, 'events[0].kind: expected "call" or "inbound", found no kind'),
        ({"events": [{"kind": "call", "op": "call_tol"}]}, "events[0].op: unknown name 'call_tol'; known: call_tool, call_tool_blocking, " + ", ".join(sorted(set(OPS) - {"call_tool", "call_tool_blocking"}))),  # noqa: E501  one case, one line
        ({"events": [{"kind": "call", "payload": 1}]}, "events[0].payload: unknown key; known keys: detail, kind, op"),  # noqa: E501  one case, one line
        ({"events": [{"kind": "inbound", "agent": "bob"}]}, "events[0].agent: unknown key; known keys: event, kind, payload"),  # noqa: E501  one case, one line
        ({"events": [{"$until": {"kind": "call", "op": 1}}]}, "events[0].$until.op: expected a string, found 1"),  # noqa: E501  one case, one line
    ],
)  # fmt: skip
def test_a_malformed_table_is_refused_with_its_place(source: Any, problem: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_expectations("ann", source)

    assert str(caught.value) == problem


def test_a_gate_may_name_an_agent() -> None:
    gate = parse_event({"kind": "call", "agent": "bob"}, may_name_agent=True)

    assert [gate.matches(record) for record in TRACE].count(True) == 1


def test_patterns_know_every_operation_of_a_handle_that_is_recorded() -> None:
    operations = {name for name in vars(Tooling) if not name.startswith("_")}

    assert operations - {"kind", "name", "is_open"} == set(OPS)
    assert len(EVENTS) == 5
