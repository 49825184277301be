"""One stream of `subscriptions/listen` (from 2026-07-28 on), in toolpost's errors. Brings the SDK with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from mcp.client.subscriptions import ListenNotSupportedError, Subscription, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError

from toolpost.errors import ConnectionLost, RequestTimeout, ServerError, Unsupported

if TYPE_CHECKING:
    from toolpost.mcp.peer import Peer


@asynccontextmanager
async def open_stream(
    peer: Peer,
    uri: str | None,
    *,
    worded: Callable[[object], str],
    timeout: float,
    on_written: Callable[[], None],
) -> AsyncGenerator[AsyncIterator[None]]:
    """The changes of a resource, or of the list (None), until the server ends the stream or is gone.

    Args:
        peer: The session to listen on.
        uri: The resource.
        worded: Makes the text of an error of a cause.
        timeout: Seconds that the server may take to confirm.
        on_written: Called once the request has been written.

    Raises:
        ServerError: The server refused.
        RequestTimeout: It did not confirm.
        Unsupported: It agreed to tell of nothing.
        ConnectionLost: It was gone before it confirmed.
    """
    async with AsyncExitStack() as stack:
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, on_written)  # `listen` writes in a task of its own, one turn from now
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
            code = error.code if isinstance(error, MCPError) else 0
            raise ServerError(worded(f"the server answered: {error}"), code=code) from None
        honored = stream.honored
        if not (honored.resources_list_changed if uri is None else honored.resource_subscriptions):
            raise Unsupported(worded("the server agreed to tell of nothing"))
        yield _changes(stream)


async def _changes(stream: Subscription) -> AsyncGenerator[None]:
    try:
        async for _ in stream:
            yield
    except SubscriptionLost:
        pass
