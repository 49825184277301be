"""How many bytes of Python one of each takes while it is open.

.venv/bin/python -m bench.alone.weight
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable

import toolpost
from bench.alone.null import opened
from bench.alone.table import Table
from bench.cells import serving
from bench.clients.toolpost import config

COUNT = 2_000
SETTLED_SECS = 0.2
"""Until tasks that were started have come to where they wait."""

Opens = Callable[[int], Awaitable[object]]
"""Opens so many."""


async def null_calls(measured: Measured) -> None:
    """Calls that nobody answers, on a backend that needs nothing for them."""
    async with opened() as (_, tooling, null):
        null.is_held = True

        async def fill(count: int) -> None:
            for _ in range(count):
                await tooling.call_tool("echo", {"message": "hi"})

        await measured("queued call: handle, pump, inbox", fill)


async def null_results(measured: Measured) -> None:
    """Results that nobody takes; the backend gives the same one each time."""
    async with opened() as (_, tooling, _):

        async def fill(count: int) -> None:
            for _ in range(count):
                await tooling.call_tool("echo", {"message": "hi"})

        await measured("its envelope in the inbox", fill)


async def null_subscriptions(measured: Measured) -> None:
    """Subscriptions, without what a backend needs for one."""
    async with opened() as (_, tooling, _):

        async def fill(count: int) -> None:
            for number in range(count):
                await tooling.subscribe_resource(f"null://{number}")

        await measured("subscription: handle, pump, inbox", fill)


async def traced_calls(measured: Measured) -> None:
    """What the trace keeps of a call in place."""
    async with opened(trace=True) as (_, tooling, _):

        async def fill(count: int) -> None:
            for _ in range(count):
                await tooling.call_tool_blocking("echo", {"message": "hi"})

        await measured("a call's record in the trace", fill)


async def stdio_calls(measured: Measured) -> None:
    """Calls that a server does not answer."""
    tunables = {"open_calls_bound": 100_000}
    with serving("stdio") as target:
        async with toolpost.open_host({**config(target), "tunables": tunables}, trace=False) as host:
            tooling = host.tooling.get("bench")
            await tooling.call_tool_blocking("echo", {"message": "hi"})

            async def fill(count: int) -> None:
                for _ in range(count):
                    await tooling.call_tool("silence", {"message": "hi"})

            await measured("queued call at a server over stdio, all of it", fill)


async def stdio_subscriptions(measured: Measured) -> None:
    """Subscriptions at a server, each to a URI of its own."""
    with serving("stdio") as target:
        async with toolpost.open_host(config(target), trace=False) as host:
            tooling = host.tooling.get("bench")
            await tooling.list_tools()

            async def fill(count: int) -> None:
                for number in range(count):
                    await tooling.subscribe_resource(f"bench://item/{number}")
                await tooling.list_tools()

            await measured("subscription at a server over stdio, all of it", fill)


class Measured:
    """The bytes that are in use after a filling, and were not before."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []

    async def __call__(self, name: str, fill: Opens) -> None:
        await fill(10)  # what is made once
        await asyncio.sleep(SETTLED_SECS)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        await fill(COUNT)
        await asyncio.sleep(SETTLED_SECS)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.rows.append([name, f"{(after - before) / COUNT:,.0f}"])


def tables() -> list[Table]:
    measured = Measured()
    for case in (
        null_calls,
        null_results,
        null_subscriptions,
        traced_calls,
        stdio_calls,
        stdio_subscriptions,
    ):
        asyncio.run(case(measured))
    return [Table("Memory", f"Bytes for one, while {COUNT:,} are open.", ["", "bytes"], measured.rows)]


if __name__ == "__main__":
    for table in tables():
        print(table.markdown())
