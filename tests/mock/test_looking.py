"""`host.mock(name)`: what a mock was asked for, and how far its script has come."""

from __future__ import annotations

import anyio
import pytest

import toolpost
from tests import memory
from tests.mock.support import NOTES, ONE, mock, places, taken

ON_LIST = {"kind": "call", "op": "list_tools"}
HOUR = 3_600_000


# -- calls -----------------------------------------------------------------------------------------


async def test_every_call_is_recorded_with_what_came_of_it() -> None:
    steps = [{"name": "a", "result": "r"}, {"name": "b", "error": "out of order"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")
        await it.call_tool_blocking("a", {"n": 1})
        await it.call_tool("b")
        await it.call_tool("c")
        for _ in range(2):
            await taken(host)

    first, second, third = host.mock("it").calls
    assert (first.agent, first.name, first.arguments, first.error) == ("main", "a", {"n": 1}, None)
    assert first.result is not None
    assert first.result.value == "r"
    assert (second.result, second.error) == (
        None,
        "tooling 'it': call_tool 'b': out of order (code -32000)",
    )
    assert (
        third.error
        == "tooling 'it': call_tool 'c': the script has ended; all 2 steps of tool_calls are taken"
    )


async def test_a_call_that_is_open_or_was_cancelled_has_neither_result_nor_error() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "pending": True}] * 2)) as host:
        it = host.tooling.get("it")
        await it.call_tool("a")
        await it.cancel(await it.call_tool("a"))

        assert [(call.result, call.error) for call in host.mock("it").calls] == [(None, None)] * 2


async def test_what_you_have_seen_does_not_change_under_your_eyes() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "r"}] * 2)) as host:
        it = host.tooling.get("it")
        await it.call_tool("a")
        (before,) = seen = host.mock("it").calls
        await taken(host)
        await it.call_tool_blocking("a")

        assert (len(seen), before.result) == (1, None)
        assert [call.result is None for call in host.mock("it").calls] == [False, False]


# -- remaining -------------------------------------------------------------------------------------


async def test_the_first_of_what_remains_is_what_the_next_call_gets() -> None:
    steps = [{"name": "a", "result": "1"}, {"name": "b", "result": "2"}, {"name": "c", "pending": True}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it, looked = host.tooling.get("it"), host.mock("it")
        assert places(looked.remaining) == ["tool_calls[0]", "tool_calls[1]", "tool_calls[2]"]

        await it.call_tool_blocking("a")

        assert places(looked.remaining) == ["tool_calls[1]", "tool_calls[2]"]
        assert looked.remaining[0].step.name == "b"


async def test_a_call_that_does_not_fit_has_taken_its_step() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "1"}])) as host:
        with pytest.raises(toolpost.ScriptError):
            await host.tooling.get("it").call_tool_blocking("b")

        assert host.mock("it").remaining == host.mock("it").unused == []


# -- waiting ---------------------------------------------------------------------------------------


async def test_a_step_waits_from_when_it_is_reached_until_its_gate_opens() -> None:
    config = mock(
        tool_calls=[{"name": "a", "result": "r", "after": ON_LIST}],
        resource_list_updates=[{"resources": [], "after": ON_LIST}],
        resource_content_updates=[{"uri": ONE, "content": "v", "after": ON_LIST}],
        initial_resource_list=[NOTES],
    )
    async with toolpost.open_host(config) as host:
        it, looked = host.tooling.get("it"), host.mock("it")
        assert looked.waiting == []
        await it.subscribe_resource(ONE)
        await it.call_tool("a")
        assert places(looked.waiting) == ["tool_calls[0]", "resource_content_updates[0]"]
        await it.subscribe_resource_list()
        assert len(looked.waiting) == 3

        await it.list_tools()

        assert looked.waiting == []
        assert {(await taken(host)).kind for _ in range(3)} == {
            "tool-result",
            "resource-list-updated",
            "resource-updated",
        }


async def test_a_step_whose_gate_has_just_opened_waits_no_more() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "r", "after": ON_LIST}])) as host:
        it, looked = host.tooling.get("it"), host.mock("it")
        await it.call_tool("a")
        waiting: list[list[str]] = []
        host.trace.tap(lambda _: waiting.append(places(looked.waiting)))

        await it.list_tools()  # nothing has run since the gate opened when the tap looks

    assert waiting[0] == []


async def test_a_step_in_its_delay_does_not_wait_for_a_gate() -> None:
    steps = [{"name": "a", "result": "r"}, {"name": "a", "result": "r", "after": ON_LIST}]
    async with toolpost.open_host(mock(tool_calls=steps, delay_ms=HOUR)) as host:
        it = host.tooling.get("it")
        await it.list_tools()
        ids = [await it.call_tool("a"), await it.call_tool("a")]

        assert host.mock("it").waiting == []
        assert [*map(it.is_open, ids)] == [True, True]


async def test_a_step_for_which_two_subscriptions_wait_is_listed_once() -> None:
    steps = [{"uri": ONE, "content": "v", "after": ON_LIST}]
    async with toolpost.open_host(
        mock(resource_content_updates=steps, initial_resource_list=[NOTES])
    ) as host:
        it, looked = host.tooling.get("it"), host.mock("it")
        first = await it.subscribe_resource(ONE)
        second = await it.subscribe_resource(ONE)
        assert places(looked.waiting) == ["resource_content_updates[0]"]

        await it.unsubscribe_resource(first)
        assert places(looked.waiting) == ["resource_content_updates[0]"]
        await it.unsubscribe_resource(second)
        assert looked.waiting == []


async def test_without_a_trace_nothing_waits() -> None:
    steps = [{"name": "a", "pending": True, "after": ON_LIST}]
    async with toolpost.open_host(mock(tool_calls=steps), trace=False) as host:
        await host.tooling.get("it").call_tool("a")

        assert host.mock("it").waiting == []


# -- unused ----------------------------------------------------------------------------------------


async def test_unused_are_the_calls_not_made_and_the_updates_not_delivered() -> None:
    config = mock(
        tool_calls=[{"name": "a", "result": ""}] * 2,
        resource_list_updates=[{"resources": [NOTES]}],
        resource_content_updates=[
            {"uri": ONE, "content": "v1"},
            {"uri": ONE, "error": "disk full"},
            {"uri": ONE, "content": "v2", "after": ON_LIST},
        ],
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.call_tool_blocking("a")
        await it.subscribe_resource(ONE)
        for _ in range(2):
            await taken(host)
        unused = ["tool_calls[1]", "resource_list_updates[0]", "resource_content_updates[2]"]

        assert places(host.mock("it").unused) == unused

    assert places(host.mock("it").unused) == unused, "after the end too"


async def test_an_update_that_is_pending_is_used_once_it_has_been_reached() -> None:
    steps = [{"uri": ONE, "pending": True}, {"uri": ONE, "content": "never"}]
    config = mock(resource_content_updates=steps, initial_resource_list=[NOTES])
    async with toolpost.open_host(config) as host:
        await host.tooling.get("it").subscribe_resource(ONE)
        await anyio.wait_all_tasks_blocked()

        assert places(host.mock("it").unused) == ["resource_content_updates[1]"]


async def test_an_update_that_found_no_room_in_the_inbox_is_unused() -> None:
    steps = [{"uri": ONE, "content": "v1"}, {"uri": ONE, "content": "v2"}]
    config = mock(resource_content_updates=steps, initial_resource_list=[NOTES])
    async with toolpost.open_host({**config, "tunables": {"inbox_bound": 1}}) as host:
        await host.tooling.get("it").subscribe_resource(ONE)
        await anyio.wait_all_tasks_blocked()

        assert places(host.mock("it").unused) == ["resource_content_updates[1]"]


# -- the way in ------------------------------------------------------------------------------------


def test_a_program_without_a_loop_looks_in_the_same_way() -> None:
    steps = [{"name": "a", "result": "1"}, {"name": "a", "result": "2", "after": ON_LIST}]
    with toolpost.open_host_sync(mock(tool_calls=steps)) as host:
        it, looked = host.tooling.get("it"), host.mock("it")
        it.call_tool_blocking("a")
        it.call_tool("a")

        assert [call.name for call in looked.calls] == ["a", "a"]
        assert places(looked.waiting) == ["tool_calls[1]"]
        assert looked.remaining == looked.unused == []


async def test_a_mock_says_in_its_repr_how_far_it_is() -> None:
    steps = [{"name": "a", "result": "1", "after": ON_LIST}, {"name": "b", "result": "2"}]
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        await host.tooling.get("it").call_tool("a")

        assert repr(host.mock("it")) == "<Mock 'it': 1 of 2 tool_calls taken, 1 waiting>"


async def test_a_step_prints_as_the_config_writes_it() -> None:
    config = mock(
        tool_calls=[{"name": "a", "arguments": {"n": 1}, "is_error": True, "result": "", "after": ON_LIST}],
        resource_list_updates=[{"resources": [NOTES], "after": "start"}],
    )
    async with toolpost.open_host(config) as host:
        call, listing = host.mock("it").unused

    assert str(call) == (
        'tool_calls[0]: { name = "a", arguments = { n = 1 }, result = "", is_error = true,'
        ' after = { kind = "call", op = "list_tools" } }'
    )
    assert repr(listing) == (
        '<PlacedStep resource_list_updates[0]: { resources = [{ uri = "mem://notes", name = "notes",'
        ' mime_type = "text/plain" }] }>'
    )
    assert call.gate is not None
    assert (call.gate.to_json(), listing.gate) == (ON_LIST, None)


async def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    async with toolpost.open_host(mock()) as host:
        with pytest.raises(toolpost.UnknownTooling, match=r"'mcp'; this agent can use: 'it'$"):
            host.mock("mcp")


async def test_only_a_mock_can_be_looked_into() -> None:
    async with toolpost.open_host(memory.config(memory.Memory())) as host:
        with pytest.raises(toolpost.UsageError) as caught:
            host.mock("memo")

    assert str(caught.value) == (
        "tooling 'memo' is of kind 'memory': only one of kind 'mock' can be looked into"
    )
