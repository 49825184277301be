"""Kind `mock`, as an agent and a test see it."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

import toolpost
from tests.mock.support import NOTES, ONE, mock, taken
from toolpost.expect.event import parse_event
from toolpost.mock.gates import Gates
from toolpost.mock.kind import KIND
from toolpost.tooling.port import Site
from toolpost.trace.events import Call
from toolpost.trace.log import Trace


def problems(**keys: Any) -> list[str]:
    with pytest.raises(toolpost.ConfigError) as caught:
        toolpost.load_config(mock(**keys))
    return [line.removeprefix("config: tooling.it.") for line in caught.value.problems]


# -- tool calls ------------------------------------------------------------------------------------


async def test_each_call_gets_the_next_step() -> None:
    steps = [{"name": "echo", "result": "one"}, {"name": "echo", "result": "two"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")

        assert (await it.call_tool_blocking("echo")).value == "one"
        queued = await it.call_tool("echo", {"a": 1})
        envelope = await host.recv(5)

    assert envelope == toolpost.Envelope(
        queued,
        toolpost.ToolResult(
            name="echo", arguments='{"a":1}', value="two", content=[{"type": "text", "text": "two"}]
        ),
    )


async def test_a_wrong_name_takes_the_step_and_says_what_was_expected() -> None:
    steps = [{"name": "add", "result": "3"}, {"name": "echo", "result": "hi"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")

        with pytest.raises(toolpost.ScriptError) as caught:
            await it.call_tool_blocking("echo")
        second = await it.call_tool_blocking("echo")

    assert isinstance(caught.value, AssertionError)
    assert str(caught.value) == (
        "tooling 'it': call_tool 'echo': step 1 of 2 expects 'add', but 'echo' was called"
    )
    assert second.value == "hi"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([], "this mock has no script (tool_calls)"),
        ([{"name": "other", "result": "x"}], "step 1 of 1 expects 'other', but 'echo' was called"),
        (
            [{"name": "echo", "result": "x", "arguments": {"a": "^2$"}}],
            'step 1 of 1 expects other arguments: arguments.a: wanted a text with "^2$", found 1',
        ),
        ([{"name": "echo", "error": "out of order"}], "out of order (code -32000)"),
    ],
)
async def test_a_queued_call_that_fails_is_an_error_envelope(steps: list[Any], text: str) -> None:
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        await host.tooling.get("it").call_tool("echo", {"a": 1})

        assert await taken(host) == toolpost.Error(f"tooling 'it': call_tool 'echo': {text}")


async def test_past_the_end_the_script_says_that_it_has_ended() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": ""}])) as host:
        it = host.tooling.get("it")
        await it.call_tool_blocking("a")

        with pytest.raises(toolpost.ScriptError, match="all 1 steps of tool_calls are taken"):
            await it.call_tool_blocking("a")


async def test_a_step_may_bring_every_part_of_a_result() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    words = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    step = {"name": "draw", "content": words, "structured_content": {"n": 1}, "is_error": True}
    async with toolpost.open_host(mock(tool_calls=[step])) as host:
        result = await host.tooling.get("it").call_tool_blocking("draw")

    assert (result.value, result.content, result.structured_content, result.is_error) == (
        "a\nb",
        words,
        {"n": 1},
        True,
    )


async def test_a_pending_step_never_answers_and_can_be_cancelled() -> None:
    steps = [{"name": "slow", "pending": True}, {"name": "quick", "result": "done"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")
        slow = await it.call_tool("slow")
        await it.call_tool("quick")
        assert (await taken(host)).value == "done"
        assert it.is_open(slow)

        await it.cancel(slow)

        assert not it.is_open(slow)
        assert host.try_recv() is None


async def test_a_cancelled_call_has_taken_its_step() -> None:
    steps = [{"name": "a", "result": "1"}, {"name": "a", "result": "2"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")
        await it.cancel(await it.call_tool("a"))

        assert (await it.call_tool_blocking("a")).value == "2"


# -- resources -------------------------------------------------------------------------------------


async def test_reading_what_has_no_content_names_what_has_some() -> None:
    async with toolpost.open_host(mock(initial_resource_contents={ONE: "v1"})) as host:
        it = host.tooling.get("it")
        assert (await it.read_resource(ONE)).content == "v1"

        with pytest.raises(toolpost.ResourceNotFound, match="has some for: 'mem://notes'"):
            await it.read_resource("mem://none")


async def test_updates_are_replayed_in_order_and_change_what_is_read() -> None:
    steps = [
        {"uri": ONE, "content": "v2"},
        {"uri": "mem://other", "content": "x"},
        {"uri": ONE, "content": "v3"},
    ]
    config = mock(
        initial_resource_list=[NOTES],
        initial_resource_contents={ONE: "v1"},
        resource_content_updates=[*steps, {"uri": ONE, "content": "AAA=", "encoding": "base64"}],
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.subscribe_resource(ONE)

        seen = [await taken(host) for _ in range(3)]
        content = await it.read_resource(ONE)

    assert [event.content for event in seen] == ["v2", "v3", "AAA="]
    assert {event.mime_type for event in seen} == {"text/plain"}
    assert (content.content, content.encoding, content.bytes()) == ("AAA=", "base64", b"\0\0")


async def test_a_list_update_replaces_the_list() -> None:
    config = mock(initial_resource_list=[NOTES], resource_list_updates=[{"resources": []}])
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        before = await it.list_resources()
        await it.subscribe_resource_list()

        assert await taken(host) == toolpost.ResourceListUpdated([])
        assert (len(before), await it.list_resources()) == (1, [])


async def test_an_error_step_is_an_error_envelope_and_the_subscription_goes_on() -> None:
    steps = [{"uri": ONE, "error": "disk full"}, {"uri": ONE, "content": "v"}]
    async with toolpost.open_host(mock(resource_content_updates=steps)) as host:
        it = host.tooling.get("it")
        uuid = await it.subscribe_resource(ONE)

        assert await taken(host) == toolpost.Error(f"tooling 'it': subscribe_resource {ONE!r}: disk full")
        assert (await taken(host)).content == "v"
        assert it.is_open(uuid)


async def test_a_list_step_with_an_error_leaves_the_list_as_it_is() -> None:
    config = mock(initial_resource_list=[NOTES], resource_list_updates=[{"error": "gone"}])
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.subscribe_resource_list()

        assert await taken(host) == toolpost.Error("tooling 'it': subscribe_resource_list: gone")
        assert [each.uri for each in await it.list_resources()] == [ONE]


async def test_with_a_full_inbox_a_step_waits_and_the_state_with_it() -> None:
    steps = [{"uri": ONE, "content": f"v{number}"} for number in range(3)]
    config = {**mock(resource_content_updates=steps), "tunables": {"inbox_bound": 1}}
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.subscribe_resource(ONE)
        await anyio.wait_all_tasks_blocked()

        assert (await it.read_resource(ONE)).content == "v0"
        assert [(await taken(host)).content for _ in range(3)] == ["v0", "v1", "v2"]


# -- gates -----------------------------------------------------------------------------------------


async def test_a_gate_waits_for_what_an_agent_does() -> None:
    gate = {"kind": "call", "op": "read_resource", "detail": {"uri": "notes"}}
    config = mock(
        initial_resource_contents={ONE: "v1"},
        resource_content_updates=[{"uri": ONE, "content": "v2", "after": gate}],
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.subscribe_resource(ONE)
        await anyio.wait_all_tasks_blocked()
        assert host.try_recv() is None

        await it.read_resource(ONE)

        assert (await taken(host)).content == "v2"


async def test_a_gate_on_what_has_happened_already_is_open() -> None:
    gate = {"kind": "call", "op": "list_tools", "agent": "main"}
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "r", "after": gate}])) as host:
        it = host.tooling.get("it")
        await it.list_tools()

        assert (await it.call_tool_blocking("a")).value == "r"


async def test_one_gate_opens_many_steps() -> None:
    gate = {"kind": "inbound", "event": "tool-result"}
    steps = [{"name": "a", "result": "1"}, *({"name": "a", "result": "2", "after": gate} for _ in range(3))]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")
        for _ in steps:
            await it.call_tool("a")

        assert [(await taken(host)).value for _ in steps] == ["1", "2", "2", "2"]


async def test_without_a_trace_a_gate_warns_once_and_fires(caplog: pytest.LogCaptureFixture) -> None:
    gate = {"kind": "call", "op": "list_tools"}
    steps = [{"name": "a", "result": "r", "after": gate}] * 2
    with caplog.at_level(logging.WARNING):
        async with toolpost.open_host(mock(tool_calls=steps), trace=False) as host:
            it = host.tooling.get("it")
            assert [(await it.call_tool_blocking("a")).value for _ in steps] == ["r", "r"]

    assert [record.name for record in caplog.records] == ["toolpost.mock"]


def test_gates_look_at_each_record_once_and_only_while_they_are_closed() -> None:
    class Counting:
        looks = 0

        def matches(self, record: object) -> bool:
            Counting.looks += 1
            return False

    trace = Trace()
    patterns: Any = [Counting() for _ in range(100)]
    gates = Gates("it", patterns, trace)
    for _ in range(1000):
        trace.append(Call(agent="a", op="list_tools", detail={}))

    assert Counting.looks == 100 * 1000
    assert not any(map(gates.is_open, patterns))


def test_a_gate_that_is_built_late_has_seen_the_trace_from_its_beginning() -> None:
    trace = Trace()
    trace.append(Call(agent="a", op="list_tools", detail={}))
    seen, unseen = (parse_event({"kind": "call", "op": op}) for op in ("list_tools", "call_tool"))
    gates = Gates("it", [seen, unseen], trace)

    assert (gates.is_open(seen), gates.is_open(unseen)) == (True, False)


# -- config ----------------------------------------------------------------------------------------


BAD_SCRIPTS: list[tuple[dict[str, Any], str]] = [
    ({"tool_call": []}, "tool_call: unknown key; known keys: tool_calls"),
    ({"tool_calls": [{"name": "a", "reslt": "x"}]}, "tool_calls[0].reslt: unknown key; known keys: result"),
    ({"tool_calls": [{"name": "a"}]}, "tool_calls[0]: brings nothing; expected result, content, structured_content, error or pending"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "pending": True}]}, "tool_calls[0]: pending and result exclude each other; keep one"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "error": "y"}]}, "tool_calls[0]: error and result exclude each other; keep one"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "pending": True, "error": "y"}]}, "tool_calls[0]: error and pending exclude each other; keep one"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "after": "begin"}]}, "tool_calls[0].after: expected \"start\" or a pattern such as { kind = \"call\" }, found 'begin'"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "after": {"kind": "call", "op": "cal_tool"}}]}, "tool_calls[0].after.op: unknown name 'cal_tool'; known: call_tool"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "after": {"$while": {"kind": "call"}}}]}, "tool_calls[0].after.$while: unknown key '$while'"),  # noqa: E501  one case, one line
    ({"resource_list_updates": [{"resources": [], "after": {"kind": "inbound", "payload": "("}}]}, "resource_list_updates[0].after.payload: bad regular expression '('"),  # noqa: E501  one case, one line
    ({"tool_calls": [{"name": "a", "result": "x", "arguments": {"a": "["}}]}, "tool_calls[0].arguments.a: bad regular expression '['"),  # noqa: E501  one case, one line
    ({"resource_content_updates": [{"uri": ONE, "content": "?", "encoding": "base64"}]}, "resource_content_updates[0].content: is not base64"),  # noqa: E501  one case, one line
    ({"delay_ms": -1}, "delay_ms: expected a number"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "problem"), BAD_SCRIPTS)
def test_a_script_is_checked_when_it_is_read(keys: dict[str, Any], problem: str) -> None:
    assert [line[: len(problem)] for line in problems(**{"delay_ms": 0, **keys})] == [problem]


def test_content_for_what_no_list_names_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    params = toolpost.load_config(mock(resource_content_updates=[{"uri": ONE, "content": "x"}])).tooling["it"]
    with caplog.at_level(logging.WARNING):
        KIND.factory(params.params, Site(name="it", start_task=_no_task, on_state=_no_state, tunables=None))

    assert caplog.messages == ["tooling 'it': resource_content_updates[0]: no list ever names 'mem://notes'"]


def _no_task(*_: object) -> None:
    raise AssertionError("a mock starts no task")


def _no_state(_: str) -> None:
    raise AssertionError("a mock has no connection")
