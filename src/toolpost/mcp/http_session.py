"""A session over HTTP: the handshake, and what its failures mean. Brings the SDK and aiohttp with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio

from toolpost.config import Tunables
from toolpost.errors import ConnectFailed
from toolpost.mcp.dispatcher import LineClosed
from toolpost.mcp.endpoint import BadEndpoint, Endpoint
from toolpost.mcp.faults import Busy, FinalFailure
from toolpost.mcp.get_stream import GetStream
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.http import HttpDispatcher
from toolpost.mcp.jsonrpc import NoAnswer
from toolpost.mcp.params import McpParams, request_timeout
from toolpost.mcp.peer import Peer
from toolpost.mcp.refusals import NotAServer, Refused
from toolpost.mcp.session import explained, shaken_hands
from toolpost.tooling.port import StartTask

OPENED_SECS = 1.0
"""How long the handshake waits for the stream of the server's own messages. What comes before it is open may
be lost, so subscriptions wait for it; a server that sends no headers before its first event is not waited
for in vain."""


@asynccontextmanager
async def open_http_peer(
    *,
    name: str,
    params: McpParams,
    tunables: Tunables,
    handlers: Handlers,
    deadline: float,
    skip_probe: bool,
    start_task: StartTask,
    prepare: Callable[[Peer], None],
) -> AsyncGenerator[Peer]:
    """A session that has shaken hands. Entered and left in one task. Leaving ends it at the server too.

    The server may speak unasked before the handshake is over: `prepare` gets the peer before it begins.

    Raises:
        ConnectFailed: The handshake failed; a `FinalFailure` if no retry can mend it.
    """
    endpoint = Endpoint(params)
    wire = HttpDispatcher(endpoint)
    peer = Peer(
        name,
        dispatcher=wire,
        timeout=request_timeout(params, tunables),
        handlers=handlers,
        describe_end=wire.describe_end,
        start_task=start_task,
    )
    prepare(peer)

    async def open_stream() -> None:
        stream = GetStream(wire)
        wire.start_task(stream.run)
        with anyio.move_on_after(OPENED_SECS):
            await stream.settled.wait()
        stream.is_late = not stream.settled.is_set()

    async def explain(failure: BaseException) -> ConnectFailed:
        match failure:
            case LineClosed(reason=reason):
                return ConnectFailed(f"the server {reason or wire.describe_end()}")
            case NotAServer(message=problem):
                return FinalFailure(f"the server {problem}")
            case Refused(status=401 | 403, message=said):
                return FinalFailure(f"the server {said}")
            case Refused(retry_after=float(secs), message=said):
                return Busy(f"the server {said}", secs)
            case NoAnswer(message=said):
                return ConnectFailed(f"the server {said}")
            case _:
                return explained(failure, tunables)

    wire.on_initialized = open_stream
    try:
        try:
            await endpoint.open()
        except BadEndpoint as error:
            raise FinalFailure(f"the server {error}") from None
        handshake = partial(peer.shake_hands, pinned=params.protocol, skip_probe=skip_probe)
        async with shaken_hands(peer, handshake, deadline=deadline, explain=explain):
            yield peer
    finally:
        await wire.delete_session()
        with anyio.CancelScope(shield=True):
            await endpoint.aclose()
