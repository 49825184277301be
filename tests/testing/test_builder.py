"""A script that is written in Python says what the tables of a config would say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import tomli

from toolpost import UsageError
from toolpost.config import load_config
from toolpost.model import JsonObject
from toolpost.testing import CallStepBuilder, MockBuilder, call, inbound

SEED = """
[tooling.mcp]
kind = "mock"
delay_ms = 10
tools = [{ name = "echo", description = "echo back", input_schema = {} }, { name = "add" }]
tool_calls = [
  { name = "echo", result = "hi" },
  { name = "add", result = "3", after = { kind = "call", op = "call_tool" } },
]
initial_resource_list = [{ uri = "mem://notes", name = "notes", mime_type = "text/plain" }]
initial_resource_contents = { "mem://notes" = "v1" }
resource_list_updates = [
  {
    resources = [{ uri = "mem://notes", name = "notes", mime_type = "text/plain" }],
    after = { kind = "call", op = "subscribe_resource_list" },
  },
]
resource_content_updates = [
  { uri = "mem://notes", content = "v2", after = { kind = "call", op = "read_resource" } },
]
"""


def mock() -> MockBuilder:
    return MockBuilder("mcp")


def test_each_key_of_a_mock_can_be_written_in_python() -> None:
    built = mock()
    built.delay_ms = 10
    built.tool("echo", description="echo back", input_schema={}).returns("hi")
    built.tool("add").returns("3").after(call("call_tool"))
    built.resource("mem://notes", "v1", name="notes", mime_type="text/plain")
    built.updates_list(["mem://notes"]).after(call("subscribe_resource_list"))
    built.updates("mem://notes", "v2").after(call("read_resource"))

    assert {"tooling": {"mcp": built.to_table()}} == tomli.loads(SEED)


def test_a_tool_is_listed_once_however_many_calls_of_it_are_scripted() -> None:
    built = mock().offers("add", description="adds")
    built.tool("echo").returns("1")
    built.tool("echo", description="says it again").returns("2")

    assert built.to_table()["tools"] == [
        {"name": "add", "description": "adds"},
        {"name": "echo", "description": "says it again"},
    ]


def test_a_tool_has_one_description() -> None:
    built = mock().offers("echo", description="says it again")

    with pytest.raises(UsageError, match="mock 'mcp': tool 'echo' has another description: 'says it again'"):
        built.tool("echo", description="something else")


ANSWERS: list[tuple[Callable[[CallStepBuilder], object], JsonObject]] = [
    (lambda step: step.returns("hi"), {"result": "hi"}),
    (lambda step: step.returns(""), {"result": ""}),
    (lambda step: step.returns(), {"content": []}),
    (lambda step: step.returns("no", is_error=True), {"result": "no", "is_error": True}),
    (lambda step: step.returns(structured_content={"n": 1}), {"structured_content": {"n": 1}}),
    (
        lambda step: step.returns(content=[{"type": "text", "text": "hi"}]),
        {"content": [{"type": "text", "text": "hi"}]},
    ),
    (lambda step: step.fails("gone"), {"error": "gone"}),
    (lambda step: step.hangs(), {"pending": True}),
]


@pytest.mark.parametrize(("answer", "keys"), ANSWERS)
def test_a_step_brings_what_it_is_told_to_in_any_order(
    answer: Callable[[CallStepBuilder], object], keys: JsonObject
) -> None:
    gate = {"after": {"kind": "call", "op": "list_tools"}}
    gated, answered = mock(), mock()
    answer(gated.tool("echo").after(call("list_tools")))
    step = answered.tool("echo")
    answer(step)
    step.after(call("list_tools"))

    assert gated.to_table()["tool_calls"] == [{"name": "echo", **gate, **keys}]
    assert answered.to_table() == gated.to_table()
    load_config({"tooling": {"mcp": gated.to_table()}}, environ={})


def test_resources_change_fail_or_hang() -> None:
    built = mock().resource("mem://a").resource("mem://b", "b0", description="the second")
    built.updates("mem://a", b"\x00\xff")
    built.updates("mem://a").fails("gone")
    built.updates("mem://b").hangs()
    built.updates_list(["mem://b", "mem://new", {"uri": "mem://c", "name": "c"}])
    built.updates_list([])
    built.updates_list().fails("not now")
    table = built.to_table()

    assert table["initial_resource_contents"] == {"mem://b": "b0"}
    assert table["resource_content_updates"] == [
        {"uri": "mem://a", "content": "AP8=", "encoding": "base64"},
        {"uri": "mem://a", "error": "gone"},
        {"uri": "mem://b", "pending": True},
    ]
    assert table["resource_list_updates"] == [
        {
            "resources": [
                {"uri": "mem://b", "name": "mem://b", "description": "the second"},
                {"uri": "mem://new", "name": "mem://new"},
                {"uri": "mem://c", "name": "c"},
            ]
        },
        {"resources": []},
        {"error": "not now"},
    ]
    load_config({"tooling": {"mcp": table}}, environ={})


def test_a_step_that_brings_nothing_is_told_of_when_the_script_is_used() -> None:
    built = mock()
    built.tool("echo").returns("hi")
    built.tool("add").after(call())

    with pytest.raises(
        UsageError,
        match=r"mock 'mcp': tool_calls\[1\] \('add'\): it brings nothing; add \.returns\(…\),",
    ):
        built.to_table()


def test_a_step_brings_one_thing_and_has_one_gate() -> None:
    step = mock().tool("echo").returns("hi").after(call())

    with pytest.raises(UsageError, match=r"tool_calls\[0\] \('echo'\): it brings something already"):
        step.hangs()
    with pytest.raises(UsageError, match="it waits for something already"):
        step.after(inbound())


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: mock().tool("echo", arguments={"text": "("}), r"^arguments\.text: bad regular expression"),
        (lambda: mock().tool("echo").after({"kind": "cal"}), "^kind: expected"),
        (lambda: mock().updates("mem://a", "a1").after(call("read")), "unknown name 'read'"),
        (lambda: call("cal_tool"), "^op: unknown name 'cal_tool'; known: call_tool, "),
        (lambda: call(name="("), r"^detail\.name: bad regular expression"),
        (lambda: inbound("result"), "^event: unknown name 'result'; known: "),
        (lambda: inbound(payload={"$while": 1}), r"^payload\.\$while: "),
    ],
)
def test_what_cannot_be_right_is_told_of_where_it_is_written(
    build: Callable[[], object], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        build()


def test_patterns_are_what_a_test_file_writes() -> None:
    assert call() == {"kind": "call"}
    assert call("call_tool", agent="ada", tooling="mcp", arguments={"n": 1}) == {
        "kind": "call",
        "op": "call_tool",
        "detail": {"tooling": "mcp", "arguments": {"n": 1}},
        "agent": "ada",
    }
    assert inbound("tool-result", {"value": "hi"}, agent="ada") == {
        "kind": "inbound",
        "event": "tool-result",
        "payload": {"value": "hi"},
        "agent": "ada",
    }


def test_the_tables_are_the_callers_own() -> None:
    built = mock()
    built.tool("echo").returns("hi")
    built.to_table()["tool_calls"].clear()

    assert built.to_table()["tool_calls"] == [{"name": "echo", "result": "hi"}]
    assert repr(built) == "<MockBuilder 'mcp'>"


def test_an_agent_plays_against_the_script_outside_pytest_too() -> None:
    program = """
import toolpost
from toolpost.testing import MockBuilder, call

mock = MockBuilder("mcp")
mock.resource("mem://notes", "v1")
mock.tool("echo", arguments={"text": "^h"}).returns("hi").after(call("read_resource"))

with toolpost.open_host_sync({"tooling": {mock.name: mock.to_table()}}) as host:
    mcp = host.tooling.get("mcp")
    mcp.call_tool("echo", {"text": "hello"})
    print(mcp.read_resource("mem://notes").content, host.recv().event.value)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.stdout, done.stderr) == ("v1 hi\n", "")
