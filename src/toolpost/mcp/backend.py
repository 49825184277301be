"""Kind `mcp`: the port's operations on a real server.

Every operation takes the connection that there is, or dials. A request that was certainly not written is
sent once more on a fresh connection; any other that is lost is not repeated, since it may have had effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel

from toolpost.errors import RequestTimeout, Unsupported, UsageError
from toolpost.mcp.connection import Connection
from toolpost.mcp.faults import NotSent, about
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.losses import Losses
from toolpost.mcp.params import McpParams, request_timeout
from toolpost.mcp.subscriptions import Subscriptions
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.tooling.port import Changes, Site, ToolCall

if TYPE_CHECKING:
    from toolpost.mcp.peer import Peer

T = TypeVar("T")


class McpBackend:
    """One tooling of kind `mcp`."""

    kind = "mcp"

    def __init__(self, params: McpParams, site: Site) -> None:
        if site.extras is not None and not isinstance(site.extras, Handlers):
            given = type(site.extras).__name__  # not what it holds: that may be a secret
            raise UsageError(f"handlers for tooling {site.name!r} must be toolpost.Handlers, not {given}")
        self._params = params
        self._site = site
        self._unsent = self._call_tool  # bound once, not with each call
        self._connection = Connection(params, site, self._on_peer)
        self._lost: Peer | None = None
        """The last that was found dead."""
        self._behind = 0
        """How many requests wait for its end, to be sent on the next one."""
        self._subscriptions = Subscriptions(
            site.name,
            self._connection.ready,
            site.start_task,
            timeout=request_timeout(params, site.tunables),
            losses=lambda: Losses(
                site.tunables.tooling_connect_backoff_start_ms / 1000,
                site.tunables.tooling_connect_backoff_cap_secs,
            ),
        )

    async def list_tools(self) -> list[Tool]:
        tools = await self._on_session(lambda peer: peer.list_tools())
        return [tool for tool in tools if self._is_included(tool.name)]

    def call_tool(self, call: ToolCall) -> Awaitable[ToolResult]:
        """Start a call. Where nothing has to be waited for first, it is under way without a task."""
        self._check_included(call.name)
        started = asyncio.get_running_loop().time()
        peer = self._connection.peer
        if peer is None or not self._subscriptions.all_written:
            return self._call_tool(call, started)
        return peer.call_tool(call, since=started, unsent=self._unsent)

    async def _call_tool(self, call: ToolCall, started: float) -> ToolResult:
        timeout = call.timeout
        if timeout is None:  # the config's limit is one of requests; a dial has its own
            return await self._on_session(lambda peer: peer.call_tool(call))
        return await self._on_session(
            lambda peer: peer.call_tool(call, since=started),
            within=lambda: self._connecting_by(started + timeout, f"call_tool {call.name!r}", timeout),
        )

    async def list_resources(self) -> list[ResourceInfo]:
        return await self._on_session(lambda peer: peer.list_resources())

    async def read_resource(self, uri: str) -> ResourceContent:
        return await self._on_session(lambda peer: peer.read_resource(uri))

    async def request(self, method: str, params: JsonObject | None) -> Json:
        return await self._on_session(lambda peer: peer.request(method, params))

    def subscribe_resource_list(self) -> Changes:
        return self._subscriptions.subscribe(None)

    def subscribe_resource(self, uri: str) -> Changes:
        return self._subscriptions.subscribe(uri)

    async def describe(self) -> JsonObject:
        """What the server says it is: name, version, protocol revision, capabilities. Connects."""
        return (await self._connection.ready()).describe()

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _on_session(
        self,
        operation: Callable[[Peer], Awaitable[T]],
        *,
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> T:
        """The outcome of an operation; what comes before its request happens `within` that block."""
        with within():
            if self._behind and self._lost is not None:
                await self._wait_ended(self._lost)
            peer = await self._connection.ready()
            if peer.is_broken:
                await self._wait_ended(peer)
                peer = await self._connection.ready()
            await self._subscriptions.wait_written()  # what was subscribed to before is asked for before
        try:
            return await operation(peer)
        except NotSent:
            with within():
                await self._wait_ended(peer)  # a server that no longer listens is given up within a moment
                peer = await self._connection.ready()
            return await operation(peer)

    async def _wait_ended(self, peer: Peer) -> None:
        """Wait for the end of a connection that was found dead. Those who wait here go on in their order."""
        self._lost = peer
        self._behind += 1
        try:
            if peer.ended.is_set():  # those who have waited are about to go on
                await anyio.lowlevel.checkpoint()
            else:
                await peer.ended.wait()
        finally:
            self._behind -= 1

    @contextmanager
    def _connecting_by(self, deadline: float, what: str, timeout: float) -> Generator[None]:
        """A call's own limit is one for everything: its dial, its request, and both again."""
        with anyio.CancelScope(deadline=deadline) as scope:
            yield
        if scope.cancelled_caught:
            raise RequestTimeout(about(self._site.name, what, f"no connection within {timeout:g} s"))

    def _check_included(self, tool: str) -> None:
        if not self._is_included(tool):
            problem = "the config leaves this tool out (include_tools, exclude_tools)"
            raise Unsupported(about(self._site.name, f"call_tool {tool!r}", problem))

    def _is_included(self, tool: str) -> bool:
        included = self._params.include_tools
        if included is None and not self._params.exclude_tools:
            return True
        if included is not None and not any(fnmatchcase(tool, pattern) for pattern in included):
            return False
        return not any(fnmatchcase(tool, pattern) for pattern in self._params.exclude_tools)

    def _on_peer(self, peer: Peer) -> None:
        peer.on_change(self._subscriptions.changed)
        peer.on_gap(self._subscriptions.missed)
        if self._site.on_progress is not None:
            peer.on_progress(self._site.on_progress)
