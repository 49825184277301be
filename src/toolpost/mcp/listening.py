"""One stream of `subscriptions/listen` (from 2026-07-28 on), in toolpost's errors. Brings the SDK with it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import anyio
from mcp.client.subscriptions import ListenNotSupportedError, Subscription, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError

from toolpost.errors import ConnectionLost, RequestTimeout, ServerError, Unsupported
from toolpost.mcp.dispatcher import LineClosed
from toolpost.mcp.jsonrpc import NoAnswer, told
from toolpost.model import JsonObject

if TYPE_CHECKING:
    from toolpost.mcp.peer import Peer


@asynccontextmanager
async def open_stream(
    peer: Peer,
    uri: str | None,
    *,
    worded: Callable[[object], str],
    timeout: float,
) -> AsyncGenerator[AsyncIterator[None]]:
    """The changes of a resource, or of the list (None), until the server ends the stream or is gone.

    Args:
        peer: The session to listen on.
        uri: The resource.
        worded: Makes the text of an error of a cause.
        timeout: Seconds that the server may take to confirm.

    Raises:
        ServerError: The server refused.
        RequestTimeout: It did not confirm.
        Unsupported: It agreed to tell of nothing.
        ConnectionLost: It was gone before it confirmed, or what carries the stream was.
    """
    async with AsyncExitStack() as stack:
        try:
            with anyio.fail_after(timeout):
                stream = await stack.enter_async_context(
                    listen(
                        peer.session,
                        resources_list_changed=uri is None,
                        resource_subscriptions=() if uri is None else (uri,),
                    )
                )
        except TimeoutError:
            raise RequestTimeout(worded(f"the server did not confirm within {timeout:g} s")) from None
        except ListenNotSupportedError as error:
            raise Unsupported(worded(error)) from None
        except (MCPError, SubscriptionLost) as error:
            if peer.ended.is_set():
                raise ConnectionLost(worded("the connection was lost")) from None
            if isinstance(error, SubscriptionLost) or _may_pass(error):
                raise ConnectionLost(worded(f"the stream was lost: {_reason(error)}")) from None
            raise ServerError(worded(told(error)), code=error.code) from None
        honored = stream.honored
        if not (honored.resources_list_changed if uri is None else honored.resource_subscriptions):
            raise Unsupported(worded("the server agreed to tell of nothing"))
        yield _changes(stream)


def _may_pass(error: MCPError) -> bool:
    """Whether it is not the server's last word: what carried the request broke, or the server is busy."""
    data: object = error.data
    status = cast("JsonObject", data).get("status", 0) if isinstance(data, dict) else 0
    return isinstance(error, LineClosed) or (isinstance(error, NoAnswer) and (status == 429 or status >= 500))


def _reason(error: Exception) -> str:
    return told(error) if isinstance(error, NoAnswer) else str(error)


async def _changes(stream: Subscription) -> AsyncGenerator[None]:
    try:
        async for _ in stream:
            yield
    except SubscriptionLost:
        pass
