"""What answers the requests that a server makes of its client.

Given per tooling to `open_host(config, handlers={name: Handlers(...)})`. What is not given is refused, and
not declared to the server. Parameters and results are MCP JSON, as the specification writes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from toolpost.errors import UsageError
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

    def __post_init__(self) -> None:
        """Refuse what could only fail later, when the server asks.

        Raises:
            UsageError: `roots` is no list and no function, or another handler is no function.
        """
        if self.roots is not None and not callable(self.roots):
            uris(self.roots)
        for name in ("sampling", "elicitation"):
            handler = getattr(self, name)
            if handler is not None and not callable(handler):
                raise UsageError(f"{name} must be a function, not {type(handler).__name__}")


def uris(roots: object) -> Sequence[str]:
    """The roots as a list of URIs. A bare string is a sequence of strings too, and never meant as one.

    Raises:
        UsageError: They are none.
    """
    if isinstance(roots, Sequence) and not isinstance(roots, str | bytes | bytearray | memoryview):
        items = cast("Sequence[object]", roots)
        if all(isinstance(each, str) for each in items):
            return cast("Sequence[str]", items)
    raise UsageError("roots must be a list of URIs, or a function that gives one")
