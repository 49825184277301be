"""What `import toolpost` gives inside a Python guest: both faces, on top of toolpost.wit.

It is no part of the package `toolpost` that hosts run: `toolpost wasm build` puts it into the component, so
that one source of an agent is both, an agent in Python and a guest. Names, parameters, values and errors are
those of the package; a test compares them. What is missing is missing in the sandbox.

A call stops the whole guest until it is answered, so nothing else goes on meanwhile in an async agent either:
it may await the calls of its host, and there is no event loop.
"""

from __future__ import annotations

import base64
import builtins
import json
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any, ClassVar, Literal, TypeAlias, cast

# Made by componentize-py, of toolpost.wit.
_types: Any = import_module("wit_world.imports.types")
_tooling: Any = import_module("wit_world.imports.tooling")
_host: Any = import_module("wit_world.imports.host")
_Err: Any = import_module("componentize_py_types").Err

# -- errors ----------------------------------------------------------------------------------------


class ToolpostError(Exception):
    """The root of what toolpost raises on purpose."""


class UsageError(ToolpostError):
    """The call cannot be right."""


class UnknownTooling(UsageError):
    """No tooling of that name, or none that this agent was granted."""


class Unsupported(ToolpostError):
    """The server, or the sandbox, does not offer this."""


class ServerError(ToolpostError):
    """The server answered with an error."""

    data: object = None

    def __init__(self, text: str) -> None:
        parts = re.fullmatch(r"(.*) \(code (-?\d+)\)", text, re.DOTALL)
        self.message, self.code = (parts[1], int(parts[2])) if parts else (text, -32603)
        super().__init__(text)


class ResourceNotFound(ServerError):
    """The server knows no resource under that URI."""


class ConnectFailed(ToolpostError):
    """No connection could be made."""


class ConnectionLost(ToolpostError):
    """The connection died while a request was under way; whether it took effect is unknown."""


class RequestTimeout(ToolpostError):
    """The server did not answer within the limit."""


class RecvTimeout(ToolpostError):
    """No envelope arrived in time."""


class TooManyOpenCalls(ToolpostError):
    """Take some envelopes before queueing more calls."""


class HostClosed(ToolpostError):
    """The host has ended, or is ending."""


class ScriptError(ToolpostError, AssertionError):
    """A mock was called in a way that its script does not have."""


def _raised(text: str) -> Exception:
    """The exception that a text of the interface tells of."""
    name, _, message = text.partition(": ")
    kind: Any = globals().get(name) or getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:  # it takes more than a text, as `UnicodeDecodeError` does
            pass
    return ToolpostError(text)


def _call(function: Callable[..., Any], *args: object) -> Any:
    try:
        return function(*args)
    except _Err as error:
        raise _raised(error.value) from None


# -- values ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as the server lists it."""

    name: str
    description: str | None = None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    title: str | None = None
    annotations: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool answered."""

    kind: ClassVar[Literal["tool-result"]] = "tool-result"

    name: str
    arguments: str
    value: str
    content: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    structured_content: Any = None
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class ResourceInfo:
    """A resource as the server lists it."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceContent:
    """The content of one resource at the moment it was read."""

    uri: str
    mime_type: str | None = None
    content: str
    encoding: Literal["text", "base64"] = "text"
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def text(self) -> str:
        """The content as text; binary is decoded as UTF-8."""
        return self.content if self.encoding == "text" else self.bytes().decode()

    def bytes(self) -> bytes:
        """The content as bytes; text is encoded as UTF-8."""
        return self.content.encode() if self.encoding == "text" else base64.b64decode(self.content)


@dataclass(frozen=True)
class Error:
    """A queued call or a subscription failed, or a read-back after an update did."""

    kind: ClassVar[Literal["error"]] = "error"

    text: str


@dataclass(frozen=True)
class ResourceListUpdated:
    """The list of resources changed; here is the new one."""

    kind: ClassVar[Literal["resource-list-updated"]] = "resource-list-updated"

    resources: list[ResourceInfo]


@dataclass(frozen=True, kw_only=True)
class ResourceUpdated(ResourceContent):
    """A subscribed resource changed; here is its content, read after the change."""

    kind: ClassVar[Literal["resource-updated"]] = "resource-updated"


@dataclass(frozen=True)
class Shutdown:
    """The host is ending. The last envelope of every inbox; its id is empty."""

    kind: ClassVar[Literal["shutdown"]] = "shutdown"


Event: TypeAlias = ToolResult | Error | ResourceListUpdated | ResourceUpdated | Shutdown


@dataclass(frozen=True)
class Envelope:
    """One item of an inbox."""

    id: str
    event: Event


def _optional_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _tool(each: Any) -> Tool:
    return Tool(
        name=each.name,
        description=each.description,
        input_schema=json.loads(each.input_schema),
        output_schema=_optional_json(each.output_schema),
        title=each.title,
        annotations=_optional_json(each.annotations),
    )


def _tool_result(each: Any) -> ToolResult:
    return ToolResult(
        name=each.name,
        arguments=each.arguments,
        value=each.value,
        content=json.loads(each.content),
        structured_content=_optional_json(each.structured_content),
        is_error=each.is_error,
    )


def _resource_info(each: Any) -> ResourceInfo:
    return ResourceInfo(uri=each.uri, name=each.name, description=each.description, mime_type=each.mime_type)


def _content(kind: type[ResourceContent], each: Any) -> Any:
    return kind(
        uri=each.uri,
        mime_type=each.mime_type,
        content=each.content,
        encoding=each.encoding.name.lower(),
        parts=json.loads(each.parts),
    )


def _envelope(each: Any) -> Envelope:
    event = each.event
    if isinstance(event, _types.Event_ToolResult):
        return Envelope(each.id, _tool_result(event.value))
    if isinstance(event, _types.Event_Error):
        return Envelope(each.id, Error(event.value))
    if isinstance(event, _types.Event_ResourceListUpdated):
        return Envelope(each.id, ResourceListUpdated([_resource_info(info) for info in event.value]))
    if isinstance(event, _types.Event_ResourceUpdated):
        return Envelope(each.id, _content(ResourceUpdated, event.value))
    return Envelope(each.id, Shutdown())


# -- the host --------------------------------------------------------------------------------------


class SyncTooling:
    """A handle on one tooling."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def kind(self) -> str:
        """Which implementation this is, such as `mcp`."""
        return self._handle.kind()

    def name(self) -> str:
        """The configured name."""
        return self._handle.name()

    def list_tools(self) -> list[Tool]:
        """Every tool of the server."""
        return [_tool(each) for each in _call(self._handle.list_tools)]

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, timeout: float | None = None
    ) -> str:
        """Queue a call and give its UUID at once."""
        return _call(self._handle.call_tool, *_arguments(name, arguments, timeout))

    def call_tool_blocking(
        self, name: str, arguments: Mapping[str, Any] | str = "{}", *, timeout: float | None = None
    ) -> ToolResult:
        """Call a tool and wait for its result."""
        return _tool_result(_call(self._handle.call_tool_blocking, *_arguments(name, arguments, timeout)))

    def is_open(self, uuid: str) -> bool:
        """Whether a queued call or a subscription of this agent has not come to its end."""
        return self._handle.is_open(_text("uuid", uuid))

    def cancel(self, uuid: str) -> None:
        """End a queued call (or a subscription), and tell the server."""
        self._handle.cancel(_text("uuid", uuid))

    def list_resources(self) -> list[ResourceInfo]:
        """Every resource that the server lists."""
        return [_resource_info(each) for each in _call(self._handle.list_resources)]

    def read_resource(self, uri: str) -> ResourceContent:
        """The content of a resource."""
        return _content(ResourceContent, _call(self._handle.read_resource, _text("uri", uri)))

    def subscribe_resource_list(self) -> str:
        """Be told when the list of resources changes. Gives a UUID."""
        return _call(self._handle.subscribe_resource_list)

    def unsubscribe_resource_list(self, uuid: str) -> None:
        """End a subscription to the list of resources."""
        self._handle.unsubscribe_resource_list(_text("uuid", uuid))

    def subscribe_resource(self, uri: str) -> str:
        """Be told when one resource changes. Gives a UUID."""
        return _call(self._handle.subscribe_resource, _text("uri", uri))

    def unsubscribe_resource(self, uuid: str) -> None:
        """End a subscription to a resource."""
        self._handle.unsubscribe_resource(_text("uuid", uuid))

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Not there for guests."""
        raise Unsupported(f"a guest can make no raw requests, such as {method!r}")


class SyncToolings:
    """The toolings that this agent can use, by name."""

    def get(self, name: str) -> SyncTooling:
        """The handle of a tooling."""
        return SyncTooling(_handle(name))


class SyncHost:
    """What an agent has of the house."""

    def __init__(self) -> None:
        self.tooling: Any = SyncToolings()

    @cached_property
    def name(self) -> str:
        """The agent's name in the config."""
        return _host.name()

    @cached_property
    def params(self) -> dict[str, Any]:
        """The table `params` of the agent's config."""
        return json.loads(_host.params())

    def recv(self, timeout: float | None = None) -> Envelope:
        """The next envelope of the inbox, waited for."""
        wrong = "timeout must be a number of seconds, 0 or more"
        return _envelope(_call(_host.recv, None if timeout is None else _seconds(timeout, wrong)))

    def try_recv(self) -> Envelope | None:
        """The next envelope if one waits, else None."""
        envelope = _call(_host.try_recv)
        return None if envelope is None else _envelope(envelope)

    def log(self, message: str, level: str = "info") -> None:
        """Write to the log."""
        known = {each.name.lower(): each for each in _host.Level}
        if not isinstance(level, str) or level.lower() not in known:  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
            raise UsageError(f"unknown log level {level!r}; use debug, info, warning or error")
        _host.log(_sound(str(message)), known[level.lower()])

    def now(self) -> float:
        """Seconds since the epoch, never going back."""
        return _host.now()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        _host.sleep(_seconds(seconds, "sleep takes a number of seconds, 0 or more"))


def _awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method for async agents: done at once, when it is awaited."""

    @wraps(method)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return method(self, *args, **kwargs)

    return call


class Tooling(SyncTooling):
    """A handle on one tooling, for async agents."""

    list_tools = _awaited(SyncTooling.list_tools)
    call_tool = _awaited(SyncTooling.call_tool)
    call_tool_blocking = _awaited(SyncTooling.call_tool_blocking)
    cancel = _awaited(SyncTooling.cancel)
    list_resources = _awaited(SyncTooling.list_resources)
    read_resource = _awaited(SyncTooling.read_resource)
    subscribe_resource_list = _awaited(SyncTooling.subscribe_resource_list)
    unsubscribe_resource_list = _awaited(SyncTooling.unsubscribe_resource_list)
    subscribe_resource = _awaited(SyncTooling.subscribe_resource)
    unsubscribe_resource = _awaited(SyncTooling.unsubscribe_resource)
    request = _awaited(SyncTooling.request)


class Toolings:
    """The toolings that this agent can use, by name."""

    def get(self, name: str) -> Tooling:
        """The handle of a tooling."""
        return Tooling(_handle(name))


class Host(SyncHost):
    """What an async agent has of the house."""

    def __init__(self) -> None:
        self.tooling: Any = Toolings()

    recv = _awaited(SyncHost.recv)
    sleep = _awaited(SyncHost.sleep)


MAX_DEPTH = 200


def _handle(name: str) -> Any:
    return _call(_tooling.get, _text("name", name))


def _arguments(name: str, arguments: Mapping[str, Any] | str, timeout: float | None) -> tuple[Any, ...]:
    wrong = "timeout must be a positive number of seconds"
    if timeout == 0:
        raise UsageError(f"{wrong}, not {timeout!r}")
    text = arguments if isinstance(arguments, str) else _json_object(arguments)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("arguments hold half of a surrogate pair, which no JSON text can carry") from None
    return (
        _text("name", name),
        text,
        None if timeout is None else _seconds(timeout, wrong),
    )


def _json_object(arguments: Mapping[str, Any]) -> str:
    if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        kind = type(arguments).__name__
        raise UsageError(f"arguments must be a mapping or the JSON text of an object, not {kind}")
    if wrong := [key for key in arguments if not isinstance(key, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(f"arguments must have strings as keys, not {wrong[0]!r}")
    if _is_deeper(arguments, MAX_DEPTH):  # the encoder would exhaust the stack, which is a trap
        raise UsageError(f"arguments are nested more than {MAX_DEPTH} deep, which peers refuse to read")
    try:
        return json.dumps(dict(arguments), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"arguments cannot be written as JSON: {error}") from None


def _is_deeper(value: Any, levels: int) -> bool:
    if isinstance(value, Mapping):
        inner = tuple(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, list | tuple):
        inner = cast("tuple[Any, ...]", value)
    else:
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _text(what: str, value: str) -> str:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]: it would trap
        raise UsageError(f"{what} must be a non-empty string, not {value!r}")
    return _sound(value)


def _sound(text: str) -> str:
    return text.encode(errors="replace").decode()


def _seconds(value: float, wrong: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # pyright: ignore[reportUnnecessaryIsInstance]: it would trap
        raise UsageError(f"{wrong}, not {value!r}")
    return float(value)


# -- the world -------------------------------------------------------------------------------------


def guest(run: Callable[[Any], Any]) -> type:
    """The world's export, of an agent's `run`."""

    def value_of() -> object:
        if not iscoroutinefunction(run):
            return run(SyncHost())
        steps = run(Host())
        try:
            steps.send(None)
        except StopIteration as returned:
            return returned.value
        steps.close()
        raise RuntimeError("an async agent in a guest can await the calls of its host, and nothing else")

    class World:
        def run(self) -> str | None:
            try:
                value = value_of()
            except BaseException as error:
                sys.stdout.flush()
                traceback.print_exc()
                said = _sound(str(error))
                raise _Err(f"{type(error).__name__}: {said}" if said else type(error).__name__) from None
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
            if value is None or isinstance(value, str):
                return value
            raise _Err(f"it returned {value!r}; an agent returns None or a string")

    return World
