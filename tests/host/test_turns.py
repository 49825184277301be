"""The threads of sync agents in a simulated run: which of them runs what, and what breaks one off."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toolpost
from toolpost.config import load_config
from toolpost.errors import AgentStopped
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop
from toolpost.trace.log import Trace

CONFIG: dict[str, Any] = {
    "tooling": {
        "mcp": {
            "kind": "mock",
            "delay_ms": 1000,
            "tool_calls": [{"name": "echo", "result": str(number)} for number in range(100)],
        }
    }
}


def play(
    *agents: Callable[[Any], Any],
    seed: int = 0,
    loop: SimulatedLoop | None = None,
    on_trace: Callable[[Trace], None] = lambda _: None,
) -> tuple[list[Outcome], Trace]:
    """Runs functions as agents, by order, in a simulated run."""

    async def main() -> tuple[list[Outcome], Trace]:
        core = Core(load_config(CONFIG), trace=True, extras={})
        await core.open()
        assert core.trace is not None
        on_trace(core.trace)
        try:
            crew = [Agent(f"agent{number}", function) for number, function in enumerate(agents)]
            outcomes = await core.run_agents(crew, asyncio.Event())
        finally:
            await core.close()
        return [outcomes[agent.name] for agent in crew], core.trace

    with asyncio.Runner(loop_factory=lambda: loop or SimulatedLoop(seed)) as runner:
        return runner.run(main())


# -- the order -------------------------------------------------------------------------------------


def calls(host: toolpost.SyncHost) -> None:
    mcp = host.tooling.get("mcp")
    for _ in range(4):
        mcp.call_tool_blocking("echo")
        host.sleep(0)


async def calls_async(host: toolpost.Host) -> None:
    mcp = host.tooling.get("mcp")
    for _ in range(4):
        await mcp.call_tool_blocking("echo")
        await host.sleep(0)


def queues(host: toolpost.SyncHost) -> str:
    mcp = host.tooling.get("mcp")
    for _ in range(4):
        mcp.call_tool("echo")
    mcp.list_tools()
    texts = [getattr(host.recv().event, "value", "") for _ in range(4)]
    late = mcp.call_tool("echo")
    host.sleep(1)
    mcp.cancel(late)
    return ",".join(texts)


async def queues_async(host: toolpost.Host) -> str:
    mcp = host.tooling.get("mcp")
    for _ in range(4):
        await mcp.call_tool("echo")
    await mcp.list_tools()
    texts = [getattr((await host.recv()).event, "value", "") for _ in range(4)]
    late = await mcp.call_tool("echo")
    await host.sleep(1)
    await mcp.cancel(late)
    return ",".join(texts)


@pytest.mark.parametrize("seed", range(12))
def test_sync_agents_give_the_same_trace_as_the_same_agents_written_async(seed: int) -> None:
    _, in_tasks = play(calls_async, queues_async, calls_async, queues_async, seed=seed)
    _, in_threads = play(calls, queues, calls, queues, seed=seed)
    _, mixed = play(calls_async, queues, calls, queues_async, seed=seed)

    assert list(in_threads.json_lines()) == list(in_tasks.json_lines())
    assert list(mixed.json_lines()) == list(in_tasks.json_lines())


def test_what_a_sync_agent_alone_asks_for_is_done_by_its_own_thread() -> None:
    threads: list[str] = []

    _, trace = play(queues, on_trace=lambda trace: _note_threads(trace, threads))

    assert threads == ["agent agent0"] * (len(trace) - 1) + [threading.current_thread().name]


def _note_threads(trace: Trace, threads: list[str]) -> None:
    trace.tap(lambda _: threads.append(threading.current_thread().name))


@pytest.mark.parametrize("seed", range(4))
def test_async_agents_are_run_by_one_thread_whatever_sync_ones_do(seed: int) -> None:
    threads: set[int] = set()

    async def noting(host: toolpost.Host) -> None:
        mcp = host.tooling.get("mcp")
        for _ in range(5):
            await asyncio.gather(noted(host), mcp.call_tool_blocking("echo"))

    async def noted(host: toolpost.Host) -> None:
        for _ in range(5):
            threads.add(threading.get_ident())
            await host.sleep(0.2)

    play(noting, calls, queues, noting, seed=seed)

    assert threads == {threading.get_ident()}


# -- hosts that are used in other ways -------------------------------------------------------------


def test_an_agent_may_run_an_event_loop_of_its_own_and_call_the_host_in_it() -> None:
    def agent(host: toolpost.SyncHost) -> str:
        async def main() -> str:
            mcp = host.tooling.get("mcp")
            first = mcp.call_tool_blocking("echo").value
            await asyncio.sleep(0.001)  # needs its own loop, as it was before the call
            mcp.call_tool("echo")
            return f"{first}, {getattr(host.recv().event, 'value', '')}, {host.try_recv()}"

        return asyncio.run(main())

    outcomes, _ = play(agent, calls_async)

    assert [str(each) for each in outcomes] == ["exited: 0, 2, None", "completed"]


def test_an_agent_may_use_the_host_of_another_until_that_one_ends() -> None:
    hosts: list[toolpost.SyncHost] = []

    def lends(host: toolpost.SyncHost) -> None:
        hosts.append(host)
        host.sleep(10)

    def borrows(host: toolpost.SyncHost) -> str:
        host.sleep(1)
        result = hosts[0].tooling.get("mcp").call_tool_blocking("echo").value
        try:
            hosts[0].sleep(100)
        except AgentStopped as error:
            return f"{result}, {error}"
        return "it did not end"

    outcomes, _ = play(lends, borrows)

    assert [str(each) for each in outcomes] == [
        "completed",
        "exited: 0, agent 'agent0' has ended; its host cannot be used any more",
    ]


# -- breaking off ----------------------------------------------------------------------------------


def test_a_thread_that_is_broken_while_it_waits_loses_no_envelope() -> None:
    threads: list[threading.Thread] = []

    def waits(host: toolpost.SyncHost) -> str:
        threads.append(threading.current_thread())
        host.tooling.get("mcp").call_tool("echo")
        try:
            host.recv()
        except AgentStopped:
            return f"then {getattr(host.recv().event, 'value', '')}"
        return "it was not broken"

    async def breaks(host: toolpost.Host) -> None:
        await host.sleep(0.5)
        ident = ctypes.c_ulong(threads[0].ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(AgentStopped))

    outcomes, _ = play(waits, breaks)

    assert str(outcomes[0]) == "exited: then 0"


def test_what_ends_the_loop_ends_it_in_its_own_thread_whichever_runs_it() -> None:
    ran_in: list[str] = []

    def leave() -> None:
        ran_in.append(threading.current_thread().name)
        raise SystemExit(3)

    def agent(host: toolpost.SyncHost) -> None:
        loops[0].call_soon_threadsafe(leave)
        host.sleep(1)

    loops: list[SimulatedLoop] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loops.append(loop)
        await toolpost.run_async(load_config(CONFIG), agents={"ada": agent})

    with pytest.raises(SystemExit), asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(main())

    assert ran_in == ["agent ada"]


class Interrupt(BaseException):
    """What a signal's handler raises, as Ctrl-C does."""


def test_an_interrupt_of_the_loops_thread_leaves_one_behind_that_computes() -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupt

    loop, released, ended = SimulatedLoop(), threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def computes(host: toolpost.SyncHost) -> None:
        threads.append(threading.current_thread())
        host.sleep(0.5)
        os.kill(os.getpid(), signal.SIGUSR1)
        released.wait()
        ended.set()

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(Interrupt):
            play(calls, computes, queues_async, loop=loop)
        assert loop.turns.is_lost(threads[0]), "it would run the loop, beside the one that closes it"
    finally:
        signal.signal(signal.SIGUSR1, before)
        released.set()

    assert ended.wait(5)
