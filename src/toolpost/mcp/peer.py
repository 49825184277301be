"""One live session with a server: the handshake of either era, and every operation on it.

Lives as long as its connection, inside the connection's task; its operations may be awaited from any task
of the loop. It speaks in toolpost's values and errors; the connection that holds it adds nothing to them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self, cast

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types.version import (
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import TypeAdapter, ValidationError

from toolpost.errors import (
    ConnectionLost,
    RequestTimeout,
    ResourceNotFound,
    ServerError,
    ToolpostError,
    Unsupported,
)
from toolpost.mcp import convert, malformed, results
from toolpost.mcp.dispatcher import LineClosed, WireDispatcher
from toolpost.mcp.faults import FinalFailure, NotSent, about
from toolpost.mcp.handlers import Handler, Handlers, uris
from toolpost.mcp.jsonrpc import told
from toolpost.mcp.outputs import Outputs, put_back, set_aside
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.secret import get_logger, mask, mask_json
from toolpost.tooling.port import Progress, ToolCall

PROBE_SECS = 2.0
"""How long a server may think about `server/discover` before `initialize` is sent as well."""
PROGRESS_EXTENDS = 10
"""Progress restarts a request's clock, up to this many times its length in all."""
MAX_PAGES = 1000
MAX_ITEMS = 100_000
INPUT_ROUNDS = 10
"""How often one request may ask for input (2026-07-28) before it is given up."""
LEARN_SECS = 5.0
"""How long a result waits for the list of tools that says what it must look like."""
RESOURCE_NOT_FOUND = -32002
"""Until 2025-11-25; from 2026-07-28 on -32602 with the URI in `data`."""
_NOT_MODERN = {types.METHOD_NOT_FOUND, types.INVALID_PARAMS, types.INVALID_REQUEST}
"""How servers of earlier eras answer `server/discover`."""

_log = get_logger("toolpost.mcp")
_RAW: TypeAdapter[JsonObject] = TypeAdapter(dict[str, Any])
_INPUT = TypeAdapter(types.InputRequiredResult)
_READ: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_AnyRequest = types.Request[JsonObject | None, str]  # as it stands it would keep no params but its own
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
    ) -> None:
        self._name = name
        self._dispatcher = dispatcher
        self._timeout = timeout
        self.describe_end = describe_end
        """Why the connection ended, as an error quotes it."""
        self._handlers = handlers
        self._watcher: Watcher = lambda _: None
        self._onlooker: Callable[[Progress], None] = lambda _: None
        self._outputs = Outputs(name)
        self._learning = anyio.Lock()
        self._server_log = get_logger(f"toolpost.server.{name}")
        self.session = ClientSession(
            dispatcher=_Lenient(dispatcher, name, lambda: self.is_modern),
            client_info=client_info(),
            message_handler=self._on_notification,
            logging_callback=self._on_log,
            log_level=self._log_level(),
            **_callbacks(handlers),
        )
        self.in_order = dispatcher.in_order
        """Whether the server gets requests in the order in which they are sent."""
        self.ended = dispatcher.ended
        """Set when the connection is down."""

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
        """Agree on a protocol version.

        Raises:
            MCPError: The server refused, or the line went down.
            FinalFailure: There is no version that both speak.
        """
        if pinned is not None:
            await self._speak(pinned)
        elif skip_probe:
            await self._initialize()
        else:
            await self._negotiate()

    async def _speak(self, pinned: str) -> None:
        """Agree on this version or none."""
        if pinned in MODERN_PROTOCOL_VERSIONS:
            try:
                self._adopt(await self.session.send_discover(pinned), pinned)
            except MCPError as error:
                if error.code not in _NOT_MODERN:
                    raise
                raise FinalFailure(
                    f"the server does not speak {pinned} (key `protocol`); it answered: {error.message}"
                ) from None
            return
        offer = types.InitializeRequestParams(
            protocol_version=pinned, capabilities=_capabilities(self._handlers), client_info=client_info()
        )
        # Not `session.initialize`, which always offers the newest version: a server may then answer with a
        # version of its own, though it speaks the pinned one.
        result = await self.session.send_request(
            types.InitializeRequest(params=offer), types.InitializeResult
        )
        if result.protocol_version != pinned:
            answered = result.protocol_version
            raise FinalFailure(f"the server speaks {answered}, not {pinned} (key `protocol`)")
        self.session.adopt(result)
        await self.session.send_notification(types.InitializedNotification())

    async def _negotiate(self) -> None:
        """`server/discover` first; `initialize` as soon as that fails, or is not answered for a while.

        A slow server answers both, in order, and the first answer counts: its era is not misjudged.
        """
        refused: MCPError | FinalFailure | None = None
        async with anyio.create_task_group() as race:
            no_answer = anyio.Event()

            async def probe() -> None:
                try:
                    raw = await self._discover()
                    if self.session.protocol_version is None:
                        self._adopt(raw, None)
                except (MCPError, FinalFailure, ValidationError) as error:
                    _log.debug("tooling %r: no answer to server/discover to go by: %s", self._name, error)
                    no_answer.set()
                else:
                    race.cancel_scope.cancel()

            race.start_soon(probe)
            with anyio.move_on_after(PROBE_SECS):
                await no_answer.wait()
            try:
                await self._initialize_unless_modern()
            except (MCPError, FinalFailure) as error:
                refused = error
                await no_answer.wait()  # the probe's answer still decides, if one comes
            race.cancel_scope.cancel()
        if refused is not None and self.session.protocol_version is None:
            raise refused

    async def _discover(self) -> JsonObject:
        """What the server says of itself; asked again, once, in a version that it names as one of its own."""
        try:
            return await self.session.send_discover(LATEST_MODERN_VERSION)
        except MCPError as error:
            if (mutual := _mutual_version(error)) is None:
                raise
            return await self.session.send_discover(mutual)

    async def _initialize_unless_modern(self) -> None:
        try:
            await self._initialize()
        except MCPError as error:
            if (mutual := _mutual_version(error)) is None:
                raise
            self._adopt(await self.session.send_discover(mutual), None)

    async def _initialize(self) -> None:
        try:
            await self.session.initialize()
        except RuntimeError as error:  # the SDK's word for a version that it does not know
            raise FinalFailure(f"the server speaks no version that toolpost does: {error}") from None
        except ValidationError:
            raise FinalFailure("the server's answer to initialize is malformed") from None

    def _adopt(self, raw: JsonObject, pinned: str | None) -> None:
        result = types.DiscoverResult.model_validate(raw)
        offered = [pinned] if pinned is not None else list(MODERN_PROTOCOL_VERSIONS)
        if not any(version in result.supported_versions for version in offered):
            spoken = ", ".join(result.supported_versions)
            raise FinalFailure(f"the server speaks {spoken}, not {' or '.join(offered)}")
        self.session.adopt(result)

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
        pages = self._pages(
            "list_tools", lambda params: self.session.list_tools(params=params), lambda p: p.tools
        )
        tools = [convert.tool(each) async for each in pages]
        self._outputs.learn(tools)
        return tools

    async def list_resources(self) -> list[ResourceInfo]:
        if self.capabilities.resources is None:
            return []
        pages = self._pages(
            "list_resources", lambda params: self.session.list_resources(params=params), lambda p: p.resources
        )
        return [convert.resource_info(each) async for each in pages]

    async def call_tool(self, call: ToolCall, *, since: float | None = None) -> ToolResult:
        """The tool's result, once it fits the tool's output schema.

        Args:
            call: The call.
            since: When the clock of its limit started, if not with its request.
        """
        what = f"call_tool {call.name!r}"
        self._require(self.capabilities.tools is not None, what, "tools")

        async def send(answers: types.InputResponses | None, state: str | None) -> Any:
            params = types.CallToolRequestParams(
                name=call.name, arguments=call.arguments, input_responses=answers, request_state=state
            )
            started = since if answers is None and state is None else None  # each round has its own clock
            passed = await self._timed(
                types.CallToolRequest(params=params), _RAW, call.timeout, started, tool=call.name
            )
            whole = results.whole(passed)
            return _INPUT.validate_python(passed, by_name=False) if whole is None else whole

        with self._errors(what):
            try:
                raw = await self._with_input(send)
            except MCPError as error:
                if error.code != types.HEADER_MISMATCH:
                    raise
                # Refused before it was executed: some arguments belong into headers too, and which ones the
                # session knows from the list of tools. MCP 2026-07-28, basic/transports/streamable-http.
                await self.list_tools()
                raw = await self._with_input(send)
        result = results.tool_result(raw, call)
        if not result.is_error:
            await self._check_output(raw, call.name)
        return result

    async def read_resource(self, uri: str) -> ResourceContent:
        what = f"read_resource {uri!r}"
        self._require(self.capabilities.resources is not None, what, "resources")

        async def send(answers: types.InputResponses | None, state: str | None) -> Any:
            params = types.ReadResourceRequestParams(uri=uri, input_responses=answers, request_state=state)
            return await self._timed(types.ReadResourceRequest(params=params), _READ)

        with self._errors(what):
            try:
                return convert.resource_content(await self._with_input(send), uri)
            except MCPError as error:
                if _means_not_found(error):
                    raise ResourceNotFound(
                        self._says(what, error), code=error.code, data=mask_json(error.data)
                    ) from None
                raise

    async def request(self, method: str, params: JsonObject | None) -> Json:
        with self._errors(f"request {method!r}"):
            passed = await self._timed(_AnyRequest(method=method, params=params), _RAW)
        if method == "tools/list":
            return put_back(passed)
        whole = results.whole(passed)
        return passed if whole is None else whole

    async def subscribe(self, uri: str) -> None:
        """`resources/subscribe` (eras up to 2025-11-25)."""
        params = types.SubscribeRequestParams(uri=uri)
        with self._errors(f"subscribe_resource {uri!r}"):
            await self._timed(types.SubscribeRequest(params=params), TypeAdapter(types.EmptyResult))

    async def unsubscribe(self, uri: str) -> None:
        """`resources/unsubscribe` (eras up to 2025-11-25)."""
        params = types.UnsubscribeRequestParams(uri=uri)
        with self._errors(f"unsubscribe_resource {uri!r}"):
            await self._timed(types.UnsubscribeRequest(params=params), TypeAdapter(types.EmptyResult))

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

    async def _check_output(self, result: JsonObject, tool: str) -> None:
        """Raise `ServerError` where a result does not fit its tool's output schema."""
        if not self._outputs.known:
            await self._learn_outputs()
        if problem := self._outputs.problem(tool, result):
            text = f"the result does not fit the tool's output_schema: {problem}"
            raise ServerError(
                about(self._name, f"call_tool {tool!r}", text),
                code=types.INTERNAL_ERROR,
                data=mask_json(result),
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
                except ToolpostError as error:
                    problem = error
            if not self._outputs.known:
                _log.warning(
                    "tooling %r: results are not checked, since the tools cannot be listed: %s",
                    self._name,
                    problem,
                )
                self._outputs.learn([])

    async def _timed(
        self,
        request: types.Request[Any, Any],
        result: TypeAdapter[Any],
        timeout: float | None = None,
        started: float | None = None,
        *,
        tool: str | None = None,
    ) -> Any:
        """Send a request within its limit. Running out of it tells the server, and raises TimeoutError.

        Progress restarts the clock. That of a call of `tool` is told to who looks on.
        """
        limit = self._timeout if timeout is None else timeout
        if math.isinf(limit) and tool is None:
            return await self.session.send_request(request, result)
        with _Clock(limit, started) as clock:

            async def on_progress(progress: float, total: float | None, message: str | None) -> None:
                clock.restart()
                if tool is not None:
                    said = None if message is None else mask(message)
                    self._onlooker(Progress(tool=tool, progress=progress, total=total, message=said))

            return await self.session.send_request(request, result, progress_callback=on_progress)

    async def _with_input(self, send: Callable[[Any, str | None], Awaitable[Any]]) -> Any:
        """Drive a request that may ask for input before it answers (2026-07-28, multi round-trips)."""
        result = await send(None, None)
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

    async def _pages(
        self,
        op: str,
        fetch: Callable[[types.PaginatedRequestParams | None], Awaitable[Any]],
        items: Callable[[Any], list[Any]],
    ) -> AsyncGenerator[Any]:
        """The items of every page. A cursor that comes again ends the walk."""
        cursor: str | None = None
        seen: set[str] = set()
        count = 0
        for _ in range(MAX_PAGES):
            with self._errors(op):
                params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
                try:
                    with _Clock(self._timeout):
                        page = await fetch(params)
                except MCPError as error:
                    if error.code == types.METHOD_NOT_FOUND and cursor is None:
                        return  # it has none; later it would make a list that ends early look complete
                    raise
            for item in items(page):
                yield item
                count += 1
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                _log.warning("tooling %r: %s: a cursor came twice; the walk ends there", self._name, op)
                return
            if count > MAX_ITEMS:
                raise self._too_many(op, f"{MAX_ITEMS} items")
            seen.add(cursor)
        raise self._too_many(op, f"{MAX_PAGES} pages")

    def _too_many(self, op: str, bound: str) -> ServerError:
        return ServerError(about(self._name, op, f"more than {bound}"), code=types.INTERNAL_ERROR)

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
                unmatched = self._dispatcher.unmatched
                hint = f" ({unmatched} answers came under ids that nobody waits for)" if unmatched else ""
                return RequestTimeout(about(name, what, f"{error}{hint}"))
            case ValidationError():
                text = about(name, what, f"the server's answer is malformed: {malformed.problem(error)}")
                return ServerError(text, code=types.INTERNAL_ERROR)
            case _:
                return None

    async def _on_notification(self, message: object) -> None:
        match message:
            case types.ResourceUpdatedNotification(params=params):
                self._watcher(params.uri)
            case types.ResourceListChangedNotification():
                self._watcher(None)
            case types.ToolListChangedNotification():
                self._outputs.forget()
            case _:
                pass

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


class _Clock:
    """The time that one request may take, as a block. Running out of it raises TimeoutError, worded."""

    def __init__(self, limit: float, started: float | None = None) -> None:
        self._limit = limit
        self._started = anyio.current_time() if started is None else started
        self._scope = anyio.CancelScope(deadline=self._started + limit)
        self._restarted = False

    def restart(self) -> None:
        self._restarted = True
        last = self._started + PROGRESS_EXTENDS * self._limit
        self._scope.deadline = min(anyio.current_time() + self._limit, last)

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scope.__exit__(kind, error, trace):
            raise TimeoutError(self._describe())

    def _describe(self) -> str:
        if not self._restarted:
            return f"no answer within {self._limit:g} s"
        passed = anyio.current_time() - self._started
        return f"no answer within {passed:.1f} s, in which progress restarted the limit of {self._limit:g} s"


class _Lenient(Dispatcher[TransportContext]):
    """Mends results on their way to the session, which refuses a whole answer for one bad part of it."""

    def __init__(self, wire: Dispatcher[TransportContext], name: str, is_modern: Callable[[], bool]) -> None:
        self._wire = wire
        self._name = name
        self._is_modern = is_modern

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        await self._wire.run(on_request, on_notify, on_notify_intercept, task_status=task_status)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        result = await self._wire.send_raw_request(method, params, opts)
        if method == "initialize":
            await anyio.lowlevel.checkpoint()  # cancelled here, if the probe's answer came just before
        modern = self._is_modern()
        if method == "tools/call":
            return results.enveloped(result, modern=modern)
        if modern and method in ("tools/list", "resources/list", "resources/read"):
            result = results.completed(result)
        if method == "tools/list":
            return convert.without_unusable_tools(set_aside(result), self._name)
        return result

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._wire.notify(method, params, opts)


def client_info() -> types.Implementation:
    """How toolpost names itself to servers."""
    return types.Implementation(name="toolpost", version=version("toolpost"))


def _capabilities(handlers: Handlers) -> types.ClientCapabilities:
    """What the handlers let us declare; the same as the session declares for its callbacks."""
    elicitation = types.ElicitationCapability(
        form=types.FormElicitationCapability(), url=types.UrlElicitationCapability()
    )
    return types.ClientCapabilities(
        roots=None if handlers.roots is None else types.RootsCapability(list_changed=True),
        sampling=None if handlers.sampling is None else types.SamplingCapability(),
        elicitation=None if handlers.elicitation is None else elicitation,
    )


def _callbacks(handlers: Handlers) -> dict[str, Any]:
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


def _mutual_version(error: MCPError) -> str | None:
    """The newest version without a handshake that both speak, where a server refuses for its version."""
    supported = _data(error).get("supported")
    if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list):
        return None
    mutual = [version for version in MODERN_PROTOCOL_VERSIONS if version in cast("list[Json]", supported)]
    return mutual[-1] if mutual else None


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
