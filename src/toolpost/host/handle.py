"""What an agent holds after `tooling.get(name)`: the tooling interface, the same for every kind.

Each operation checks its arguments, writes the trace, and only then has an effect. Queued calls and
subscriptions give their UUID at once; what they bring arrives in the agent's inbox under it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Mapping
from typing import NoReturn, cast

import anyio.lowlevel
import msgspec

from toolpost.errors import Unsupported, UsageError
from toolpost.host.context import AgentContext
from toolpost.host.inbox import Source
from toolpost.host.pump import deliver_call, pump_call, pump_subscription, started
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.tooling.port import Backend, Requests, ToolCall

MAX_DEPTH = 200
"""How deep arguments may be nested. The codecs on the way to a server give up at about 250."""


class Tooling:
    """A handle on one tooling. Cheap: it connects with the first call that needs the server."""

    def __init__(self, context: AgentContext, name: str, backend: Backend) -> None:
        self._context = context
        self._name = name
        self._backend = backend

    def kind(self) -> str:
        """Which implementation this is, such as `mcp`."""
        return self._backend.kind

    def name(self) -> str:
        """The configured name."""
        return self._name

    async def list_tools(self) -> list[Tool]:
        """Every tool of the server, asked for now: nothing is cached."""
        async with self._context.working("list_tools", self._name):
            self._record("list_tools")
            return await self._backend.list_tools()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Json] | str = "{}", *, timeout: float | None = None
    ) -> str:
        """Queue a call and give its UUID at once.

        Exactly one envelope follows under it, a `ToolResult` or an `Error`; none if it is cancelled first.

        Args:
            name: The tool.
            arguments: A mapping, or the JSON text of an object.
            timeout: Seconds until the call fails; None is the tooling's own limit.

        Raises:
            UsageError: The arguments are no JSON object. Nothing is queued.
            TooManyOpenCalls: `open_calls_bound` calls are queued already.
        """
        context = self._context
        try:
            context.check()
            call = tool_call(name, arguments, timeout, agent=context.name)
            context.inbox.check_can_open("call_tool")
            self._record("call_tool", name=name, arguments=call.arguments)
            source = context.inbox.open_source("call_tool")
            outcome = started(self._backend, call)
        except BaseException as error:
            await context.failed(error)
            raise
        if isinstance(outcome, asyncio.Future) and context.is_ours(outcome):
            context.follow(deliver_call, source, outcome, self._name)
            if not context.must_yield():
                return source.id
        else:
            context.start(pump_call, source, outcome, self._name)
        async with context.working("call_tool", self._name, name):
            return await self._opened(source)

    async def call_tool_blocking(
        self, name: str, arguments: Mapping[str, Json] | str = "{}", *, timeout: float | None = None
    ) -> ToolResult:
        """Call a tool and wait for its result.

        A failure that the tool reports is a result with `is_error`. Cancelling tells the server.

        Args:
            name: The tool.
            arguments: A mapping, or the JSON text of an object.
            timeout: Seconds until the call fails; None is the tooling's own limit.

        Raises:
            UsageError: The arguments are no JSON object.
            ServerError: The server refused the call.
            ConnectFailed: There is no connection, and none could be made.
            ConnectionLost: The connection died meanwhile; whether the call took effect is unknown.
            RequestTimeout: The server took too long.
        """
        try:
            outcome = self._begin(name, arguments, timeout)
        except BaseException as error:
            await self._context.failed(error)
            raise
        return await self._context.outcome(outcome, "call_tool_blocking", self._name, name)

    def is_open(self, uuid: str) -> bool:
        """Whether a queued call or a subscription of this agent has not come to its end.

        It ends when its last envelope enters the inbox, or is cancelled.
        """
        return self._context.inbox.is_open(uuid)

    async def cancel(self, uuid: str) -> None:
        """End a queued call (or a subscription), and tell the server.

        After it returns, nothing under that UUID is taken from the inbox any more. A UUID that is unknown,
        finished or another agent's has no effect.
        """
        await self._cancel("cancel", uuid)

    async def list_resources(self) -> list[ResourceInfo]:
        """Every resource that the server lists, asked for now."""
        async with self._context.working("list_resources", self._name):
            self._record("list_resources")
            return await self._backend.list_resources()

    async def read_resource(self, uri: str) -> ResourceContent:
        """The content of a resource.

        Raises:
            ResourceNotFound: The server knows none under that URI.
        """
        async with self._context.working("read_resource", self._name, uri):
            check_text("uri", uri)
            self._record("read_resource", uri=uri)
            return await self._backend.read_resource(uri)

    async def subscribe_resource_list(self) -> str:
        """Be told when the list of resources changes. Gives a UUID.

        Each `ResourceListUpdated` under it carries the new list. An `Error` under it ends it, unless it
        tells of a failed read-back.
        """
        async with self._context.working("subscribe_resource_list", self._name):
            self._context.inbox.check_can_open("subscribe_resource_list")
            self._record("subscribe_resource_list")
            source = self._context.inbox.open_source("subscribe_resource_list")
            self._context.start(pump_subscription, source, self._backend, self._name, None)
            return await self._opened(source)

    async def unsubscribe_resource_list(self, uuid: str) -> None:
        """End a subscription to the list of resources, as `cancel` does."""
        await self._cancel("unsubscribe_resource_list", uuid)

    async def subscribe_resource(self, uri: str) -> str:
        """Be told when one resource changes. Gives a UUID.

        Each `ResourceUpdated` under it carries the content after the change. An `Error` under it ends it,
        unless it tells of a failed read-back.
        """
        async with self._context.working("subscribe_resource", self._name, uri):
            check_text("uri", uri)
            self._context.inbox.check_can_open("subscribe_resource")
            self._record("subscribe_resource", uri=uri)
            source = self._context.inbox.open_source("subscribe_resource")
            self._context.start(pump_subscription, source, self._backend, self._name, uri)
            return await self._opened(source)

    async def unsubscribe_resource(self, uuid: str) -> None:
        """End a subscription to a resource, as `cancel` does."""
        await self._cancel("unsubscribe_resource", uuid)

    async def request(self, method: str, params: Mapping[str, Json] | None = None) -> Json:
        """Send any other request of the server's protocol, such as `prompts/list`; gives its raw result.

        Raises:
            Unsupported: The tooling's kind has no such requests.
        """
        async with self._context.working("request", self._name, method):
            check_text("method", method)
            if not isinstance(self._backend, Requests):
                raise Unsupported(f"tooling {self._name!r}: kind {self.kind()!r} has no raw requests")
            self._record("request", method=method)
            return await self._backend.request(method, None if params is None else dict(params))

    def __repr__(self) -> str:
        return f"<Tooling {self._name!r} of kind {self.kind()!r}>"

    def _record(self, op: str, **detail: Json) -> None:
        self._context.record(op, self._name, **detail)

    def _begin(
        self, name: str, arguments: Mapping[str, Json] | str, timeout: float | None
    ) -> Awaitable[ToolResult]:
        context = self._context
        context.check()
        call = tool_call(name, arguments, timeout, agent=context.name)
        self._record("call_tool_blocking", name=name, arguments=call.arguments)
        return self._backend.call_tool(call)

    def _begin_for_thread(
        self, name: str, arguments: Mapping[str, Json] | str = "{}", *, timeout: float | None = None
    ) -> Awaitable[ToolResult]:
        """`call_tool_blocking`, without a task where none is needed."""
        try:
            outcome = self._begin(name, arguments, timeout)
        except BaseException as error:
            return self._context.refused(error)
        return self._context.coming(outcome, "call_tool_blocking", self._name, name)

    async def _opened(self, source: Source) -> str:
        """The UUID, once the pump has had its first turn: what is called next reaches the server later."""
        try:
            await anyio.lowlevel.checkpoint()
        except BaseException:  # the caller never learns the UUID, so nobody else could end this source
            self._context.inbox.cancel(source.id)
            raise
        return source.id

    def _forsake(self, uuid: str) -> None:
        """A thread that opened a source was interrupted before it had the UUID."""
        self._context.inbox.cancel(uuid)

    async def _cancel(self, op: str, uuid: str) -> None:
        async with self._context.working(op, self._name):
            self._record(op, uuid=uuid)
            self._context.inbox.cancel(uuid)
            await anyio.lowlevel.checkpoint()


def tool_call(
    name: str, arguments: Mapping[str, Json] | str, timeout: float | None, *, agent: str = ""
) -> ToolCall:
    """A checked call, with arguments of its own: what the caller does to a mapping later changes nothing.

    Raises:
        UsageError: No name, no JSON object, or a time-out that is no positive number.
    """
    check_text("name", name)
    if timeout is not None and (not is_seconds(timeout) or timeout == 0):
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout!r}")
    if isinstance(arguments, str):
        own, text = _parse(arguments), arguments
    elif (plain := _plain_text(arguments)) is not None:
        own, text = dict(arguments), plain
    else:
        text = _to_text(arguments)
        own = _parse(text)
    return ToolCall(name=name, arguments=own, text=text, agent=agent, timeout=timeout)


def is_seconds(value: object) -> bool:
    """Whether a value is a length of time: a number, 0 or more."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def check_text(what: str, value: str) -> None:
    """Raise `UsageError` for what is no non-empty string."""
    if not isinstance(value, str) or not value:  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(f"{what} must be a non-empty string, not {value!r}")


_PLAIN = frozenset((str, int, bool, type(None)))
_KEYS = frozenset((str,))


def _plain_text(arguments: Mapping[str, Json]) -> str | None:
    """What `_to_text` gives for a flat dict of plain values, as most arguments are, at a third of the cost.

    None for everything else, good or bad.
    """
    if type(arguments) is not dict:
        return None
    given = cast("JsonObject", arguments)
    if not (_KEYS.issuperset(map(type, given)) and _PLAIN.issuperset(map(type, given.values()))):
        return None
    try:
        return msgspec.json.encode(given).decode()
    except (ValueError, OverflowError):  # half a surrogate pair, a number without end
        return None


def _to_text(arguments: Mapping[str, Json]) -> str:
    if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(
            f"arguments must be a mapping or the JSON text of an object, not {type(arguments).__name__}"
        )
    if wrong := [key for key in arguments if not isinstance(key, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(f"arguments must have strings as keys, not {wrong[0]!r}")
    try:
        return _encode(dict(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"arguments cannot be written as JSON: {error}") from None


_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89abAB]")
"""What may be one: raw, or as an escape (which may also be half of a good pair)."""


def _parse(text: str) -> JsonObject:
    try:
        parsed: Json = _decode(text)
        if _LONE_SURROGATE.search(text):
            json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError("arguments hold half of a surrogate pair, which no JSON text can carry") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"arguments are no JSON: {error}") from None
    if _opens(text) > MAX_DEPTH and _is_deeper(parsed, MAX_DEPTH):
        raise UsageError(f"arguments are nested more than {MAX_DEPTH} deep, which peers refuse to read")
    if not isinstance(parsed, dict):
        raise UsageError(f"arguments must be a JSON object, not {type(parsed).__name__}: MCP takes no other")
    return cast("JsonObject", parsed)


def _opens(text: str) -> int:
    return text.count("{") + text.count("[")


def _is_deeper(value: Json, levels: int) -> bool:
    inner: list[Json]
    if isinstance(value, dict):
        inner = list(cast("JsonObject", value).values())
    elif isinstance(value, list):
        inner = cast("list[Json]", value)
    else:
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):  # it would go out as `Infinity`, which is no JSON
        raise ValueError(f"{digits} is beyond every float")
    return number


# `json.dumps` and `json.loads` would make them anew for each call.
_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
