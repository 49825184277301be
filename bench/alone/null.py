"""Kind `null`: a backend that costs nothing, so that what is measured with it are toolpost's own layers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import toolpost

CONFIG: dict[str, object] = {
    "tooling": {"it": {"kind": "null"}},
    "tunables": {"open_calls_bound": 100_000, "inbox_bound": 100_000},
}


class Null:
    """Answers when it is told to."""

    kind = "null"

    def __init__(self) -> None:
        self.is_held = False
        """Calls stay open until `answer`; else each is answered at once."""
        self._open: list[asyncio.Future[toolpost.ToolResult]] = []
        self._feeds: list[asyncio.Queue[toolpost.Change]] = []

    def answer(self) -> None:
        """Answer every open call."""
        for each in self._open:
            if not each.done():
                each.set_result(_RESULT)
        self._open.clear()

    def update(self, times: int = 1) -> None:
        """So many changes for every subscription."""
        for _ in range(times):
            for feed in self._feeds:
                feed.put_nowait(_UPDATED)

    def call_tool(self, call: toolpost.ToolCall) -> Awaitable[toolpost.ToolResult]:
        answer: asyncio.Future[toolpost.ToolResult] = asyncio.get_running_loop().create_future()
        if self.is_held:
            self._open.append(answer)
        else:
            answer.set_result(_RESULT)
        return answer

    async def list_tools(self) -> list[toolpost.Tool]:
        return []

    async def list_resources(self) -> list[toolpost.ResourceInfo]:
        return []

    async def read_resource(self, uri: str) -> toolpost.ResourceContent:
        return toolpost.ResourceContent(uri=uri, content="")

    @asynccontextmanager
    async def subscribe_resource(self, uri: str) -> AsyncGenerator[AsyncIterator[toolpost.Change]]:
        feed: asyncio.Queue[toolpost.Change] = asyncio.Queue()
        self._feeds.append(feed)
        yield _items(feed)

    def subscribe_resource_list(self) -> toolpost.Changes:
        return self.subscribe_resource("")

    async def aclose(self) -> None:
        self._feeds.clear()


_RESULT = toolpost.ToolResult(
    name="echo", arguments="{}", value="hi", content=[{"type": "text", "text": "hi"}]
)
_UPDATED = toolpost.ResourceUpdated(uri="null://it", content="content")


async def _items(feed: asyncio.Queue[toolpost.Change]) -> AsyncGenerator[toolpost.Change]:
    while True:
        yield await feed.get()


_made: list[Null] = []


def _make(params: object, site: toolpost.Site) -> toolpost.Backend:
    _made.append(Null())
    return _made[-1]


toolpost.register_tooling("null", _make)


@asynccontextmanager
async def opened(*, trace: bool = False) -> AsyncGenerator[tuple[toolpost.OpenHost, toolpost.Tooling, Null]]:
    """A host with one tooling of this kind, its handle, and what stands behind it."""
    async with toolpost.open_host(CONFIG, trace=trace) as host:
        yield host, host.tooling.get("it"), _made[-1]
