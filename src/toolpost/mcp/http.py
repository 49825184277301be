"""Streamable HTTP under the official session: one POST for each message, answered by JSON or by a stream.

    request ──▶ POST ──▶ JSON ───────────────────────────────▶ its answer
                  │ └──▶ stream of events ──▶ messages ... ──▶ its answer; read to its end within a moment
                  │           └──ended before──▶ GET with Last-Event-ID, so often (until 2025-11-25)
                  └──────▶ a status, an end, nothing ────────▶ that request fails, and no other

A wire over HTTP is down when the server cannot be reached, or no longer knows the session: everything else
is the business of one exchange. In the second case the answers that are on their way are waited for a
moment, since they say the same, and what was refused for its session is known not to have been executed.

Each exchange is a task of the dispatcher's; a caller only waits. It is one of asyncio's, since each request
has one, and a task with a scope of anyio's costs several times as much. Brings the SDK and aiohttp with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest, coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, RequestId
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolpost.mcp.dispatcher import LineClosed, Pending, WireDispatcher, cancelled
from toolpost.mcp.endpoint import BadEndpoint, Broken, Endpoint, TooLarge, Unreachable, next_chunk, read
from toolpost.mcp.jsonrpc import NoAnswer, encode
from toolpost.mcp.refusals import REFUSAL_BYTES, NotAServer, quoted, refused, rpc_error, session_is_gone
from toolpost.mcp.sse import Event, EventParser, EventTooLarge
from toolpost.model import JsonObject
from toolpost.secret import get_logger

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Of a body or an event: as long as a line over stdio may be."""
SESSION_HEADER = "Mcp-Session-Id"
DRAIN_SECS = 2.0
"""How long a stream may take to end after its answer; then its connection is not used again."""
ONE_WAY_SECS = 10.0
"""How long the server may take to accept a notification, or an answer to a request of its own."""
DELETE_SECS = 2.0
"""How long it may take to end the session when we leave."""
HEARD_SECS = 1.0
"""How long the other answers are waited for when one says that the session is gone."""
RESUMES = 30
"""So often in a row a stream may end without anything new before its request is given up."""
RETRY_SECS = 1.0
"""Between two connections of one stream, where the server does not say."""
RETRY_FLOOR_SECS = 0.05
RETRY_CAP_SECS = 60.0
_MAX_REFUSALS = 8
"""Refusals of requests of the server that are under way at once; further ones are not sent."""

_REMEMBERED = 1024
"""Events of a connection that are known when they come again on the next one."""

_log = get_logger("toolpost.mcp")


class HttpDispatcher(WireDispatcher):
    """A dispatcher over an `Endpoint`."""

    kind = "streamable-http"
    in_order = False
    _source = "a stream"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.session_id: str | None = None
        self._version: str | None = None
        """The protocol version that requests say they are of; none before `initialize`."""
        self._exchanges: dict[RequestId, asyncio.Task[None]] = {}
        """Those whose answers are waited for."""
        self._running: set[asyncio.Task[None]] = set()
        """All of them, until they have ended."""
        self._refusals = 0
        self._unheard = 0
        """How many requests are sent and have no answer yet, not even its headers."""
        self._all_heard = asyncio.Event()
        self._all_heard.set()
        self._is_retiring = False
        self._end_reason = "was left"
        self.on_initialized: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
        """Awaited when the server has been told that the handshake is over (until 2025-11-25)."""

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the wire until it ends, and every exchange with it."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            running = tuple(self._running)
            for exchange in running:
                exchange.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.gather(*running, return_exceptions=True)

    # -- its end -----------------------------------------------------------------------------------

    def describe_end(self) -> str:
        """Why it ended, as an error quotes it."""
        return self._end_reason

    def lose(self, reason: str) -> None:
        """The server is gone: everything that waits fails, with this reason."""
        if not self.ended.is_set():
            self._end_reason = reason
            self.session_id = None  # there is nobody to end it
            self._end()

    def retire(self, status: int) -> None:
        """The session is gone. Takes no new requests, and ends when those under way have been heard."""
        if self._is_retiring or self.ended.is_set() or self._tasks is None:
            return
        self._is_retiring = True
        self._end_reason = f"no longer knows the session (HTTP {status})"
        self.session_id = None
        self._tasks.start_soon(self._end_when_heard)

    async def _end_when_heard(self) -> None:
        with anyio.move_on_after(HEARD_SECS):
            await self._all_heard.wait()
        self._end()

    async def delete_session(self) -> None:
        """Tell the server that we leave; whatever it says to that is fine."""
        if self.session_id is None:
            return
        with anyio.move_on_after(DELETE_SECS, shield=True):
            try:
                (await self.endpoint.send("DELETE", self.headers())).close()
            except (Unreachable, Broken, BadEndpoint) as error:
                _log.debug("the session was not ended: the server %s", error)

    def start_task(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task until the wire is down."""
        if self._tasks is not None:
            self._tasks.start_soon(task)

    # -- what is sent ------------------------------------------------------------------------------

    def headers(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """The headers of any request, besides those of the endpoint."""
        headers = {"Accept": "application/json, text/event-stream"}
        if self.session_id is not None:
            headers[SESSION_HEADER] = self.session_id
        if self._version is not None:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self._version
        return headers | (more or {})

    @property
    def _is_modern(self) -> bool:
        return self._version in MODERN_PROTOCOL_VERSIONS

    def _listen(self) -> None:
        """Nothing comes that was not asked for: mcp/get_stream.py asks."""

    async def _send_request(self, message: JsonObject, pending: Pending, opts: CallOptions) -> None:
        if self._is_retiring or self.ended.is_set() or self._tasks is None:
            raise LineClosed(written=False)
        pending.written = True  # from here on its exchange knows better
        key = coerce_request_id(message["id"])
        exchange = _Exchange(self, message, pending, self._stamped(message, opts))
        task = self._exchanges[key] = asyncio.create_task(exchange.run())
        self._running.add(task)
        task.add_done_callback(partial(self._forget, key))

    def _forget(self, key: RequestId, exchange: asyncio.Task[None]) -> None:
        self._running.discard(exchange)
        if self._exchanges.get(key) is exchange:
            del self._exchanges[key]

    async def _send_notification(self, message: JsonObject, opts: CallOptions) -> None:
        await self._post_one_way(message, self._stamped(message, opts))
        if message["method"] == "notifications/initialized":
            await self.on_initialized()

    async def _send_answer(self, message: JsonObject) -> None:
        await self._post_one_way(message, self.headers())

    def _refuse_nowait(self, message: JsonObject) -> None:
        if self._refusals < _MAX_REFUSALS and self._tasks is not None:
            self._refusals += 1
            self._tasks.start_soon(self._send_refusal, message)

    async def _send_refusal(self, message: JsonObject) -> None:
        try:
            await self._send_answer(message)
        finally:
            self._refusals -= 1

    def _give_up(self, wire_id: RequestId, opts: CallOptions) -> None:
        exchange = self._exchanges.pop(coerce_request_id(wire_id), None)
        if exchange is not None:
            exchange.cancel()
        # From 2026-07-28 on, the end of the connection says it (basic/transports/streamable-http).
        # Until then it does not, and a notification must.
        if opts.get("cancel_on_abandon", True) and not self._is_modern and self._tasks is not None:
            self._tasks.start_soon(self._send_answer, cancelled(wire_id))

    def _stamped(self, message: JsonObject, opts: CallOptions) -> dict[str, str]:
        """The headers of a message. What the session says of the version holds from then on."""
        given = opts.get("headers") or {}
        if message["method"] == "initialize":
            self._version = None  # that is what it asks
        elif (version := given.get(MCP_PROTOCOL_VERSION_HEADER)) is not None:
            self._version = version
        return self.headers(given)

    async def post(self, message: JsonObject, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send a message; see `Endpoint.send` for what it raises."""
        self._unheard += 1
        self._all_heard.clear()
        try:
            more = {"Content-Type": "application/json"}
            return await self.endpoint.send("POST", headers | more, encode(message))
        finally:
            self._unheard -= 1
            if self._unheard == 0:
                self._all_heard.set()

    async def _post_one_way(self, message: JsonObject, headers: dict[str, str]) -> None:
        """Send what has no answer. That it did not arrive is logged: nobody waits for it."""
        if self.ended.is_set():
            return
        what = message.get("method") or f"the answer to request {message.get('id')!r}"
        try:
            with anyio.fail_after(ONE_WAY_SECS):
                response = await self.post(message, headers)
                try:
                    await self._check_accepted(response, what)
                finally:
                    response.close()
        except Unreachable as error:
            self.lose(str(error))
        except (Broken, BadEndpoint, TooLarge) as error:
            _log.warning("%s may not have arrived: the server %s", what, error)
        except TimeoutError:
            _log.warning("%s was not accepted within %g s", what, ONE_WAY_SECS)
        except Exception:  # it would end the wire
            _log.exception("sending %s raised", what)

    async def _check_accepted(self, response: aiohttp.ClientResponse, what: str) -> None:
        if response.status < 400:
            if media_type(response) != "text/event-stream":  # that might not end
                await read(response, REFUSAL_BYTES)
            return
        body = await read(response, REFUSAL_BYTES)
        if self.session_id is not None and session_is_gone(response.status, body, rpc_error(body, None)):
            self.retire(response.status)
        words = quoted(body.decode(errors="replace"))
        _log.warning("%s was not accepted: HTTP %d %s", what, response.status, words)

    # -- what comes --------------------------------------------------------------------------------

    def take_event(self, event: Event, answers_to: Collection[RequestId] = ()) -> None:
        """Take the message of an event; of answers, only those that may come this way."""
        if event.name == "message":
            self._take(event.data, answers_to)

    def take_body(self, body: bytes, answers_to: Collection[RequestId]) -> None:
        """Take the message that is a whole body."""
        self._take(body, answers_to)

    def settle_with_error(self, pending: Pending, error: JsonObject) -> None:
        """Give a request the JSON-RPC error that came without its id."""
        if not pending.answer.done():
            self._settle(pending, {"error": error})


class _Exchange:
    """One request on its way: its POST, and the streams that may follow."""

    def __init__(
        self,
        wire: HttpDispatcher,
        message: JsonObject,
        pending: Pending,
        headers: dict[str, str],
    ) -> None:
        self._wire = wire
        self._message = message
        self._pending = pending
        self._headers = headers
        self._key = coerce_request_id(message["id"])
        self._can_resume = headers.get(MCP_PROTOCOL_VERSION_HEADER) not in MODERN_PROTOCOL_VERSIONS
        self._is_sent = False
        self._drain_limit: asyncio.TimerHandle | None = None
        """Ends what is read after the answer."""

    async def run(self) -> None:
        """See it through. Whatever happens, the request has its outcome at the end."""
        try:
            await self._post()
        except Unreachable as error:
            self._fail(LineClosed(written=self._is_sent, reason=str(error)))
            self._wire.lose(str(error))
        except Broken as error:
            self._fail(LineClosed(written=True, reason=str(error)))
        except BadEndpoint as error:
            self._fail(NotAServer(f"at {self._wire.endpoint} {error}"))
        except (TooLarge, EventTooLarge):
            limit = f"{MAX_ANSWER_BYTES >> 20} MiB"
            self._fail(NoAnswer(f"sent an answer longer than {limit}, which was not read"))
        except Exception:
            _log.exception("an exchange raised")
            self._fail(MCPError(INTERNAL_ERROR, "the answer could not be taken: see the log"))
        finally:
            if self._drain_limit is not None:
                self._drain_limit.cancel()

    def _fail(self, error: MCPError) -> None:
        if not self._pending.answer.done():
            self._pending.answer.set_exception(error)

    async def _post(self) -> None:
        response = await self._wire.post(self._message, self._headers)
        self._is_sent = True
        try:
            if response.status >= 300:
                await self._take_refusal(response)
                return
            self._take_session(response)
            media = media_type(response)
            if media == "text/event-stream":
                await self._take_streams(response)
            else:
                await self._take_json(response, media)
        finally:
            response.close()

    def _take_session(self, response: aiohttp.ClientResponse) -> None:
        if self._message["method"] == "initialize":
            self._wire.session_id = response.headers.get(SESSION_HEADER) or None

    # -- one answer --------------------------------------------------------------------------------

    async def _take_json(self, response: aiohttp.ClientResponse, media: str) -> None:
        body = await read(response, MAX_ANSWER_BYTES)
        if media not in ("", "application/json") or not body:
            given = f"with {media or 'nothing'!r}" if body else "without an answer"
            where = f"at {self._wire.endpoint} answered HTTP {response.status} {given}"
            self._fail(NotAServer(f"{where}, not with JSON or a stream of events"))
            return
        self._wire.take_body(body, (self._key,))
        if self._pending.answer.done():
            return
        if (error := rpc_error(body, self._message["id"])) is not None:  # one without an id
            self._wire.settle_with_error(self._pending, error)
        else:
            words = quoted(body.decode(errors="replace"))
            encoding = response.headers.get("Content-Encoding")
            sent = "what is no answer to this request" + (f", in {encoding}" if encoding else "")
            self._fail(NoAnswer(f"sent {sent}: {words}"))

    async def _take_refusal(self, response: aiohttp.ClientResponse) -> None:
        body = await read(response, REFUSAL_BYTES)
        error = rpc_error(body, self._message["id"])
        if SESSION_HEADER in self._headers and session_is_gone(response.status, body, error):
            self._wire.retire(response.status)  # first, so that it is known why
            self._fail(LineClosed(written=False))
        elif (refusal := refused(response, body, error)) is not None:
            self._fail(refusal)
        elif error is not None:
            self._wire.settle_with_error(self._pending, error)

    # -- a stream ----------------------------------------------------------------------------------

    async def _take_streams(self, response: aiohttp.ClientResponse) -> None:
        """Read the stream of the POST, and those that take it up again, until the answer is there."""
        stream, empty = Stream(self._take_event), 0
        reason = await self._read(stream, response)
        while not self._pending.answer.done():
            if stream.last_id is None or not self._can_resume:
                raise Broken(reason)
            if empty == RESUMES:
                raise Broken(f"ended the stream of its answer; {RESUMES} attempts to go on brought nothing")
            news = stream.news
            await anyio.sleep(stream.retry_secs(RETRY_SECS))
            reason = await self._resume(stream)
            empty = 0 if stream.news > news else empty + 1

    def _take_event(self, event: Event) -> None:
        self._wire.take_event(event, (self._key,))
        if self._pending.answer.done() and self._drain_limit is None:
            task = asyncio.current_task()
            assert task is not None
            self._drain_limit = asyncio.get_running_loop().call_later(DRAIN_SECS, task.cancel)

    async def _read(self, stream: Stream, response: aiohttp.ClientResponse) -> str:
        """Read to the end; gives what the server did, if that was no answer."""
        try:
            await stream.read(response)
        except Broken as error:
            return str(error)
        return "ended the stream of its answer without an answer"

    async def _resume(self, stream: Stream) -> str:
        more = {"Accept": "text/event-stream", "Last-Event-ID": stream.last_id or ""}
        try:
            response = await self._wire.endpoint.send("GET", self._wire.headers(more))
        except Broken as error:
            return str(error)
        try:
            if response.status == 200 and media_type(response) == "text/event-stream":
                return await self._read(stream, response)
            if response.status >= 500 or response.status == 429:
                return f"does not take up its stream again (HTTP {response.status})"
            raise Broken(f"does not take up its stream again (HTTP {response.status})")
        finally:
            response.close()


class Stream:
    """One stream of events over the connections that it takes."""

    def __init__(self, take: Callable[[Event], None]) -> None:
        self._take = take
        self._came: dict[tuple[str, int], None] = {}
        """The last events of the connection before: a server may send them again on the next one."""
        self.last_id: str | None = None
        self._retry_ms: int | None = None
        self.news = 0
        """Events that were taken."""

    def retry_secs(self, default: float) -> float:
        """How long to wait before the next connection."""
        wanted = default if self._retry_ms is None else self._retry_ms / 1000
        return min(max(wanted, RETRY_FLOOR_SECS), RETRY_CAP_SECS)

    async def read(self, response: aiohttp.ClientResponse) -> None:
        """Read one connection to its end.

        Raises:
            Broken: It broke.
            EventTooLarge: An event is too long.
        """
        parser, before, self._came = EventParser(MAX_ANSWER_BYTES), self._came, {}
        while chunk := await next_chunk(response):
            for event in parser.feed(chunk):
                if not self._is_repeated(event, before):
                    self.news += 1
                    self._take(event)
            self.last_id = parser.last_id or self.last_id
            self._retry_ms = self._retry_ms if parser.retry_ms is None else parser.retry_ms

    def _is_repeated(self, event: Event, before: Collection[tuple[str, int]]) -> bool:
        """Whether the connection before brought it. Within one connection nothing counts as repeated."""
        if event.id is None:
            return False
        mark = (event.id, hash(event.data))
        self._came[mark] = None
        if len(self._came) > _REMEMBERED:
            del self._came[next(iter(self._came))]
        return mark in before


def media_type(response: aiohttp.ClientResponse) -> str:
    """The media type of an answer, in small letters and without parameters; "" where it has none."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
