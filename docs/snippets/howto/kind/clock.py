from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import anyio
import msgspec

import toolpost

TIME = "clock://now"


class ClockParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `kind = "clock"`."""

    tick_secs: Annotated[float, msgspec.Meta(gt=0, description="How often it tells the time.")] = 1.0


class Clock:
    """A tooling that tells the time."""

    kind = "clock"

    def __init__(self, params: ClockParams, site: toolpost.Site) -> None:
        self._tick_secs = params.tick_secs
        self._name = site.name

    async def list_tools(self) -> list[toolpost.Tool]:
        return [toolpost.Tool(name="year", description="The year", input_schema={"type": "object"})]

    async def call_tool(self, call: toolpost.ToolCall) -> toolpost.ToolResult:
        if call.name != "year":
            raise toolpost.UsageError(f"tooling {self._name!r} has no tool {call.name!r}")
        return toolpost.ToolResult(name=call.name, arguments=call.text, value=str(datetime.now(UTC).year))

    async def list_resources(self) -> list[toolpost.ResourceInfo]:
        return [toolpost.ResourceInfo(uri=TIME, name="now")]

    async def read_resource(self, uri: str) -> toolpost.ResourceContent:
        return toolpost.ResourceContent(uri=uri, content=datetime.now(UTC).isoformat())

    @asynccontextmanager
    async def subscribe_resource(self, uri: str) -> AsyncGenerator[AsyncIterator[toolpost.Change]]:
        yield self._ticks()

    @asynccontextmanager
    async def subscribe_resource_list(self) -> AsyncGenerator[AsyncIterator[toolpost.Change]]:
        yield self._never()

    async def _ticks(self) -> AsyncGenerator[toolpost.Change]:
        while True:
            await anyio.sleep(self._tick_secs)
            yield toolpost.CHANGED  # toolpost reads the resource now

    async def _never(self) -> AsyncGenerator[toolpost.Change]:
        await anyio.sleep_forever()
        yield toolpost.CHANGED

    async def aclose(self) -> None:
        pass


def open_clock(params: ClockParams, site: toolpost.Site) -> toolpost.Backend:
    return Clock(params, site)
