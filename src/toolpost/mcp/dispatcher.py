"""Our wire under the official session: JSON-RPC, whatever carries it, and lines of bytes that carry it.

Above stands the SDK's `ClientSession`, which speaks to a `Dispatcher` (mcp/shared/dispatcher.py, declared
provisional) in method names and dicts; below stands what takes bytes. `WireDispatcher` matches answers to
requests, runs the server's own requests, and ends everything when the wire ends. mcp/line.py puts it on
lines of bytes, mcp/http.py on HTTP.

    answer with a known id ──▶ its future      request ──▶ a task, answered when it is done
    answer with another id ──▶ logged          notification ──▶ progress, then the session
    neither                ──▶ logged, skipped

An answer is taken on the loop's read callback: no task is scheduled and no queue passed between the bytes
and the future that the caller awaits. Notifications go to the session one after another, by one task.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.shared.dispatcher import (
    CallOptions,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT, RequestId
from pydantic import ValidationError

from toolpost.mcp.jsonrpc import NoAnswer, as_error, decode, is_number
from toolpost.mcp.promise import Answer
from toolpost.model import Json, JsonObject
from toolpost.secret import get_logger, mask

_log = get_logger("toolpost.mcp")

_MAX_SKIPPED_LOGGED = 10
"""Lines of noise that are logged one by one; of what follows only the number is told."""
_QUOTED = 200
"""Characters of a line that is quoted."""
_KEPT = 64 * 1024
"""Bytes of a line that is kept to be quoted later."""
_ABANDONED_KNOWN = 256
"""So many of the requests that were given up last are remembered: their answers may still come."""
MAX_SERVED = 1024
"""Requests of a server that are under way at once, answers that wait for the line included."""
TOO_MANY_REQUESTS = -32000
"""JSON-RPC's first code for errors that a program defines."""


class LineClosed(MCPError):
    """The wire went down before the answer, or what carried this one request did."""

    def __init__(self, *, written: bool, reason: str | None = None) -> None:
        super().__init__(CONNECTION_CLOSED, "connection closed" if reason is None else f"the server {reason}")
        self.written = written
        """Whether the server may have seen the request."""
        self.reason = reason
        """What the server did; None where that is told by the end of the wire."""


@dataclass(slots=True)
class Pending:
    """A request that waits for its answer."""

    answer: Answer[JsonObject]
    on_progress: ProgressFnT | None
    written: bool = False
    """Whether the server may have seen it."""


class WireDispatcher(Dispatcher[TransportContext]):
    """A `Dispatcher` of the SDK: what all of ours have in common. Below it: `_send_request` and its kin."""

    kind: str
    """The SDK's name for the transport."""
    in_order: bool
    """Whether the server gets requests in the order in which they are sent."""
    _source: str
    """Where messages come from, as the log says it."""

    def __init__(self) -> None:
        self._next_id = 0
        self._pending: dict[RequestId, Pending] = {}
        self._abandoned: OrderedDict[RequestId, None] = OrderedDict()
        """Requests that were given up after they were written, oldest first."""
        self._serving: dict[RequestId, _Serving] = {}
        self._served = 0
        """How many requests of the server are under way; some may have the same id."""
        self._refused = 0
        self._notices: deque[Callable[[], Coroutine[Any, Any, None]]] = deque()
        """What the notifications that came call for, in their order."""
        self._has_notices = asyncio.Event()
        self._tasks: TaskGroup | None = None
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        self._intercept: OnNotifyIntercept | None = None
        self._skipped = 0
        self._last_skipped = b""
        self._has_heard = False
        """Whether any message has come."""
        self.unmatched = 0
        """Answers that came under an id that no request had, or had a second time."""
        self.on_gap: Callable[[], None] = lambda: None
        """Called when notifications may have been missed while the wire was up."""
        self._fault: str | None = None
        """What the server did, where that ends the wire and what carries it cannot tell."""
        self.is_broken = False
        """Whether it is known to take no more requests; its end follows within a moment."""
        self.ended = asyncio.Event()
        """Set when the wire is down."""

    # -- what carries it ---------------------------------------------------------------------------

    @abstractmethod
    def _listen(self) -> None:
        """Begin to take what comes."""

    @abstractmethod
    async def _send_request(self, message: JsonObject, pending: Pending, opts: CallOptions) -> None:
        """Send a request; what comes back settles `pending`.

        Raises:
            LineClosed: It was not sent.
        """

    @abstractmethod
    async def _send_notification(self, message: JsonObject, opts: CallOptions) -> None:
        """Send a notification; where that is not possible it is dropped."""

    @abstractmethod
    async def _send_answer(self, message: JsonObject) -> None:
        """Answer a request of the server; where that is not possible the answer is dropped."""

    @abstractmethod
    def _refuse_nowait(self, message: JsonObject) -> None:
        """Send an error for a request of the server, unless it does not take what it is sent."""

    @abstractmethod
    def _give_up(self, wire_id: RequestId, opts: CallOptions) -> None:
        """Tell the server that nobody waits for its answer any more, without waiting for it."""

    # -- what the session calls ------------------------------------------------------------------

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the wire until it ends."""
        self._on_request, self._on_notify, self._intercept = on_request, on_notify, on_notify_intercept
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._take_notices)
                self._listen()
                task_status.started()
                await self.ended.wait()
                tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            self._end()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        """Send a request and give the raw result.

        Raises:
            LineClosed: The wire is down, or went down meanwhile.
            MCPError: The server's error, or `REQUEST_TIMEOUT` after `opts["timeout"]`.
        """
        opts = opts or {}
        wire_id, key = self._id(opts.get("request_id"))
        pending = Pending(Answer(), opts.get("on_progress"))
        self._pending[key] = pending
        is_sent = False
        try:
            await self._send_request(_request(wire_id, method, params, pending), pending, opts)
            is_sent = True
            timeout = opts.get("timeout")
            if timeout is None:
                return await pending.answer
            with anyio.move_on_after(timeout):
                return await pending.answer
            self._abandon(wire_id, key, opts)
            raise MCPError(REQUEST_TIMEOUT, f"{method} was not answered within {timeout:g} s")
        except asyncio.CancelledError:  # by the caller or by the clock
            if is_sent:
                self._abandon(wire_id, key, opts)
            raise
        finally:
            self._pending.pop(key, None)
            if pending.answer.done() and not pending.answer.cancelled():
                pending.answer.exception()  # taken: asyncio need not complain that nobody looked

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Send a notification; on a wire that is down it is dropped."""
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        await self._send_notification(message, opts or {})

    # -- requests ----------------------------------------------------------------------------------

    def _id(self, wanted: RequestId | None) -> tuple[RequestId, RequestId]:
        if wanted is not None:
            key = coerce_request_id(wanted)
            if key in self._pending:
                raise ValueError(f"request id {wanted!r} is in use")
            return wanted, key
        self._next_id += 1
        while self._next_id in self._pending:
            self._next_id += 1
        return self._next_id, self._next_id

    def _abandon(self, wire_id: RequestId, key: RequestId, opts: CallOptions) -> None:
        self._abandoned[key] = None
        if len(self._abandoned) > _ABANDONED_KNOWN:
            self._abandoned.popitem(last=False)
        self._give_up(wire_id, opts)

    # -- what comes ----------------------------------------------------------------------------------

    def _take(self, line: bytes, answers_to: Collection[RequestId] | None = None) -> None:
        """Take a message; `answers_to`: the requests whose answers may come this way, None for all."""
        line = line.strip(b" \t\r").removeprefix(b"\xef\xbb\xbf")
        if not line:
            return
        message = decode(line)
        for each in cast("list[Json]", message) if isinstance(message, list) else (message,):
            if not isinstance(each, dict) or not self._dispatch(cast("JsonObject", each), answers_to):
                self._skip(line)

    def _dispatch(self, message: JsonObject, answers_to: Collection[RequestId] | None = None) -> bool:
        """Hand a message to whom it is for; False if it is none."""
        method = message.get("method")
        if isinstance(method, str):
            self._has_heard = True
            params = message.get("params")
            params = cast("JsonObject", params) if isinstance(params, dict) else None
            request_id = as_request_id(message.get("id"))
            if request_id is None:
                self._take_notification(method, params)
            else:
                self._take_request(request_id, method, params)
            return True
        if "id" not in message:
            return False
        key = _key(message["id"])
        pending = None if key is None else self._pending.get(key)
        if not ("result" in message or "error" in message or (pending is not None and "jsonrpc" in message)):
            return False
        if pending is None or pending.answer.done() or (answers_to is not None and key not in answers_to):
            self.unmatched += key is not None and key not in self._abandoned
            _log.debug("an answer came that nobody waits for (id %r)", message["id"])
        else:
            self._settle(pending, message)
        return True

    def _settle(self, pending: Pending, message: JsonObject) -> None:
        """Give a request the answer that this message has."""
        self._has_heard = True
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            pending.answer.set_exception(as_error(cast("JsonObject", error)))
        elif isinstance(result, dict):
            pending.answer.set_result(cast("JsonObject", result))
        else:
            kind = "error" if error is not None else "result"
            pending.answer.set_exception(NoAnswer(f"answered with a malformed {kind}"))

    def _take_notification(self, method: str, params: JsonObject | None) -> None:
        if self._tasks is None or self._on_notify is None:
            return
        if method == "notifications/progress" and params is not None:
            self._take_progress(params)
        elif method == "notifications/cancelled" and params is not None:
            request_id = as_request_id(params.get("requestId"))
            if request_id is not None and (serving := self._serving.get(coerce_request_id(request_id))):
                serving.cancel_requested.set()
                serving.scope.cancel()
        if not run_notify_intercept(self._intercept, method, params):
            self._add_notice(partial(self._notify_session, self._on_notify, method, params))

    def _add_notice(self, notice: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._notices.append(notice)
        self._has_notices.set()

    async def _take_notices(self) -> None:
        """See to notifications in their order.

        What was read in one turn of the loop is done in the next, before more is read: so few wait.
        """
        while True:
            await self._has_notices.wait()
            self._has_notices.clear()
            while self._notices:
                await self._notices.popleft()()

    async def _notify_session(self, on_notify: OnNotify, method: str, params: JsonObject | None) -> None:
        try:
            await on_notify(_Serving(self), method, params)
        except Exception:
            _log.exception("handling the notification %r raised", method)

    def _take_progress(self, params: JsonObject) -> None:
        token, progress = as_request_id(params.get("progressToken")), params.get("progress")
        pending = None if token is None else self._pending.get(coerce_request_id(token))
        if pending is None or pending.on_progress is None or not is_number(progress):
            return
        total, text = params.get("total"), params.get("message")
        self._add_notice(
            partial(
                self._notify_progress,
                pending.on_progress,
                float(cast("float", progress)),
                float(cast("float", total)) if is_number(total) else None,
                text if isinstance(text, str) else None,
            )
        )

    async def _notify_progress(
        self, callback: ProgressFnT, progress: float, total: float | None, message: str | None
    ) -> None:
        try:
            await callback(progress, total, message)
        except Exception:
            _log.exception("a progress callback raised")

    def _take_request(self, request_id: RequestId, method: str, params: JsonObject | None) -> None:
        if self._tasks is None:
            return
        if self._served >= MAX_SERVED:
            self._refuse(request_id)
            return
        self._served += 1
        serving = self._serving[coerce_request_id(request_id)] = _Serving(self, request_id)
        self._tasks.start_soon(self._serve, serving, method, params)

    def _refuse(self, request_id: RequestId) -> None:
        """Answer a request that is one too many, if the server reads; if not, nothing piles up for it."""
        self._refused += 1
        if self._refused == 1:
            _log.warning("the server has %d requests open; further ones are refused", MAX_SERVED)
        error = {"code": TOO_MANY_REQUESTS, "message": f"more than {MAX_SERVED} requests at once"}
        self._refuse_nowait({"jsonrpc": "2.0", "id": request_id, "error": error})

    async def _serve(self, serving: _Serving, method: str, params: JsonObject | None) -> None:
        try:
            await self._run_and_answer(serving, method, params)
        finally:
            self._served -= 1

    async def _run_and_answer(self, serving: _Serving, method: str, params: JsonObject | None) -> None:
        """Run one request of the server and answer it, unless it was cancelled."""
        assert self._on_request is not None
        assert serving.request_id is not None
        key = coerce_request_id(serving.request_id)
        answer: JsonObject = {"jsonrpc": "2.0", "id": serving.request_id}
        try:
            with serving.scope:
                answer["result"] = await self._on_request(serving, method, params)
        except MCPError as error:
            answer["error"] = error.error.model_dump(mode="json", by_alias=True, exclude_none=True)
        except ValidationError:
            answer["error"] = {"code": INVALID_PARAMS, "message": "Invalid request parameters"}
        except Exception:
            _log.exception("handling the server's request %r raised", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": "Internal error"}
        finally:
            if self._serving.get(key) is serving:
                del self._serving[key]
        if not serving.cancel_requested.is_set():
            await self._send_answer(answer)

    def _skip(self, line: bytes) -> None:
        self._skipped += 1
        self._last_skipped = line if len(line) <= _KEPT else b"a long one"
        if self._skipped < _MAX_SKIPPED_LOGGED:
            _log.warning("skipped a line on %s that is no message: %s", self._source, _quoted(line))
        elif self._skipped == _MAX_SKIPPED_LOGGED:
            text = "%d lines on %s were no messages; the rest is skipped in silence"
            _log.warning(text, self._skipped, self._source)

    def strange(self) -> str:
        """What came in place of answers, as the end of a sentence; empty if nothing did."""
        told = ""
        if self.unmatched:
            told = f"; {_counted(self.unmatched, 'answer')} came under an id that nobody waits for"
        if self._skipped:
            lines = _counted(self._skipped, "line")
            told += f"; {lines} on {self._source} made no message, the last: {_quoted(self._last_skipped)}"
        return told

    def _end(self) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        for pending in tuple(self._pending.values()):  # who hears of it goes on at once, and leaves
            if not pending.answer.done():
                pending.answer.set_exception(LineClosed(written=pending.written, reason=self._fault))
        self._pending.clear()


@dataclass(slots=True, eq=False)
class _Serving:
    """The context of one message from the server, as the SDK's session wants it."""

    _dispatcher: WireDispatcher
    request_id: RequestId | None = None
    message_metadata: None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind=self._dispatcher.kind, can_send_request=True)

    @property
    def can_send_request(self) -> bool:
        return True

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        return await self._dispatcher.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Clients report no progress: the session never asks for it here."""


def _request(
    wire_id: RequestId, method: str, params: Mapping[str, Any] | None, pending: Pending
) -> JsonObject:
    """A request as a message, which asks for progress where somebody wants to know of it."""
    message: JsonObject = {"jsonrpc": "2.0", "id": wire_id, "method": method}
    sent: JsonObject = dict(params) if params else {}
    if pending.on_progress is not None:
        sent["_meta"] = {**sent.get("_meta", {}), "progressToken": wire_id}
    if sent:
        message["params"] = sent
    return message


def cancelled(wire_id: RequestId) -> JsonObject:
    """The notification that nobody waits for a request any more."""
    return {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": wire_id, "reason": "the caller no longer waits"},
    }


def _key(wire_id: Json) -> RequestId | None:
    """The key of a pending request that an id may mean; a server may write a number as a fraction."""
    if type(wire_id) is int:
        return wire_id
    if isinstance(wire_id, float) and wire_id.is_integer():
        wire_id = int(wire_id)
    request_id = as_request_id(wire_id)
    return None if request_id is None else coerce_request_id(request_id)


def _quoted(line: bytes) -> str:
    """The beginning of a line. Cut last: half a secret is not found."""
    return mask(line.decode(errors="replace"))[:_QUOTED]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
