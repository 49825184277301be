"""toolpost, through a handle. In mode `untraced` the host keeps no record of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import toolpost
from bench.client import RESOURCES, Target


def preload() -> None:
    """Import what the first connection of either transport would."""
    import_module("toolpost.host.host")
    import_module("toolpost.mcp.session")
    import_module("toolpost.mcp.http_session")


def config(target: Target) -> dict[str, Any]:
    """One tooling, `bench`."""
    tooling: dict[str, Any] = {"kind": "mcp", "transport": "http", "url": target.url}
    if target.command:
        command, *args = target.command
        tooling = {"kind": "mcp", "transport": "stdio", "command": command, "args": args}
    return {"tooling": {"bench": tooling}}


def _tell_of_updates(told: Callable[[], None]) -> None:
    """Call `told` for each update that enters the subscriptions of this process."""
    from toolpost.mcp.subscriptions import Subscriptions

    changed = Subscriptions.changed

    def counted(self: Subscriptions, key: str | None) -> None:
        changed(self, key)
        told()

    Subscriptions.changed = counted


class Client:
    def __init__(self, mode: str) -> None:
        self._is_traced = mode != "untraced"
        self._on_update: Callable[[], None] = lambda: None
        self._receiving: asyncio.Task[None] | None = None
        self.envelopes = 0
        """Those that were taken since `watch`."""

    async def open(self, target: Target) -> None:
        _tell_of_updates(self._updated)
        self._opening = toolpost.open_host(config(target), trace=self._is_traced)
        self._host = await self._opening.__aenter__()
        self._tooling = self._host.tooling.get("bench")

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._tooling.call_tool_blocking(tool, arguments)).value

    async def watch(self, on_update: Callable[[], None]) -> None:
        """Subscribe to everything. Updates are counted where they enter the subscriptions.

        What an agent is given is fewer: updates that come while one is read back fold into the next.
        """
        for number in range(RESOURCES):
            await self._tooling.subscribe_resource(f"bench://item/{number}")
        await self._tooling.list_tools()  # by its answer the server has heard of them all
        self._on_update = on_update
        self._receiving = asyncio.create_task(self._receive())

    def _updated(self) -> None:
        self._on_update()

    async def _receive(self) -> None:
        while True:
            await self._host.recv(60)
            self.envelopes += 1

    async def queued(self, tool: str, arguments: dict[str, Any], at_once: int, seconds: float) -> int:
        """Queue calls and take what comes of them until the time is over; gives how many."""
        end = time.perf_counter() + seconds
        for _ in range(at_once):
            await self._tooling.call_tool(tool, arguments)
        count = 0
        while time.perf_counter() < end:
            await self._take_result()
            count += 1
            await self._tooling.call_tool(tool, arguments)
        for _ in range(at_once):
            await self._take_result()
        return count + at_once

    async def _take_result(self) -> None:
        event = (await self._host.recv()).event
        if not isinstance(event, toolpost.ToolResult):
            raise RuntimeError(f"not a result: {event}")

    async def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait({self._receiving})
        await self._opening.__aexit__(None, None, None)

    @staticmethod
    def from_threads(target: Target, count: int, work: Callable[[Callable[[], object]], None]) -> None:
        """Run so many sync agents; each hands `work` what makes one call."""

        def run(host: toolpost.SyncHost) -> None:
            tooling = host.tooling.get("bench")
            work(lambda: tooling.call_tool_blocking("echo", {"message": "hi"}))

        outcomes = toolpost.run(config(target), agents={f"agent{number}": run for number in range(count)})
        assert {str(outcome) for outcome in outcomes.values()} == {"completed"}, outcomes
