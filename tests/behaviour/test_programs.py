"""Programs as users write them: on the public names alone, against a kind of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import pytest

import toolpost
from tests import memory
from tests.memory import Memory
from toolpost import Envelope, Error, ResourceListUpdated, ResourceUpdated, Shutdown, ToolResult


async def test_a_program_gets_a_tooling_by_name_and_calls_a_tool_in_place() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        memo = host.tooling.get("memo")
        assert "echo" in [tool.name for tool in await memo.list_tools()]

        result = await memo.call_tool_blocking("echo", {"message": "hi"})
        assert result.value == "hi"


def test_a_program_without_a_loop_does_the_same() -> None:
    with toolpost.open_host_sync(memory.config(Memory())) as host:
        memo = host.tooling.get("memo")
        assert "echo" in [tool.name for tool in memo.list_tools()]

        result = memo.call_tool_blocking("echo", {"message": "hi"})
        assert result.value == "hi"


async def test_many_queued_calls_come_back_through_one_inbox_whatever_their_order() -> None:
    server = Memory()
    async with toolpost.open_host(memory.config(server)) as host:
        memo = host.tooling.get("memo")
        asked = {await memo.call_tool("hold", {"n": n}): n for n in range(32)}
        for held in reversed(await server.wait_held(32)):
            held.answer(f"answer to {held.call.arguments['n']}")

        for _ in range(32):
            match await host.recv(timeout=5):
                case Envelope(id=uuid, event=ToolResult(value=value)):
                    assert value == f"answer to {asked.pop(uuid)}"
                case other:
                    pytest.fail(f"unexpected: {other}")
        assert asked == {}


async def test_a_program_is_told_of_changes_with_their_content() -> None:
    server = Memory()
    async with toolpost.open_host(memory.config(server)) as host:
        memo = host.tooling.get("memo")
        content = await memo.subscribe_resource("memo:a")
        listing = await memo.subscribe_resource_list()
        await server.wait_subscribed(2)
        server.change("memo:a", "new text")
        server.change("memo:c", "a new one")

        seen: dict[str, object] = {}
        while len(seen) < 2:
            envelope = await host.recv(timeout=5)
            seen[envelope.id] = envelope.event

        match seen[content], seen[listing]:
            case ResourceUpdated(uri="memo:a", content="new text"), ResourceListUpdated(resources=resources):
                assert [each.uri for each in resources] == ["memo:a", "memo:b", "memo:c"]
            case other:
                pytest.fail(f"unexpected: {other}")


async def test_a_call_that_is_cancelled_is_never_heard_of_again() -> None:
    server = Memory()
    async with toolpost.open_host(memory.config(server)) as host:
        memo = host.tooling.get("memo")
        unwanted, wanted = await memo.call_tool("hold"), await memo.call_tool("hold")
        await memo.cancel(unwanted)
        for held in server.held:
            held.answer()

        assert (await host.recv(timeout=5)).id == wanted
        with pytest.raises(toolpost.RecvTimeout):
            await host.recv(timeout=0)


async def test_failures_arrive_as_events_or_are_raised() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        memo = host.tooling.get("memo")
        uuid = await memo.call_tool("fail")
        match await host.recv(timeout=5):
            case Envelope(id=id, event=Error(text=text)):
                assert id == uuid
                assert "refused" in text
            case other:
                pytest.fail(f"unexpected: {other}")

        with pytest.raises(toolpost.ToolpostError, match="refused"):
            await memo.call_tool_blocking("fail")


def test_a_sync_and_an_async_agent_run_side_by_side_on_one_tooling(tmp_path: Path) -> None:
    server = Memory()
    thinker = tmp_path / "thinker.py"
    thinker.write_text(
        "async def run(host):\n"
        "    memo = host.tooling.get('memo')\n"
        "    await memo.call_tool('echo', {'message': host.params['word']})\n"
        "    envelope = await host.recv()\n"
        "    return envelope.event.value\n"
    )
    worker = tmp_path / "worker.py"
    worker.write_text(
        "def run(host):\n"
        "    result = host.tooling.get('memo').call_tool_blocking('echo', '{\"message\": \"sync\"}')\n"
        "    host.log(f'got {result.value}')\n"
    )
    config = memory.config(
        server,
        agents={
            "thinker": {"script": str(thinker), "params": {"word": "async"}},
            "worker": {"script": str(worker)},
        },
    )

    outcomes = toolpost.run(config)

    assert {name: str(outcome) for name, outcome in outcomes.items()} == {
        "thinker": "exited: async",
        "worker": "completed",
    }
    assert server.built == 1


async def test_an_agent_works_until_it_is_told_to_stop_and_says_goodbye() -> None:
    server = Memory()
    done: list[str] = []
    has_worked = asyncio.Event()

    async def agent(host: toolpost.Host) -> str:
        memo = host.tooling.get("memo")
        await memo.subscribe_resource("memo:a")
        while True:
            match (await host.recv()).event:
                case ResourceUpdated(content=content):
                    done.append(content)
                    has_worked.set()
                case Shutdown():
                    return f"{len(done)} done"
                case other:
                    return f"unexpected: {other}"

    with anyio.fail_after(5):
        run = asyncio.create_task(toolpost.run_async(memory.config(server), agents={"ada": agent}))
        await server.wait_subscribed()
        server.change("memo:a", "work")
        await has_worked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    assert (done, server.subscriptions, server.closed) == (["work"], [], 1)


async def test_the_trace_tells_the_story_of_a_run() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        memo = host.tooling.get("memo")
        uuid = await memo.call_tool("echo", {"message": "hi"})
        await host.recv(timeout=5)

    assert [event.kind for event in host.trace] == ["call", "opened", "closed", "inbound"]
    assert all(uuid in line for line in list(host.trace.json_lines())[1:])


async def test_a_connection_that_is_lost_fails_what_was_under_way_and_nothing_later() -> None:
    server = Memory()
    async with toolpost.open_host(memory.config(server)) as host:
        memo = host.tooling.get("memo")
        in_place = asyncio.create_task(memo.call_tool_blocking("hold"))
        queued = await memo.call_tool("hold")
        await server.wait_held(2)
        server.lose_connection()

        with pytest.raises(toolpost.ConnectionLost):
            await in_place
        envelope = await host.recv(timeout=5)
        assert envelope.id == queued
        assert isinstance(envelope.event, Error)
        assert (await memo.call_tool_blocking("echo", {"message": "again"})).value == "again"


# -- simulated -------------------------------------------------------------------------------------

toolpost.register_tooling("simulated-memory", memory.build, is_simulated=True)


def test_a_kind_of_ones_own_can_be_simulated_if_it_says_so() -> None:
    async def agent(host: toolpost.Host) -> str:
        await host.sleep(10**6)
        return (await host.tooling.get("memo").call_tool_blocking("echo", {"message": "hi"})).value

    config = {"tooling": {"memo": {"kind": "simulated-memory", "far_end": Memory()}}}

    assert toolpost.run(config, agents={"ada": agent}, simulate=True) == {
        "ada": toolpost.Outcome("exited", "hi")
    }
    with pytest.raises(toolpost.UsageError, match="cannot be simulated: these toolings are real: 'memo'"):
        toolpost.run(memory.config(Memory()), agents={"ada": agent}, simulate=True)


def test_agents_that_can_never_go_on_end_with_what_they_wait_for() -> None:
    config = {"tooling": {"memo": {"kind": "simulated-memory", "far_end": Memory()}}}

    def agent(host: toolpost.SyncHost) -> None:
        host.tooling.get("memo").call_tool_blocking("hold")

    outcome = toolpost.run(config, agents={"ada": agent}, simulate=True)["ada"]

    assert outcome.text == "deadlock at 0 s of simulated time: it waits in call_tool_blocking('memo', 'hold')"
