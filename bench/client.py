"""What each client that is measured can do. Standard library only: every peer's environment imports this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

SERVERS = Path(__file__).parent / "servers"
RESOURCES = 64
"""So many the server has; its updates go round."""


@dataclass(frozen=True)
class Target:
    """The server to connect to: a command, or a URL."""

    command: list[str] = field(default_factory=list[str])
    url: str = ""


class Client(Protocol):
    """A client with one connection."""

    def __init__(self, mode: str) -> None:
        """`mode` is the word behind the client's name: `toolpost:untraced`."""

    async def open(self, target: Target) -> None:
        """Connect."""

    async def watch(self, on_update: Callable[[], None]) -> None:
        """Call `on_update` for each update of a resource that the server tells of from now on."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text that a tool answers with."""
        ...

    async def close(self) -> None:
        """Disconnect."""


def method_of(message: Any) -> str:
    """The method of a notification of the SDK, 1 or 2."""
    return getattr(getattr(message, "root", message), "method", "")


class Updates:
    """What the SDK and its like take as a handler of messages: calls what `watch` is given."""

    def __init__(self) -> None:
        self.on_update: Callable[[], None] = lambda: None

    async def __call__(self, message: Any) -> None:
        if method_of(message) == "notifications/resources/updated":
            self.on_update()


class Watching:
    """The `watch` of a client whose handler of messages is given when it is made."""

    def __init__(self, mode: str) -> None:
        self.updates = Updates()

    async def watch(self, on_update: Callable[[], None]) -> None:
        self.updates.on_update = on_update
