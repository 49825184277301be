"""How much passes through the inbox, through a whole house without a server, and through a mock.

Per second of CPU, of all threads: on a quiet machine that is a second, and on a busy one it stays the same.

    .venv/bin/python -m bench.alone.speed
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import toolpost
from bench.alone.null import CONFIG, opened
from bench.alone.table import Table, rate
from toolpost.host.inbox import Inbox
from toolpost.trace.log import Trace

BOUND = 1024
UPDATED = toolpost.ResourceUpdated(uri="null://it", content="content")


async def queue(count: int) -> float:
    """`asyncio.Queue` between two tasks."""
    items: asyncio.Queue[int] = asyncio.Queue(BOUND)

    async def put() -> None:
        for number in range(count):
            await items.put(number)

    putting = asyncio.create_task(put())
    begun = time.process_time()
    for _ in range(count):
        await items.get()
    seconds = time.process_time() - begun
    await putting
    return count / seconds


async def inbox(count: int, trace: Trace | None) -> float:
    """The inbox between two tasks: a pump that puts, an agent that takes."""
    box = Inbox(agent="main", bound=BOUND, calls_bound=BOUND, trace=trace, new_id=lambda: "id")
    source = box.open_source("subscribe_resource")

    async def put() -> None:
        for _ in range(count):
            await box.put(source, UPDATED)

    putting = asyncio.create_task(put())
    begun = time.process_time()
    for _ in range(count):
        await box.take()
    seconds = time.process_time() - begun
    await putting
    return count / seconds


async def house(count: int, *, trace: bool) -> float:
    """From a backend's stream through pump and inbox to `host.recv`."""
    async with opened(trace=trace) as (host, tooling, null):
        await tooling.subscribe_resource("null://it")
        await asyncio.sleep(0.01)
        begun = time.process_time()
        null.update(count)
        for _ in range(count):
            await host.recv(math.inf)
        return count / (time.process_time() - begun)


async def in_place(count: int, *, trace: bool) -> float:
    """`call_tool_blocking`, where the answer is there at once."""
    async with opened(trace=trace) as (_, tooling, _):
        begun = time.process_time()
        for _ in range(count):
            await tooling.call_tool_blocking("echo", {"message": "hi"})
        return count / (time.process_time() - begun)


def in_place_from_a_thread(count: int) -> float:
    """The same of a sync agent: each call goes to the loop and back."""
    return by_agent(toolpost.load_config(CONFIG), count, is_async=False, simulate=False)


async def queued(count: int, *, trace: bool) -> float:
    """`call_tool` and `recv`, 64 at a time."""
    at_once = 64
    async with opened(trace=trace) as (host, tooling, _):
        begun = time.process_time()
        for _ in range(count // at_once):
            for _ in range(at_once):
                await tooling.call_tool("echo", {"message": "hi"})
            for _ in range(at_once):
                await host.recv(math.inf)
        return count / (time.process_time() - begun)


def mock(count: int, *, is_async: bool, simulate: bool) -> float:
    """Steps of a mock without a delay, taken by one agent."""
    steps = [{"name": "echo", "result": "hi"}] * count
    config = toolpost.load_config({"tooling": {"it": {"kind": "mock", "delay_ms": 0, "tool_calls": steps}}})
    return by_agent(config, count, is_async=is_async, simulate=simulate)


def by_agent(config: toolpost.Config, count: int, *, is_async: bool, simulate: bool) -> float:
    """Calls in place that one agent makes, one after the other."""
    seconds = math.nan

    def run(host: toolpost.SyncHost) -> None:
        nonlocal seconds
        it = host.tooling.get("it")
        begun = time.process_time()
        for _ in range(count):
            it.call_tool_blocking("echo")
        seconds = time.process_time() - begun

    async def run_async(host: toolpost.Host) -> None:
        nonlocal seconds
        it = host.tooling.get("it")
        begun = time.process_time()
        for _ in range(count):
            await it.call_tool_blocking("echo")
        seconds = time.process_time() - begun

    agent: Callable[[Any], Any] = run_async if is_async else run
    outcomes = toolpost.run(config, agents={"agent": agent}, simulate=simulate)
    assert str(outcomes["agent"]) == "completed", outcomes
    return count / seconds


def tables(count: int = 20_000, rounds: int = 2) -> list[Table]:
    """The best of some rounds counts: whatever else the machine does can only make one slower."""
    cases: dict[str, Callable[[], Awaitable[float] | float]] = {
        "`asyncio.Queue`, two tasks": lambda: queue(count),
        "inbox, two tasks": lambda: inbox(count, None),
        "inbox, two tasks, traced": lambda: inbox(count, Trace()),
        "updates: stream, pump, inbox, `recv`": lambda: house(count, trace=False),
        "updates, traced": lambda: house(count, trace=True),
        "calls in place": lambda: in_place(count, trace=False),
        "calls in place, traced": lambda: in_place(count, trace=True),
        "calls in place, sync agent": lambda: in_place_from_a_thread(count // 4),
        "calls queued and received": lambda: queued(count, trace=False),
        "calls queued and received, traced": lambda: queued(count, trace=True),
        "mock steps, async agent": lambda: mock(count // 4, is_async=True, simulate=False),
        "mock steps, sync agent": lambda: mock(count // 4, is_async=False, simulate=False),
        "mock steps, simulated, async agent": lambda: mock(count // 4, is_async=True, simulate=True),
        "mock steps, simulated, sync agent": lambda: mock(count // 4, is_async=False, simulate=True),
    }
    best = dict.fromkeys(cases, 0.0)
    for _ in range(rounds):
        for name, case in cases.items():
            best[name] = max(best[name], _run(case))
    rows = [[name, rate(value)] for name, value in best.items()]
    note = "Calls are answered by a backend that costs nothing, so these are toolpost's own layers."
    return [Table("Without a server", note, ["", "per second of CPU"], rows)]


def _run(case: Callable[[], Awaitable[float] | float]) -> float:
    made = case()
    return asyncio.run(_awaited(made)) if isinstance(made, Awaitable) else made


async def _awaited(made: Awaitable[float]) -> float:
    return await made


if __name__ == "__main__":
    for table in tables():
        print(table.markdown())
