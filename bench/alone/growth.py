"""Does the cost of one stay the same while there are more of them? From 10 to 10,000.

.venv/bin/python -m bench.alone.growth
"""

from __future__ import annotations

import asyncio
import gc
import math
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

import toolpost
from bench.alone.null import opened
from bench.alone.table import Table, micros
from bench.cells import serving
from bench.client import Target
from bench.clients.toolpost import config
from toolpost.trace.events import Call
from toolpost.trace.log import Trace

SIZES = (10, 100, 1_000, 10_000)
AT_LEAST = 1_000
"""So many items are measured of each size, in as many repetitions as it takes."""
FLAT = 2.0
"""The cost at the largest size may be this many times that at 100 (at 10 it is mostly the start)."""

TINY = 1.0
"""Microseconds below which nothing is said of growth: the clock is not that good."""

_COLLECTING = 0
"""In place of a size: the largest one, with Python's garbage collector at work."""

Costs: TypeAlias = dict[str, float]
"""Microseconds of CPU per item, by what is done with it."""


class Stopwatch:
    """Laps of CPU time, in microseconds per item."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._last = time.process_time()

    def lap(self) -> float:
        before, self._last = self._last, time.process_time()
        return (self._last - before) / self._count * 1e6


async def open_calls(count: int) -> Costs:
    """Calls that are open at once, on a backend that costs nothing."""
    async with opened() as (host, tooling, null):
        null.is_held = True
        watch = Stopwatch(count)
        uuids = [await tooling.call_tool("echo") for _ in range(count)]
        queue = watch.lap()
        assert all(map(tooling.is_open, uuids))
        is_open = watch.lap()
        null.answer()
        for _ in uuids:
            await host.recv(math.inf)
        received = watch.lap()
        uuids = [await tooling.call_tool("echo") for _ in range(count)]
        watch.lap()
        for uuid in uuids:
            await tooling.cancel(uuid)
        cancel = watch.lap()
    return {
        "open calls: queue": queue,
        "open calls: `is_open`": is_open,
        "open calls: answer and receive": received,
        "open calls: cancel": cancel,
    }


async def subscriptions(count: int) -> Costs:
    """Subscriptions that are open at once, on a backend that costs nothing."""
    async with opened() as (host, tooling, null):
        watch = Stopwatch(count)
        uuids = [await tooling.subscribe_resource(f"null://{number}") for number in range(count)]
        await asyncio.sleep(0)
        subscribe = watch.lap()
        null.update()
        for _ in uuids:
            await host.recv(math.inf)
        update = watch.lap()
        for uuid in uuids:
            await tooling.unsubscribe_resource(uuid)
        unsubscribe = watch.lap()
    return {
        "subscriptions: subscribe": subscribe,
        "subscriptions: update and receive": update,
        "subscriptions: unsubscribe": unsubscribe,
    }


async def real_calls(count: int) -> Costs:
    """Calls that are open at once, at a server over stdio."""
    with serving("stdio") as target:
        async with toolpost.open_host(_unbounded(target), trace=False) as host:
            tooling = host.tooling.get("bench")
            await tooling.call_tool_blocking("echo", {"message": "hi"})
            watch = Stopwatch(count)
            for _ in range(count):
                await tooling.call_tool("echo", {"message": "hi"})
            for _ in range(count):
                await host.recv(math.inf)
            return {"stdio: calls at once": watch.lap()}


async def real_subscriptions(count: int) -> Costs:
    """Subscriptions at a server over stdio, each to a URI of its own; the server updates 64 of them."""
    with serving("stdio") as target:
        async with toolpost.open_host(_unbounded(target), trace=False) as host:
            tooling = host.tooling.get("bench")
            await tooling.list_tools()
            watch = Stopwatch(count)
            uuids = [await tooling.subscribe_resource(f"bench://item/{number}") for number in range(count)]
            await tooling.list_tools()
            subscribe = watch.lap()
            for uuid in uuids:
                await tooling.unsubscribe_resource(uuid)
            await tooling.list_tools()
            return {"stdio: subscribe": subscribe, "stdio: unsubscribe": watch.lap()}


def _unbounded(target: Target) -> dict[str, object]:
    return {**config(target), "tunables": {"open_calls_bound": 100_000, "inbox_bound": 100_000}}


async def agents(count: int) -> Costs:
    """Agents on one host, each of which makes one call."""
    steps = [{"name": "echo", "result": "hi"}] * count
    loaded = toolpost.load_config({"tooling": {"it": {"kind": "mock", "delay_ms": 0, "tool_calls": steps}}})

    async def run(host: toolpost.Host) -> None:
        await host.tooling.get("it").call_tool_blocking("echo")

    watch = Stopwatch(count)
    report = await toolpost.run_async(loaded, agents={f"agent{number}": run for number in range(count)})
    assert {str(outcome) for outcome in report.outcomes.values()} == {"completed"}
    return {"async agents: start, one call, end": watch.lap()}


async def toolings(count: int) -> Costs:
    """Mocks in one host, each called once."""
    one = {"kind": "mock", "delay_ms": 0, "tool_calls": [{"name": "echo", "result": "hi"}]}
    watch = Stopwatch(count)
    loaded = toolpost.load_config({"tooling": {f"it{number}": one for number in range(count)}})
    load = watch.lap()
    async with toolpost.open_host(loaded) as host:
        for number in range(count):
            await host.tooling.get(f"it{number}").call_tool_blocking("echo")
    return {"mock toolings: load": load, "mock toolings: open, one call, close": watch.lap()}


async def real_toolings(count: int) -> Costs:
    """Connections to one server over HTTP, each called once, all at once."""
    with serving("json") as target:
        one = config(target)["tooling"]["bench"]
        watch = Stopwatch(count)
        async with toolpost.open_host({"tooling": {f"it{n}": one for n in range(count)}}) as host:
            handles = [host.tooling.get(f"it{number}") for number in range(count)]
            await asyncio.gather(*(each.call_tool_blocking("echo", {"message": "hi"}) for each in handles))
        return {"HTTP toolings at once: connect, one call, close": watch.lap()}


async def trace(count: int) -> Costs:
    """Records of one run, with somebody who follows it."""
    log = Trace()
    watch = Stopwatch(count)

    async def follow() -> None:
        async for _ in log.follow():
            pass

    following = asyncio.create_task(follow())
    for number in range(count):
        log.append(Call(agent="main", op="call_tool", detail={"tooling": "it", "arguments": {"n": number}}))
        if not number % 64:
            await asyncio.sleep(0)
    log.end()
    await following
    return {"trace: write and follow": watch.lap()}


@dataclass(frozen=True)
class Curve:
    """What is measured, and how far."""

    measure: Callable[[int], Awaitable[Costs]]
    most: int = SIZES[-1]


CURVES = (
    Curve(open_calls),
    Curve(subscriptions),
    Curve(real_calls),
    Curve(real_subscriptions),
    Curve(agents),
    Curve(toolings),
    Curve(real_toolings, most=100),
    Curve(trace),
)


def tables(most: int = SIZES[-1], say: Callable[[str], None] = lambda _: None) -> list[Table]:
    """One table, with a column for each size."""
    sizes = [size for size in SIZES if size <= most]
    costs: dict[str, dict[int, float]] = {}
    for curve in CURVES:
        for size in sizes:
            if size > curve.most:
                continue
            say(f"growth: {size:,} {curve.measure.__name__.replace('_', ' ')}")
            for name, cost in _measured(curve, size).items():
                costs.setdefault(name, {})[size] = cost
        if curve.most >= sizes[-1]:
            for name, cost in _measured(curve, sizes[-1], collects=True).items():
                costs[name][_COLLECTING] = cost
    rows = [
        [name, *(_cell(of, size) for size in sizes), _flat(of), _cell(of, _COLLECTING)]
        for name, of in costs.items()
    ]
    note = (
        "Microseconds of CPU for one, while there are so many at once, without Python's garbage collector;"
        " in the last column with it. It looks at all that is alive, now and then."
    )
    head = ["", *(f"{size:,}" for size in sizes), "flat", f"{sizes[-1]:,}, collected"]
    return [Table("Growth", note, head, rows)]


def _measured(curve: Curve, size: int, *, collects: bool = False) -> Costs:
    """The median of as many repetitions as it takes."""
    runs: list[Costs] = []
    for _ in range(max(1, min(20, AT_LEAST // size))):
        gc.collect()
        if not collects:
            gc.disable()
        try:
            runs.append(asyncio.run(_awaited(curve.measure(size))))
        finally:
            gc.enable()
    return {name: median(run[name] for run in runs) for name in runs[0]}


async def _awaited(made: Awaitable[Costs]) -> Costs:
    return await made


def _cell(of: dict[int, float], size: int) -> str:
    return micros(of[size]) if size in of else "–"


def _flat(of: dict[int, float]) -> str:
    largest = max(of)
    if largest <= 100:
        return ""
    is_flat = of[largest] <= max(FLAT * of[100], TINY)
    return f"{'yes' if is_flat else 'no'} ({of[largest] / max(of[100], 0.1):.1f} ×)"


def main(arguments: Sequence[str]) -> None:
    for table in tables(int(arguments[0]) if arguments else SIZES[-1], print):
        print(table.markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
