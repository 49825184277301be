"""The handlers of a server's own requests, as the SDK's session takes them. Brings the SDK with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import mcp_types as types

from toolpost.errors import ServerError
from toolpost.mcp import convert
from toolpost.mcp.handlers import Handler, Handlers, uris
from toolpost.model import JsonObject
from toolpost.secret import get_logger

_log = get_logger("toolpost.mcp")


def client_info() -> types.Implementation:
    """How toolpost names itself to servers."""
    return types.Implementation(name="toolpost", version=version("toolpost"))


def capabilities(handlers: Handlers) -> types.ClientCapabilities:
    """What the handlers let us declare; the same as the session declares for its callbacks."""
    elicitation = types.ElicitationCapability(
        form=types.FormElicitationCapability(), url=types.UrlElicitationCapability()
    )
    return types.ClientCapabilities(
        roots=None if handlers.roots is None else types.RootsCapability(list_changed=True),
        sampling=None if handlers.sampling is None else types.SamplingCapability(),
        elicitation=None if handlers.elicitation is None else elicitation,
    )


def callbacks_of(handlers: Handlers) -> dict[str, Any]:
    """The handlers as the session takes them; those that are missing are not declared."""
    callbacks: dict[str, Any] = {}
    if (roots := handlers.roots) is not None:

        async def list_roots(params: JsonObject) -> JsonObject:
            given = await roots() if callable(roots) else roots
            return {"roots": [{"uri": uri} for uri in uris(given)]}

        callbacks["list_roots_callback"] = _answering(list_roots, types.ListRootsResult)
    if (sampling := handlers.sampling) is not None:
        callbacks["sampling_callback"] = _answering(sampling, types.CreateMessageResult)
    if (elicitation := handlers.elicitation) is not None:
        callbacks["elicitation_callback"] = _answering(elicitation, types.ElicitResult)
    return callbacks


def _answering(handler: Handler, result: type[Any]) -> Callable[..., Awaitable[Any]]:
    async def answer(context: object, params: Any = None) -> Any:
        try:
            return result.model_validate(await handler({} if params is None else convert.dump(params)))
        except ServerError as error:
            return types.ErrorData(code=error.code, message=error.message, data=error.data)
        except Exception:  # the server is not told what: it is no business of its
            _log.exception("a handler of requests of the server raised")
            return types.ErrorData(code=types.INTERNAL_ERROR, message="Internal error")

    return answer
