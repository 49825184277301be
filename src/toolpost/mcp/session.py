"""A session over a started process: the handshake, and what its failures mean. Brings the SDK with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from toolpost.config import Tunables
from toolpost.errors import ConnectFailed
from toolpost.mcp.dispatcher import LineClosed, LineDispatcher
from toolpost.mcp.environment import HINT
from toolpost.mcp.faults import DiedOnProbe, FinalFailure
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.malformed import WithoutInput
from toolpost.mcp.params import McpParams, request_timeout
from toolpost.mcp.peer import Peer
from toolpost.mcp.process import Spawned
from toolpost.secret import get_logger

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
) -> AsyncGenerator[Peer]:
    """A session that has shaken hands. Entered and left in one task. The connection masks what it raises.

    Raises:
        ConnectFailed: The handshake failed; a `FinalFailure` if no retry can mend it.
        DiedOnProbe: The server left over `server/discover`.
    """
    peer = Peer(
        name,
        dispatcher=LineDispatcher(spawned),
        timeout=request_timeout(params, tunables),
        handlers=handlers,
        describe_end=spawned.describe_end,
    )
    failure: BaseException | None = None
    async with peer.session:
        try:
            with anyio.fail_after(deadline - anyio.current_time()):
                await peer.shake_hands(pinned=params.protocol, skip_probe=skip_probe)
        except (MCPError, ConnectFailed, TimeoutError, ValidationError) as error:
            failure = error  # raised outside: in here it would come out as a group
        else:
            yield peer
    if failure is not None:
        may_retry_without_probe = not skip_probe and params.protocol is None
        raise await _explain(failure, spawned, tunables, may_retry_without_probe) from None


async def _explain(
    failure: BaseException, spawned: Spawned, tunables: Tunables, may_retry_without_probe: bool
) -> ConnectFailed:
    match failure:
        case LineClosed():
            await spawned.wait_exited(EXIT_STATUS_SECS)
            text = f"the server {spawned.describe_end()}\n  ({HINT})"
            return DiedOnProbe(text) if may_retry_without_probe else ConnectFailed(text)
        case MCPError(code=code) if code == UNSUPPORTED_PROTOCOL_VERSION:
            return FinalFailure(f"the server refused the protocol version: {failure.message}")
        case MCPError():
            return ConnectFailed(f"the server refused the handshake: {failure.message} (code {failure.code})")
        case TimeoutError():
            limit, said = tunables.tooling_connect_timeout_secs, spawned.last_words()
            return ConnectFailed(f"the server did not answer the handshake within {limit:g} s{said}")
        case ValidationError():
            return ConnectFailed("the server's answer to the handshake is malformed")
        case _:
            return FinalFailure(str(failure))
