"""One live session with a server: the handshake of either era, and every operation on it.

Lives as long as its connection, inside the connection's task; its operations may be awaited from any task
of the loop. It speaks in toolpost's values and errors; the connection that holds it adds nothing to them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from toolpost.errors import (
    ConnectionLost,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    ToolpostError,
    Unsupported,
)
from toolpost.mcp import convert, listed, malformed, results
from toolpost.mcp.callbacks import callbacks_of, client_info
from toolpost.mcp.calling import Calling, Unsent
from toolpost.mcp.clock import Clock, Limits
from toolpost.mcp.dispatcher import LineClosed, WireDispatcher
from toolpost.mcp.faults import NotSent, about
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.handshake import Handshake
from toolpost.mcp.jsonrpc import told
from toolpost.mcp.lenient import Lenient
from toolpost.mcp.outputs import Outputs
from toolpost.mcp.pages import Page, T, every_item
from toolpost.mcp.promise import Onlooker, Promise
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.secret import get_logger, mask, mask_json
from toolpost.tooling.port import Progress, StartTask, ToolCall

INPUT_ROUNDS = 10
"""How often one request may ask for input (2026-07-28) before it is given up."""
LEARN_SECS = 5.0
"""How long a result waits for the list of tools that says what it must look like."""
RESOURCE_NOT_FOUND = -32002
"""Until 2025-11-25; from 2026-07-28 on -32602 with the URI in `data`."""

_log = get_logger("toolpost.mcp")
_INPUT = TypeAdapter(types.InputRequiredResult)
_READ: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_AnyRequest = types.Request[JsonObject | None, str]  # as it stands it would keep no params but its own


class _Ready:
    """A request whose params are JSON: the session dumps it, and there is no model to check and to walk.

    The session writes into the params, so they are made for each request.
    """

    __slots__ = ("_data",)

    name_param = None

    def __init__(self, method: str, params: JsonObject) -> None:
        self._data: JsonObject = {"method": method, "params": params}

    def model_dump(self, **_: object) -> JsonObject:
        return self._data


class _Raw:
    """A type of results that takes them as they came: the wire has seen to it that they are objects."""

    @staticmethod
    def model_validate(raw: JsonObject, **_: object) -> JsonObject:
        return raw


_RAW: Any = _Raw
Watcher = Callable[[str | None], None]
"""Told the URI that changed; None for the list of resources."""

_LEVELS = {"notice": logging.INFO, "alert": logging.CRITICAL, "emergency": logging.CRITICAL}


class Peer:
    """A server that has shaken hands."""

    def __init__(
        self,
        name: str,
        *,
        dispatcher: WireDispatcher,
        timeout: float,
        handlers: Handlers,
        describe_end: Callable[[], str],
        start_task: StartTask,
    ) -> None:
        self.start_task = start_task
        """For the rest of a call that takes more than one request."""
        self._name = name
        self._dispatcher = dispatcher
        self._timeout = timeout
        self.limits = Limits(timeout)
        """Of its requests."""
        self.describe_end = describe_end
        """Why the connection ended, as an error quotes it."""
        self._handlers = handlers
        self._watcher: Watcher = lambda _: None
        self._onlooker: Callable[[Progress], None] | None = None
        self._outputs = Outputs(name)
        self._learning = anyio.Lock()
        self._server_log = get_logger(f"toolpost.server.{name}")
        self.session = ClientSession(
            dispatcher=Lenient(dispatcher, name, lambda: self.is_modern, self._take_notification),
            client_info=client_info(),
            message_handler=_ignore,
            logging_callback=self._on_log,
            log_level=self._log_level(),
            **callbacks_of(handlers),
        )
        self.in_order = dispatcher.in_order
        """Whether the server gets requests in the order in which they are sent."""
        self.ended = dispatcher.ended
        """Set when the connection is down."""

    @property
    def is_broken(self) -> bool:
        """Whether it is known to take no more requests; its end follows within a moment."""
        return self._dispatcher.is_broken

    def on_change(self, watcher: Watcher) -> None:
        """Tell `watcher` of changed resources (eras up to 2025-11-25)."""
        self._watcher = watcher

    def on_gap(self, watcher: Callable[[], None]) -> None:
        """Tell `watcher` when changes may have been missed while the connection was there."""
        self._dispatcher.on_gap = watcher

    def on_progress(self, onlooker: Callable[[Progress], None]) -> None:
        """Tell `onlooker` of the progress that tool calls report."""
        self._onlooker = onlooker

    # -- handshake ---------------------------------------------------------------------------------

    async def shake_hands(self, *, pinned: str | None, skip_probe: bool) -> None:
        """Agree on a protocol version: see `Handshake.shake`."""
        await Handshake(self._name, self.session, self._handlers).shake(pinned=pinned, skip_probe=skip_probe)

    # -- what it is --------------------------------------------------------------------------------

    @property
    def is_modern(self) -> bool:
        """Whether it speaks 2026-07-28 or later."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> types.ServerCapabilities:
        return self.session.server_capabilities or types.ServerCapabilities()

    def describe(self) -> JsonObject:
        """Server, version, protocol revision and capabilities, as JSON."""
        info = self.session.server_info
        return {
            "server": None if info is None else info.name,
            "version": None if info is None else info.version,
            "protocol": self.session.protocol_version,
            "capabilities": convert.dump(self.capabilities),
        }

    # -- operations --------------------------------------------------------------------------------

    async def list_tools(self) -> list[Tool]:
        if self.capabilities.tools is None:
            return []

        async def page(cursor: str | None) -> Page[Tool]:
            came = await self.session.list_tools(params=_at(cursor))
            return [listed.tool(each.meta) for each in came.tools], came.next_cursor

        changes = self._outputs.changes
        tools = await self._every_item("list_tools", page)
        for name, count in Counter(tool.name for tool in tools).items():
            if count > 1:
                text = "tooling %r: %d tools have the name %r, and a call says only that"
                _log.warning(text, self._name, count, name)
        if self._outputs.changes == changes:
            self._outputs.learn(tools)
        return tools

    async def list_resources(self) -> list[ResourceInfo]:
        if self.capabilities.resources is None:
            return []

        async def page(cursor: str | None) -> Page[ResourceInfo]:
            came = await self.session.list_resources(params=_at(cursor))
            return [listed.resource_info(each.meta) for each in came.resources], came.next_cursor

        return await self._every_item("list_resources", page)

    def call_tool(
        self, call: ToolCall, *, since: float | None = None, unsent: Unsent | None = None
    ) -> Awaitable[ToolResult]:
        """Send a call; gives the tool's result, once it fits the tool's output schema.

        Args:
            call: The call.
            since: When the clock of its limit started, if not now.
            unsent: What to do in place of raising `NotSent`.
        """
        self._require(self.capabilities.tools is not None, f"call_tool {call.name!r}", "tools")
        calling = Calling(self, call, Clock(self._limit_of(call), since), unsent)
        params: JsonObject = {"name": call.name, "arguments": call.arguments}
        request: Any = _Ready("tools/call", params)
        return calling.drive(self.session.send_request(request, _RAW, progress_callback=calling.on_progress))

    async def go_on(self, call: ToolCall, came: JsonObject) -> ToolResult:
        """The rest of a call whose first answer asks for input."""

        async def send(answers: types.InputResponses | None, state: str | None) -> Any:
            params = types.CallToolRequestParams(
                name=call.name, arguments=call.arguments, input_responses=answers, request_state=state
            )
            request = types.CallToolRequest(params=params)  # each round has its own clock
            return _opened(await self._ask(request, _RAW, call=call))

        with self._errors(f"call_tool {call.name!r}"):
            raw = await self._with_input(_opened(came), send)
        result = results.tool_result(raw, call)
        return result if result.is_error else await self.checked(result, raw)

    async def call_anew(self, call: ToolCall) -> ToolResult:
        """A call that was refused before it was executed: some arguments belong into headers too.

        Which ones the session knows from the list of tools. MCP 2026-07-28, basic/transports/streamable-http.
        """
        params = types.CallToolRequestParams(name=call.name, arguments=call.arguments)
        with self._errors(f"call_tool {call.name!r}"):
            await self.list_tools()
            came = await self._ask(types.CallToolRequest(params=params), _RAW, call=call)
        return await self.go_on(call, came)

    async def read_resource(self, uri: str) -> ResourceContent:
        what = f"read_resource {uri!r}"
        self._require(self.capabilities.resources is not None, what, "resources")

        async def send(answers: types.InputResponses | None, state: str | None) -> Any:
            params = types.ReadResourceRequestParams(uri=uri, input_responses=answers, request_state=state)
            return await self._ask(types.ReadResourceRequest(params=params), _READ)

        with self._errors(what):
            try:
                return convert.resource_content(await self._with_input(await send(None, None), send), uri)
            except MCPError as error:
                if _means_not_found(error):
                    raise ResourceNotFound(
                        self._says(what, error), code=error.code, data=mask_json(error.data)
                    ) from None
                raise

    async def request(self, method: str, params: JsonObject | None) -> Json:
        with self._errors(f"request {method!r}"):
            passed = await self._ask(_AnyRequest(method=method, params=params), _RAW)
        whole = results.whole(passed)
        return passed if whole is None else whole

    async def subscribe(self, uri: str) -> None:
        """`resources/subscribe` (eras up to 2025-11-25)."""
        params = types.SubscribeRequestParams(uri=uri)
        with self._errors(f"subscribe_resource {uri!r}"):
            await self._ask(types.SubscribeRequest(params=params), TypeAdapter(types.EmptyResult))

    async def unsubscribe(self, uri: str) -> None:
        """`resources/unsubscribe` (eras up to 2025-11-25)."""
        params = types.UnsubscribeRequestParams(uri=uri)
        with self._errors(f"unsubscribe_resource {uri!r}"):
            await self._ask(types.UnsubscribeRequest(params=params), TypeAdapter(types.EmptyResult))

    def check_can_subscribe(self, uri: str | None) -> None:
        """Raise `Unsupported` unless the server declared that it tells of changes."""
        resources = self.capabilities.resources
        if uri is None:
            declared = resources is not None and bool(resources.list_changed)
            self._require(declared, "subscribe_resource_list", "resources.listChanged")
        else:
            declared = resources is not None and bool(resources.subscribe)
            self._require(declared, f"subscribe_resource {uri!r}", "resources.subscribe")

    # -- inside ------------------------------------------------------------------------------------

    @property
    def knows_outputs(self) -> bool:
        """Whether the output schemas are known."""
        return self._outputs.known

    async def checked(self, result: ToolResult, raw: JsonObject) -> ToolResult:
        """A result that fits its tool's output schema, which is asked for where it is not known."""
        if not self._outputs.known:
            await self._learn_outputs()
        self.check_output(raw, result.name)
        return result

    def check_output(self, raw: JsonObject, tool: str) -> None:
        """Raise `ServerError` where a result does not fit its tool's output schema."""
        if problem := self._outputs.problem(tool, raw):
            text = f"the result does not fit the tool's output_schema: {problem}"
            raise ServerError(
                about(self._name, f"call_tool {tool!r}", text),
                code=types.INTERNAL_ERROR,
                data=mask_json(raw),
            )

    async def _learn_outputs(self) -> None:
        """List the tools, for all that wait for it. Where that fails, results are not checked.

        The call has had its effect: nothing that goes wrong here may take its result away.
        """
        async with self._learning:
            if self._outputs.known:
                return
            problem: object = f"no answer within {LEARN_SECS:g} s"
            with anyio.move_on_after(LEARN_SECS):
                try:
                    await self.list_tools()
                    return  # if they have changed meanwhile, this result passes, and the next one asks again
                except ToolpostError as error:
                    problem = error
            if not self._outputs.known:
                _log.warning(
                    "tooling %r: results are not checked, since the tools cannot be listed: %s",
                    self._name,
                    problem,
                )
                self._outputs.learn([])

    def _ask(self, request: Any, result: Any, *, call: ToolCall | None = None) -> Awaitable[Any]:
        """Send a request, for a call perhaps. Running out of its limit tells the server: TimeoutError."""
        limit, onlooker = (
            (self._timeout, None) if call is None else (self._limit_of(call), self.onlooker_of(call))
        )
        promise: Promise[Any] = Promise(self.limits, Clock(limit), onlooker)
        asking = self.session.send_request(request, result, progress_callback=promise.on_progress)
        return promise.drive(asking)

    def _limit_of(self, call: ToolCall) -> float:
        return self._timeout if call.timeout is None else call.timeout

    def onlooker_of(self, call: ToolCall) -> Onlooker | None:
        """Who is told of the progress of a call."""
        onlooker = self._onlooker
        if onlooker is None:
            return None

        def tell(progress: float, total: float | None, message: str | None) -> None:
            said = None if message is None else mask(message)
            onlooker(Progress(tool=call.name, progress=progress, total=total, message=said))

        return tell

    async def _with_input(self, result: Any, send: Callable[[Any, str | None], Awaitable[Any]]) -> Any:
        """The outcome of a request that may ask for input before it answers (2026-07-28, multi round-trips).

        Args:
            result: What came of it the first time.
            send: Sends it again, with answers and state.
        """
        for round_ in range(INPUT_ROUNDS):
            if not isinstance(result, types.InputRequiredResult):
                return result
            answers: types.InputResponses = {}
            for key, request in (result.input_requests or {}).items():
                context = ClientRequestContext(session=self.session, request_id=key)
                answer = await self.session.dispatch_input_request(context, request)
                if isinstance(answer, types.ErrorData):
                    raise MCPError.from_error_data(answer)
                answers[key] = answer
            if not answers:  # only state to hand back: the server wants to be asked again later
                await anyio.sleep(min(0.05 * 2**round_, 0.25))
            result = await send(answers or None, result.request_state)
        raise MCPError(types.INTERNAL_ERROR, f"the server asked for input more than {INPUT_ROUNDS} times")

    async def _every_item(self, op: str, page: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
        with self._errors(op):
            return await every_item(f"tooling {self._name!r}: {op}", page, self._timeout)

    def _require(self, declared: bool, what: str, capability: str) -> None:
        if not declared:
            raise Unsupported(about(self._name, what, f"the server did not declare {capability}"))

    def _errors(self, what: str) -> _Translated:
        return _Translated(self, what)

    def _says(self, what: str, error: MCPError) -> str:
        return about(self._name, what, told(error))

    def translate(self, error: BaseException, what: str) -> Exception | None:
        """An error of the session as one of toolpost's."""
        name = self._name
        match error:
            case LineClosed(written=False):
                down = f"the connection was down: the server {error.reason or self.describe_end()}"
                return NotSent(about(name, what, down))
            case LineClosed():
                lost = f"the connection was lost: the server {error.reason or self.describe_end()}."
                unknown = "Whether the request took effect is unknown, so it was not repeated"
                return ConnectionLost(about(name, what, f"{lost} {unknown}"))
            case MCPError():
                return ServerError(self._says(what, error), code=error.code, data=mask_json(error.data))
            case TimeoutError():
                return RequestTimeout(about(name, what, f"{error}{self._dispatcher.strange()}"))
            case ValidationError():
                text = about(name, what, f"the server's answer is malformed: {malformed.problem(error)}")
                return ServerError(text, code=types.INTERNAL_ERROR)
            case _:
                return None

    def _take_notification(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take note of a change; what is none, or says not of what, is the session's."""
        match method, params:
            case "notifications/resources/updated", {"uri": str(uri)}:
                self._watcher(uri)
            case "notifications/resources/list_changed", _:
                self._watcher(None)
            case "notifications/tools/list_changed", _:
                self._outputs.forget()
            case _:
                return False
        return True

    async def _on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        known = logging.getLevelNamesMapping()
        level = _LEVELS.get(params.level) or known.get(params.level.upper(), logging.INFO)
        data = params.data if isinstance(params.data, str) else repr(params.data)
        self._server_log.log(level, "%s%s", f"{params.logger}: " if params.logger else "", data)

    def _log_level(self) -> types.LoggingLevel:
        """From 2026-07-28 on a server sends log messages only to who asks for them, per request."""
        for level in ("debug", "info", "warning"):
            if self._server_log.isEnabledFor(logging.getLevelNamesMapping()[level.upper()]):
                return level
        return "error"


class _Translated:
    """Turns what the session raises into toolpost's errors. A class: it stands in the hot path."""

    def __init__(self, peer: Peer, what: str) -> None:
        self._peer, self._what = peer, what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (translated := self._peer.translate(error, self._what)):
            raise translated from None


def _opened(passed: JsonObject) -> Any:
    """What came of a call: its result as it came, or what the server asks for."""
    whole = results.whole(passed)
    return _INPUT.validate_python(passed, by_name=False) if whole is None else whole


async def _ignore(message: object) -> None:
    """What the session says of notifications: those that count have been taken."""


def _at(cursor: str | None) -> types.PaginatedRequestParams | None:
    return None if cursor is None else types.PaginatedRequestParams(cursor=cursor)


def _means_not_found(error: MCPError) -> bool:
    if error.code == RESOURCE_NOT_FOUND:
        return True
    text = error.message.lower()
    return error.code == types.INVALID_PARAMS and (
        "uri" in _data(error) or "not found" in text or "unknown resource" in text
    )


def _data(error: MCPError) -> JsonObject:
    data: object = error.error.data
    return cast("JsonObject", data) if isinstance(data, dict) else {}
