"""What answers the requests that a server makes of its client.

Given per tooling to `open_host(config, handlers={name: Handlers(...)})`. What is not given is refused, and
not declared to the server. Parameters and results are MCP JSON, as the specification writes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolpost.model import JsonObject

Handler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Takes the request's `params`, gives its result. Raise `ServerError` to refuse with a code of your own."""


@dataclass(frozen=True, kw_only=True)
class Handlers:
    """Answers to a server's own requests.

    async def ask(params: dict) -> dict:
        return {"action": "accept", "content": {"name": "Ada"}}

    open_host(config, handlers={"forms": Handlers(elicitation=ask, roots=["file:///srv/data"])})
    """

    roots: Sequence[str] | Callable[[], Awaitable[Sequence[str]]] | None = None
    """The `file://` URIs that the server may work in, or a function that gives them (`roots/list`)."""
    sampling: Handler | None = None
    """Asks a model for the server (`sampling/createMessage`)."""
    elicitation: Handler | None = None
    """Asks the user for the server (`elicitation/create`)."""
