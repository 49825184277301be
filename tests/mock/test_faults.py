"""Kind `mock` with agents that do the unexpected and texts of every kind."""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

import toolpost
from tests.mock.support import NOTES, ONE, mock, places, taken

ON_LIST = {"kind": "call", "op": "list_tools"}
PLANES = "".join(chr(plane * 0x10000 + 0x3042) for plane in range(17))
"""A character of each plane of Unicode."""


# -- subscriptions ---------------------------------------------------------------------------------


async def test_two_subscriptions_to_one_uri_replay_each_from_the_first_step() -> None:
    steps = [{"uri": ONE, "content": "v1"}, {"uri": ONE, "content": "v2", "after": ON_LIST}]
    config = mock(resource_content_updates=steps, initial_resource_list=[NOTES])
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        first = await it.subscribe_resource(ONE)
        assert (await taken(host)).content == "v1"
        await it.list_tools()
        assert (await taken(host)).content == "v2"

        second = await it.subscribe_resource(ONE)
        envelopes = [await host.recv(5) for _ in range(2)]

    assert [each.id for each in envelopes] == [second, second]
    assert [getattr(each.event, "content", "") for each in envelopes] == ["v1", "v2"]
    assert first != second


async def test_a_subscription_to_what_has_no_steps_is_open_and_silent() -> None:
    async with toolpost.open_host(mock(resource_content_updates=[{"uri": ONE, "content": "v"}])) as host:
        it = host.tooling.get("it")
        ids = [await it.subscribe_resource("mem://unknown"), await it.subscribe_resource_list()]
        await anyio.wait_all_tasks_blocked()

        assert host.try_recv() is None
        assert [*map(it.is_open, ids)] == [True, True]


async def test_a_subscription_that_is_cancelled_at_its_gate_leaves_its_step_and_the_state_alone() -> None:
    steps = [{"uri": ONE, "content": "v2", "after": ON_LIST}]
    config = mock(
        initial_resource_list=[NOTES],
        initial_resource_contents={ONE: "v1"},
        resource_content_updates=steps,
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.unsubscribe_resource(await it.subscribe_resource(ONE))
        await it.list_tools()
        await anyio.wait_all_tasks_blocked()

        assert host.try_recv() is None
        assert (await it.read_resource(ONE)).content == "v1"
        assert places(host.mock("it").unused) == ["resource_content_updates[0]"]

        await it.subscribe_resource(ONE)
        assert (await taken(host)).content == "v2"


async def test_a_step_that_finds_the_inbox_full_waits_for_room_and_nothing_is_lost() -> None:
    config = mock(
        tool_calls=[{"name": "a", "result": "answer"}],
        initial_resource_list=[NOTES],
        resource_list_updates=[{"resources": [NOTES] * number} for number in range(5)],
        resource_content_updates=[{"uri": ONE, "content": f"v{number}"} for number in range(5)],
    )
    async with toolpost.open_host({**config, "tunables": {"inbox_bound": 2}}) as host:
        it = host.tooling.get("it")
        listing = await it.subscribe_resource_list()
        content = await it.subscribe_resource(ONE)
        await it.call_tool("a")  # has a place of its own
        await anyio.wait_all_tasks_blocked()
        envelopes = [await host.recv(5) for _ in range(11)]
        assert host.mock("it").unused == []

    of_list = [each.event for each in envelopes if each.id == listing]
    of_content = [each.event for each in envelopes if each.id == content]
    assert of_list == [toolpost.ResourceListUpdated(_infos(number)) for number in range(5)]
    assert [getattr(each, "content", "") for each in of_content] == ["v0", "v1", "v2", "v3", "v4"]


def _infos(number: int) -> list[toolpost.ResourceInfo]:
    return [toolpost.ResourceInfo(uri=ONE, name="notes", mime_type="text/plain")] * number


# -- gates -----------------------------------------------------------------------------------------


async def test_agents_on_one_mock_are_ordered_by_gates_on_each_other() -> None:
    async def early(host: toolpost.Host) -> str:
        return (await host.tooling.get("it").call_tool_blocking("work")).value

    async def late(host: toolpost.Host) -> str:
        await host.tooling.get("it").list_tools()
        return (await host.tooling.get("it").call_tool_blocking("work")).value

    gate = {**ON_LIST, "agent": "late"}
    config = mock(
        tool_calls=[{"name": "work", "result": "1", "after": gate}, {"name": "work", "result": "2"}]
    )
    report = await toolpost.run_async(config, agents={"early": early, "late": late})

    assert {name: str(each) for name, each in report.outcomes.items()} == {
        "early": "exited: 1",
        "late": "exited: 2",
    }


async def test_a_gate_of_one_agent_stays_closed_for_what_another_does() -> None:
    gate = {**ON_LIST, "agent": "somebody else"}
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "", "after": gate}])) as host:
        it = host.tooling.get("it")
        await it.call_tool("a")
        await it.list_tools()
        await anyio.wait_all_tasks_blocked()

        assert places(host.mock("it").waiting) == ["tool_calls[0]"]


async def test_a_gate_on_true_is_another_than_one_on_1() -> None:
    steps = [
        {"name": "a", "result": str(n), "after": {"kind": "call", "detail": {"arguments": {"n": n}}}}
        for n in (1, True)
    ]
    async with toolpost.open_host(mock(tool_calls=[*steps, {"name": "b", "pending": True}])) as host:
        it = host.tooling.get("it")
        await it.call_tool("a")
        await it.call_tool("a")
        await it.call_tool("b", {"n": True})

        assert (await taken(host)).value == "True"
        assert places(host.mock("it").waiting) == ["tool_calls[0]"]


@pytest.mark.parametrize("steps", [1, 3])
async def test_gates_without_a_trace_warn_once_however_many_they_are(
    steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    config = mock(
        tool_calls=[{"name": "a", "result": "r", "after": ON_LIST}] * steps,
        resource_list_updates=[{"resources": [], "after": {"kind": "inbound"}}] * steps,
    )
    with caplog.at_level(logging.WARNING):
        async with toolpost.open_host(config, trace=False) as host:
            it = host.tooling.get("it")
            await it.subscribe_resource_list()
            for _ in range(steps):
                await it.call_tool_blocking("a")
                await taken(host)

    assert caplog.messages == [
        "tooling 'it': there is no trace to wait on (trace=False), so its gates are open"
    ]


async def test_start_is_a_gate_that_is_open() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "r", "after": "start"}])) as host:
        assert (await host.tooling.get("it").call_tool_blocking("a")).value == "r"


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["mem://a?b=(1)&c=[x]", "mem://^$.*+{2}|\\d", "mem://\\", "mem://a b"])
async def test_a_gate_finds_a_text_with_special_characters_where_they_are_escaped(uri: str) -> None:
    gate = {"kind": "call", "op": "read_resource", "detail": {"uri": f"^{re.escape(uri)}$"}}
    config = mock(
        tool_calls=[{"name": "a", "result": "", "after": gate, "arguments": {"uri": re.escape(uri)}}],
        initial_resource_contents={uri: "", "mem://other": ""},
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.call_tool("a", {"uri": f"see {uri}"})
        await it.read_resource("mem://other")
        assert places(host.mock("it").waiting) == ["tool_calls[0]"]

        await it.read_resource(uri)

        assert (await taken(host)).kind == "tool-result"


async def test_special_characters_that_are_not_escaped_mean_what_they_mean() -> None:
    steps = [{"name": "a", "result": "", "arguments": {"expression": "^1+2$"}}] * 2
    async with toolpost.open_host(mock(tool_calls=steps)) as host:
        it = host.tooling.get("it")
        assert (await it.call_tool_blocking("a", {"expression": "112"})).value == ""

        with pytest.raises(toolpost.ScriptError, match=re.escape('wanted a text with "^1+2$", found "1+2"')):
            await it.call_tool_blocking("a", {"expression": "1+2"})


async def test_a_result_of_a_megabyte_arrives_whole() -> None:
    text = "0123456789abcdef" * 65_536
    config = mock(
        tool_calls=[{"name": "a", "result": text}],
        initial_resource_contents={ONE: text},
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        await it.call_tool("a", {"text": text})

        assert (await taken(host)).value == text
        assert (await it.read_resource(ONE)).content == text
        assert host.mock("it").calls[0].arguments == {"text": text}


async def test_characters_of_every_plane_pass_through_all_texts(tmp_path: Path) -> None:
    config = tmp_path / "toolpost.toml"
    config.write_text(
        f"""
        [tooling.it]
        kind = "mock"
        delay_ms = 0
        tools = [{{ name = "{PLANES}", description = "{PLANES}" }}]
        tool_calls = [
          {{ name = "{PLANES}", arguments = {{ "{PLANES}" = "^{PLANES}$" }}, result = "{PLANES}" }},
        ]
        initial_resource_list = [{{ uri = "mem://{PLANES}", name = "{PLANES}" }}]
        resource_content_updates = [{{ uri = "mem://{PLANES}", content = "{PLANES}" }}]
        """,
        encoding="utf-8",
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        (tool,), (resource,) = await it.list_tools(), await it.list_resources()
        await it.subscribe_resource(resource.uri)
        changed = await taken(host)
        result = await it.call_tool_blocking(tool.name, {PLANES: PLANES})

    assert len(PLANES) == 17
    assert (tool.description, resource.name, changed.content, result.value) == (PLANES,) * 4
    assert result.arguments == f'{{"{PLANES}":"{PLANES}"}}'


# -- what takes time and what does not -------------------------------------------------------------


async def test_every_step_takes_its_delay_and_looking_takes_none() -> None:
    config = mock(
        tools=[{"name": "a"}],
        tool_calls=[{"name": "a", "result": ""}, {"name": "a", "error": "no"}],
        initial_resource_list=[NOTES],
        initial_resource_contents={ONE: "v1"},
        resource_list_updates=[{"resources": []}],
        resource_content_updates=[{"uri": ONE, "content": "v2"}],
        delay_ms=3_600_000,
    )
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        opened = [
            await it.call_tool("a"),
            await it.call_tool("a"),
            await it.subscribe_resource_list(),
            await it.subscribe_resource(ONE),
        ]

        assert [tool.name for tool in await it.list_tools()] == ["a"]
        assert [each.uri for each in await it.list_resources()] == [ONE]
        assert (await it.read_resource(ONE)).content == "v1"
        assert all(map(it.is_open, opened))
        assert host.try_recv() is None


async def test_a_mismatch_is_told_at_once_without_a_delay() -> None:
    config = mock(tool_calls=[{"name": "a", "result": ""}], delay_ms=3_600_000)
    async with toolpost.open_host(config) as host:
        await host.tooling.get("it").call_tool("b")

        assert (await taken(host)).kind == "error"


@pytest.mark.parametrize("step", [{"pending": True}, {"result": "", "after": ON_LIST}])
async def test_the_limit_of_a_call_ends_it_while_its_step_does_not_answer(step: dict[str, Any]) -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", **step}] * 2)) as host:
        it = host.tooling.get("it")
        with pytest.raises(toolpost.RequestTimeout) as caught:
            await it.call_tool_blocking("a", timeout=0.001)
        await it.call_tool("a", timeout=0.001)

        assert str(caught.value) == "tooling 'it': call_tool 'a': no answer within 0.001 s"
        assert await taken(host) == toolpost.Error(str(caught.value))
        assert host.mock("it").calls[0].error == str(caught.value)
        assert host.mock("it").waiting == []


async def test_a_call_whose_limit_is_infinite_has_none() -> None:
    async with toolpost.open_host(mock(tool_calls=[{"name": "a", "result": "r"}])) as host:
        assert (await host.tooling.get("it").call_tool_blocking("a", timeout=math.inf)).value == "r"


async def test_the_tools_are_listed_as_they_are_written() -> None:
    tools: list[dict[str, Any]] = [
        {
            "name": "add",
            "description": "adds",
            "input_schema": {"type": "object"},
            "output_schema": {"type": "integer"},
            "title": "Add",
            "annotations": {"readOnlyHint": True},
        },
        {"name": "bare"},
    ]
    async with toolpost.open_host(mock(tools=tools)) as host:
        listed = await host.tooling.get("it").list_tools()

    assert [toolpost.to_json(tool) for tool in listed] == [tools[0], {"name": "bare", "input_schema": {}}]
