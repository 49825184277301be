"""One config with every list of steps, and an agent that makes the calls it scripts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import toolpost
from tests.mock.support import ONE

WHOLE = Path(__file__).parent / "whole.toml"


async def follow(host: toolpost.Host) -> str:
    """Make the calls that the config scripts, and take what comes of each."""
    mcp = host.tooling.get("mcp")
    await mcp.list_tools()
    await mcp.subscribe_resource(ONE)
    await mcp.subscribe_resource_list()
    said = [(await host.recv(5)).event]
    await mcp.call_tool("echo", {"text": "hi"})
    said.append((await host.recv(5)).event)
    await mcp.read_resource(ONE)
    said.append((await host.recv(5)).event)
    await mcp.call_tool("add", {"a": 1, "b": 2})
    said.append((await host.recv(5)).event)
    await mcp.read_resource(ONE)
    return " ".join(map(shown, said))


def shown(event: toolpost.Event) -> str:
    match event:
        case toolpost.ToolResult(value=value):
            return value
        case toolpost.ResourceUpdated(content=content):
            return content
        case toolpost.ResourceListUpdated(resources=resources):
            return f"{len(resources)} listed"
        case _:
            return event.kind


def told(records: toolpost.Trace) -> Iterator[Any]:
    """What a trace tells, with the ids counted through: they are new in each run."""
    numbers = count(1)
    known: dict[str, int] = {}
    for record in records:
        told = {key: getattr(record, key) for key in ("kind", *record.__struct_fields__)}
        if "id" in told:
            told["id"] = known.get(told["id"]) or known.setdefault(told["id"], next(numbers))
        yield told


async def test_an_agent_that_makes_the_scripted_calls_sees_the_scripted_events_in_order() -> None:
    report = await toolpost.run_async(WHOLE, agents={"ann": follow})

    assert str(report.outcomes["ann"]) == "exited: 1 listed hi v2 3"


async def test_an_agent_that_calls_in_another_order_is_told_so() -> None:
    async with toolpost.open_host(WHOLE) as host:
        with pytest.raises(toolpost.ScriptError) as caught:
            await host.tooling.get("mcp").call_tool_blocking("add")

    assert str(caught.value) == (
        "tooling 'mcp': call_tool 'add': step 1 of 2 expects 'echo', but 'add' was called"
    )


async def test_the_same_config_and_agents_give_the_same_trace() -> None:
    agents = {"ann": follow, "bob": idle}
    first = await toolpost.run_async(WHOLE, agents=agents)
    second = await toolpost.run_async(WHOLE, agents=agents)

    assert [*told(first.trace)] == [*told(second.trace)]


async def idle(host: toolpost.Host) -> None:
    """Look on: every subscription replays the steps for itself."""
    mcp = host.tooling.get("mcp")
    await mcp.subscribe_resource(ONE)
    await mcp.subscribe_resource_list()
    for _ in range(2):
        await host.recv(5)
