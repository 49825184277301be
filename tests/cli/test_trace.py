"""`toolpost trace`: a written run as a table, one agent's part of it, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import at_terminal, toolpost
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, TraceEvent
from toolpost.trace.log import to_json_line

EVENTS: list[TraceEvent] = [
    Call(agent="ada", op="call_tool", detail={"tooling": "memo", "name": "echo", "arguments": {"n": 1}}),
    Opened(agent="ada", id="0b9e5c1a-6a3f-4c53-8a4f-1f6f6c1f7d10", source="call_tool"),
    Call(agent="bob", op="list_tools", detail={"tooling": "memo"}),
    Closed(agent="ada", id="0b9e5c1a-6a3f-4c53-8a4f-1f6f6c1f7d10", reason="ended"),
    Inbound(
        agent="ada",
        id="0b9e5c1a-6a3f-4c53-8a4f-1f6f6c1f7d10",
        event="tool-result",
        payload={"name": "echo", "arguments": '{"n":1}', "value": "grüße " * 30, "content": []},
    ),
    AgentOutcome(agent="bob", outcome="completed"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "run.jsonl"
    file.write_text("".join(f"{to_json_line(event)}\n" for event in EVENTS), encoding="utf-8")
    return file


def test_a_run_is_shown_as_a_table(file: Path, inside: Inside) -> None:
    ended = inside("trace", file)

    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[:4] == [
        "at  agent  kind     id  what         detail",
        ' 0  ada    call         call_tool    { tooling = "memo", name = "echo", arguments = { n = 1 } }',
        " 1  ada    opened   #1  call_tool",
        ' 2  bob    call         list_tools   { tooling = "memo" }',
    ]
    assert lines[5].endswith("grüße grüße …")
    assert len(lines[5]) == 160


def test_on_a_terminal_it_is_as_wide_as_that(file: Path) -> None:
    status, screen = at_terminal("trace", file, columns=70)

    assert status == 0
    assert '\n 4  ada    inbound  #1  tool-result  { name = "echo", value = "grüße …\n' in screen
    assert max(map(len, screen.splitlines())) == 70


def test_it_comes_from_standard_input(file: Path) -> None:
    assert toolpost("trace", "-", stdin=file.read_text("utf-8")) == toolpost("trace", file)


def test_one_agents_records_keep_their_places_and_numbers(file: Path, inside: Inside) -> None:
    assert inside("trace", file, "--agent", "bob").out.splitlines() == [
        "at  agent  kind     id  what        detail",
        ' 2  bob    call         list_tools  { tooling = "memo" }',
        " 5  bob    outcome      completed",
    ]


def test_json_gives_the_records_that_were_asked_for(file: Path, inside: Inside) -> None:
    assert inside("trace", file, "--json").out == file.read_text("utf-8")
    assert inside("trace", file, "--json", "--agent", "bob").out == "".join(
        f"{to_json_line(EVENTS[place])}\n" for place in (2, 5)
    )


def test_json_is_ascii_where_nothing_else_can_be_carried(file: Path) -> None:
    ended = toolpost("trace", file, "--json", env={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})

    assert ended.out.isascii()
    assert json.loads(ended.out.splitlines()[4])["payload"]["value"].startswith("grüße")


def test_an_agent_that_is_not_there_is_told_with_those_that_are(file: Path, inside: Inside) -> None:
    ended = inside("trace", file, "--agent", "bot")

    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"error: {file} has no agent 'bot'; it has: bob, ada\n"


def test_an_empty_file_has_no_records(tmp_path: Path, inside: Inside) -> None:
    (tmp_path / "empty.jsonl").touch()

    ended = inside("trace", tmp_path / "empty.jsonl")

    assert (ended.status, ended.out) == (0, "")
    assert ended.err == f"{tmp_path / 'empty.jsonl'} has no records\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"kind":"state","tooling":"memo","state":"ready"}\n[tooling]\n', ":2: this is no JSON: "),
        (b'{"kind":"state","tooling":"\xff"}\n', " is no text in UTF-8: "),
        (None, " cannot be read: No such file or directory"),
    ],
    ids=["another line", "bytes", "missing"],
)
def test_a_file_that_is_no_trace_is_status_2_and_named(
    content: bytes | None, told: str, tmp_path: Path, inside: Inside
) -> None:
    file = tmp_path / "run.jsonl"
    if content is not None:
        file.write_bytes(content)

    ended = inside("trace", file)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {file}{told}")


def test_lines_end_where_json_lines_do(tmp_path: Path, inside: Inside) -> None:
    event = Inbound(agent="ada", id="", event="error", payload="one \u2028 two \x85 three")
    (tmp_path / "run.jsonl").write_bytes(f"\ufeff{to_json_line(event)}\r\n".encode())

    ended = inside("trace", tmp_path / "run.jsonl")

    assert ended.status == 0
    assert ended.out.endswith('"one \\u2028 two \\u0085 three"\n')
