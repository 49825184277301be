"""The port: what every backend fulfils, the built-in kinds and yours alike.

Above it stand handles and pumps, which know inboxes, agents and UUIDs; below it a server, a script, or
whatever a kind is made of. A backend knows nothing of what stands above.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from toolpost.events import Error, ResourceListUpdated, ResourceUpdated
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult

if TYPE_CHECKING:
    from toolpost.trace.log import Trace


class _Changed(enum.Enum):
    CHANGED = "changed"


CHANGED: Final = _Changed.CHANGED
"""A change without its value: the pump reads the list or the content back."""

Change: TypeAlias = Literal[_Changed.CHANGED] | ResourceListUpdated | ResourceUpdated | Error
"""One item of a subscription's stream: `CHANGED`, or a finished value that is delivered as it is. An `Error`
tells of a change that could not be read, and the stream goes on; raise to end it."""

Changes: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Change]]
"""A subscription: entering it subscribes (and raises where that fails), leaving it cancels."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call on its way to a backend."""

    name: str
    arguments: JsonObject
    text: str
    """The arguments as JSON text, for `ToolResult.arguments`."""
    agent: str = ""
    """Who calls."""
    timeout: float | None = None
    """Seconds; None is the tooling's own limit, `math.inf` no limit."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a tool call has come, in its server's words."""

    tool: str
    progress: float
    """Grows with each report; its unit is the server's own."""
    total: float | None = None
    """What `progress` will be at the end, where the server knows it."""
    message: str | None = None


class Backend(Protocol):
    """One configured tooling at work. All agents of a host share it.

    Every operation connects first where that is needed, and raises a `ToolpostError` that names
    tooling, operation and cause. Being cancelled, an operation tells the server where it can.
    """

    @property
    def kind(self) -> str:
        """The name of the implementation, such as `mcp`."""
        ...

    async def list_tools(self) -> list[Tool]:
        """Every tool, all pages."""
        ...

    def call_tool(self, call: ToolCall) -> Awaitable[ToolResult]:
        """Start a call and return its outcome to await.

        A plain function, so that calls reach the backend in the order in which they were made: what
        must be in order (taking a mock's step, writing a request) is done before it returns.

        An `asyncio.Future` is under way as it is: to cancel it is to cancel the call. Any other awaitable
        is awaited in a task, and costs one.
        """
        ...

    async def list_resources(self) -> list[ResourceInfo]:
        """Every resource, all pages."""
        ...

    async def read_resource(self, uri: str) -> ResourceContent:
        """The content of one resource."""
        ...

    def subscribe_resource_list(self) -> Changes:
        """A stream of changes of the list of resources."""
        ...

    def subscribe_resource(self, uri: str) -> Changes:
        """A stream of changes of one resource."""
        ...

    async def aclose(self) -> None:
        """End everything that the backend holds. Called once, when the host ends."""
        ...


@runtime_checkable
class Requests(Protocol):
    """What a backend has besides, if it can send any request of its protocol (kind `mcp`)."""

    async def request(self, method: str, params: JsonObject | None) -> Json:
        """Send one request and give its raw result."""
        ...


@runtime_checkable
class Describes(Protocol):
    """What a backend has besides, if there is a server that says what it is (kind `mcp`)."""

    async def describe(self) -> JsonObject:
        """What the server says of itself. Connects."""
        ...


class StartTask(Protocol):
    """Starts a task whose parent is the host: it is cancelled and awaited when the host ends."""

    def __call__(self, func: Callable[..., Coroutine[Any, Any, object]], /, *args: object) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a host gives a backend to stand on."""

    name: str
    """The tooling's configured name."""
    start_task: StartTask
    """Background work of the backend has the host as its parent."""
    on_state: Callable[[str], None]
    """Tells the trace of a change of the connection's state."""
    tunables: Any
    """The config's `Tunables`."""
    trace: Trace | None = None
    """The record of the run, to look at; None where there is none (`trace=False`)."""
    on_progress: Callable[[Progress], None] | None = None
    """Told how far tool calls have come; None where nobody looks on. It goes to no inbox and no trace."""
    extras: Any = None
    """What a program handed to `open_host` for this tooling (kind `mcp`: its `Handlers`)."""
