"""A session over a started process: the handshake, and what its failures mean. Brings the SDK with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import cast

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from toolpost.config import Tunables
from toolpost.errors import ConnectFailed
from toolpost.mcp import malformed
from toolpost.mcp.dispatcher import LineClosed
from toolpost.mcp.environment import HINT
from toolpost.mcp.faults import DiedOnProbe, FinalFailure
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.line import LineDispatcher
from toolpost.mcp.malformed import WithoutInput
from toolpost.mcp.params import McpParams, request_timeout
from toolpost.mcp.peer import Peer
from toolpost.mcp.process import Spawned
from toolpost.model import Json, JsonObject
from toolpost.secret import get_logger
from toolpost.tooling.port import StartTask

# The SDK's loggers, and ours: what they quote of a server is masked.
for _name in ("client", "mcp.client.subscriptions", "mcp.shared.dispatcher", "toolpost.mcp"):
    WithoutInput.put_on(get_logger(_name))

EXIT_STATUS_SECS = 1.0
"""How long a failed start waits for the exit status that explains it."""


@asynccontextmanager
async def open_peer(
    spawned: Spawned,
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
    """A session that has shaken hands. Entered and left in one task. The connection masks what it raises.

    `prepare` gets the peer before the handshake begins.

    Raises:
        ConnectFailed: The handshake failed; a `FinalFailure` if no retry can mend it.
        DiedOnProbe: The server left over `server/discover`.
    """
    dispatcher = LineDispatcher(spawned)
    peer = Peer(
        name,
        dispatcher=dispatcher,
        timeout=request_timeout(params, tunables),
        handlers=handlers,
        describe_end=spawned.describe_end,
        start_task=start_task,
    )
    prepare(peer)

    async def explain(failure: BaseException) -> ConnectFailed:
        if not isinstance(failure, LineClosed):
            return explained(failure, tunables, dispatcher.strange() + spawned.last_words())
        if failure.reason is not None:
            return FinalFailure(f"the server {failure.reason}")
        await spawned.wait_exited(EXIT_STATUS_SECS)
        text = f"the server {spawned.describe_end()}\n  ({HINT})"
        may_retry_without_probe = not skip_probe and params.protocol is None
        return DiedOnProbe(text) if may_retry_without_probe else ConnectFailed(text)

    handshake = partial(peer.shake_hands, pinned=params.protocol, skip_probe=skip_probe)
    async with shaken_hands(peer, handshake, deadline=deadline, explain=explain):
        yield peer


@asynccontextmanager
async def shaken_hands(
    peer: Peer,
    handshake: Callable[[], Awaitable[None]],
    *,
    deadline: float,
    explain: Callable[[BaseException], Awaitable[ConnectFailed]],
) -> AsyncGenerator[None]:
    """The session of a peer, from its handshake on. A failure is raised as `explain` words it."""
    failure: BaseException | None = None
    with closing(peer.limits):
        async with peer.session:
            try:
                with anyio.fail_after(deadline - anyio.current_time()):
                    await handshake()
            except (MCPError, ConnectFailed, TimeoutError, ValidationError) as error:
                failure = error  # raised outside: in here it would come out as a group
            else:
                yield
    if failure is not None:
        raise await explain(failure) from None


def explained(failure: BaseException, tunables: Tunables, last_words: str = "") -> ConnectFailed:
    """What a failed handshake means, where that is the same over every transport."""
    match failure:
        case MCPError(code=code) if code == UNSUPPORTED_PROTOCOL_VERSION or _versions(failure):
            spoken = _versions(failure)
            return FinalFailure(f"the server refused the protocol version: {failure.message}{spoken}")
        case MCPError():
            return ConnectFailed(f"the server refused the handshake: {failure.message} (code {failure.code})")
        case TimeoutError():
            limit = tunables.tooling_connect_timeout_secs
            return ConnectFailed(f"the server did not answer the handshake within {limit:g} s{last_words}")
        case ValidationError():
            problem = malformed.problem(failure)
            return ConnectFailed(f"the server's answer to the handshake is malformed: {problem}")
        case _:
            return FinalFailure(str(failure))


def _versions(error: MCPError) -> str:
    """The versions that a server says it speaks, as the end of a sentence; so it refused ours."""
    data: object = error.data
    supported = cast("JsonObject", data).get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list):
        return ""
    return f"; it speaks {', '.join(map(str, cast('list[Json]', supported)))} (key `protocol`)"
