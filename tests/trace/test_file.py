"""A written trace, read back; and what is told of a file that is none."""

from __future__ import annotations

import pytest

from toolpost.errors import UsageError
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, State, TraceEvent
from toolpost.trace.file import read_trace
from toolpost.trace.log import to_json_line

EVENTS: list[TraceEvent] = [
    State(tooling="memo", state="ready"),
    Call(agent="ada", op="call_tool", detail={"tooling": "memo", "name": "echo", "arguments": {"n": [1.5]}}),
    Opened(agent="ada", id="id1", source="call_tool"),
    Closed(agent="ada", id="id1", reason="ended"),
    Inbound(agent="ada", id="id1", event="error", payload="ü, \u2028, \n and half of a pair: \ud83d"),
    AgentOutcome(agent="ada", outcome={"exited": "text"}),
]


def test_what_was_written_is_read() -> None:
    lines = [to_json_line(event) for event in EVENTS]

    assert read_trace(lines, "run.jsonl") == EVENTS
    assert read_trace((f"{line}\r\n" for line in lines), "run.jsonl") == EVENTS


def test_empty_lines_are_skipped_and_counted() -> None:
    lines = ["\n", to_json_line(EVENTS[0]), "", " \n", "{\n"]

    assert read_trace(lines[:-1], "run.jsonl") == EVENTS[:1]
    with pytest.raises(UsageError, match=r"^run\.jsonl:5: "):
        read_trace(lines, "run.jsonl")


def test_keys_of_a_later_version_are_passed_over() -> None:
    line = '{"kind":"state","tooling":"memo","state":"ready","since":3}'

    assert read_trace([line], "run.jsonl") == EVENTS[:1]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("[tooling.memo]", "this is no JSON: Expecting value (column 2)"),
        ('{"kind":"state","tooling":"me', "this is no JSON: Unterminated string starting at (column 27)"),
        ("[1, 2]", "this is no JSON object"),
        (
            '{"agent":"ada"}',
            "no record is of kind None; the kinds are call, closed, inbound, opened, outcome,",
        ),
        ('{"kind":["x"]}', "no record is of kind ['x']; the kinds are"),
        (
            '{"kind":"state","state":"ready"}',
            "this is no record of kind 'state': Object missing required field `tooling`",
        ),
        (
            '{"kind":"closed","agent":"ada","id":"1","reason":"bored"}',
            "this is no record of kind 'closed': Invalid enum value 'bored' - at `$.reason`",
        ),
        ("[" * 100_000, "this JSON is nested too deeply"),
        ("1" * 5000, "Exceeds the limit"),
    ],
    ids=[
        "TOML",
        "cut off",
        "a list",
        "no kind",
        "an odd kind",
        "a key missing",
        "an odd value",
        "deep",
        "long",
    ],
)
def test_a_line_that_is_no_record_is_told_with_its_place(line: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_trace([to_json_line(EVENTS[0]), line], "run.jsonl")

    where, _, said = str(raised.value).partition(": ")
    assert where == "run.jsonl:2"
    assert said.startswith(told)
    assert said.endswith("(a trace has one record a line, as `toolpost run --trace FILE` writes it)")
