"""The trace as a test looks at it, and what is told where it does not show what is expected."""

from __future__ import annotations

import pytest

from toolpost import Call, Host, Inbound, UsageError
from toolpost.model import JsonObject
from toolpost.testing import HostFactory, MockFactory, TraceView, call, inbound

pytest_plugins = ["toolpost.pytest_plugin"]


async def asks_twice(host: Host) -> None:
    """Queues a call, takes the answer, reads; and once more."""
    mcp = host.tooling.get("mcp")
    for number in (1, 2):
        await mcp.call_tool("echo", {"n": number})
        await host.recv()
        await mcp.read_resource("mem://notes")


@pytest.fixture
def trace(toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView) -> TraceView:
    """Of one agent that asks twice."""
    mock = toolpost_mock("mcp").resource("mem://notes", "v1")
    mock.tool("echo").returns("one")
    mock.tool("echo").returns("two")
    toolpost_host().run(asks_twice)
    return toolpost_trace


def test_records_are_picked_by_what_they_are(trace: TraceView) -> None:
    assert [each.detail["arguments"] for each in trace.calls("call_tool")] == [{"n": 1}, {"n": 2}]
    assert [each.op for each in trace.calls()] == ["call_tool", "read_resource"] * 2
    assert [each.payload["value"] for each in trace.inbound("tool-result")] == ["one", "two"]
    assert [each.op for each in trace.calls(arguments={"n": 2})] == ["call_tool"]
    assert trace.inbound(payload={"value": "^t"}) == [trace[8]]
    assert trace.calls(agent="bob") == trace.inbound(agent="bob") == []


def test_it_is_a_sequence_of_all_records(trace: TraceView) -> None:
    assert len(trace) == len([*trace]) == 11
    assert isinstance(trace[0], Call)
    assert [type(each) for each in trace[3:5]] == [Inbound, Call]
    assert repr(trace) == "<TraceView of 11 records>"


EXPECTED: list[list[JsonObject]] = [
    [],
    [call("call_tool"), call("call_tool")],
    [call("call_tool", name="echo"), inbound("tool-result", {"value": "two"}), call("read_resource")],
    [{"kind": "call", "op": "call_tool"}, {"$while": {"kind": "inbound"}}, call("read_resource")],
    [{"$until": inbound("tool-result", {"value": "two"})}, call("read_resource", uri="notes")],
    [call("call_tool", agent="agent")],
]


@pytest.mark.parametrize("events", EXPECTED)
def test_events_that_came_in_this_order_are_as_expected(trace: TraceView, events: list[JsonObject]) -> None:
    trace.expect(events)
    trace.expect(events, agent="agent")


TOLD = """\
the trace does not show events[1] of 3
  wanted   { kind = "inbound", event = "tool-result", payload = { value = "^tow$" } }
  after    record 4
  nearest  record 8: payload.value: wanted a text with "^tow$", found "two"
trace
  at  agent  kind     id  what           detail
   0  agent  call         call_tool      { tooling = "mcp", name = "echo", arguments = { n = 1 } }
   1  agent  opened   #1  call_tool
   2  agent  closed   #1  ended
   3  agent  inbound  #1  tool-result    { name = "echo", value = "one" }
   4  agent  call         read_resource  { tooling = "mcp", uri = "mem://notes" }
   5  agent  call         call_tool      { tooling = "mcp", name = "echo", arguments = { n = 2 } }
   6  agent  opened   #2  call_tool
   7  agent  closed   #2  ended
   8  agent  inbound  #2  tool-result    { name = "echo", value = "two" }
   9  agent  call         read_resource  { tooling = "mcp", uri = "mem://notes" }
  10  agent  outcome      completed"""


def test_what_is_missing_is_told_with_what_came_nearest_and_the_trace(trace: TraceView) -> None:
    with pytest.raises(AssertionError) as raised:
        trace.expect([call("read_resource"), inbound("tool-result", {"value": "^tow$"}), call("list_tools")])

    assert str(raised.value) == TOLD


def test_where_nothing_came_near_that_is_told(trace: TraceView) -> None:
    with pytest.raises(
        AssertionError, match=r"^the trace does not show events\[0\] of 1(.|\n)*nearest  none"
    ):
        trace.expect([call()], agent="bob")


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([{"kind": "call", "opp": "x"}], r"^events\[0\]\.opp: unknown key; known keys: op, "),
        ([call(), {"$unless": call()}], r"^events\[1\]\.\$unless: unknown key"),
        ([{"$while": call(), "kind": "call"}], r"^events\[0\]: \$while stands alone"),
        ([call(), "call_tool"], r"^events\[1\]: expected a pattern"),
    ],
)
def test_a_bad_pattern_is_told_of_with_its_place(
    trace: TraceView, events: list[JsonObject], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        trace.expect(events)


def test_a_misspelt_name_is_told_of_and_does_not_find_nothing(trace: TraceView) -> None:
    with pytest.raises(UsageError, match="unknown name 'cal_tool'; known: call_tool, "):
        trace.calls("cal_tool")
    with pytest.raises(UsageError, match="unknown name 'result'; known: "):
        trace.inbound("result")


def test_before_any_host_there_is_no_trace(toolpost_host: HostFactory, toolpost_trace: TraceView) -> None:
    host = toolpost_host({})

    with pytest.raises(UsageError, match="no host of this test has run or was opened"):
        toolpost_trace.calls()
    with pytest.raises(UsageError, match="this host has neither run nor been opened"):
        _ = host.trace
    assert repr(toolpost_trace) == "<TraceView of no host yet>"


def test_it_is_that_of_the_latest_host_also_while_it_is_open(
    toolpost_host: HostFactory, toolpost_trace: TraceView, toolpost_mock: MockFactory
) -> None:
    toolpost_mock("mcp")
    earlier = toolpost_host()
    with earlier as host:
        host.tooling.get("mcp").list_tools()
        assert [each.op for each in toolpost_trace.calls()] == ["list_tools"]
    with toolpost_host() as host:
        assert toolpost_trace.calls() == []

    assert len(earlier.trace) == 1
