"""What an HTTP server may answer to one request, and what the caller is given for it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.mcp.support import host, http, until
from tests.servers.own.odd_http import (
    Answer,
    Message,
    OddHttp,
    body,
    error_to,
    event,
    first,
    honest,
    notification,
    odd_http,
    raw,
    reset,
    status,
    stream,
    text,
)
from toolpost import ConnectionLost, RequestTimeout, ServerError, ToolpostError
from toolpost.mcp import http as wire

ODD = "ä\u2028𝄞"


@asynccontextmanager
async def calling(**keys: Any) -> AsyncGenerator[tuple[OddHttp, Callable[..., Any]]]:
    """A server, and a function that calls its tool `echo` and gives the text or raises."""
    async with odd_http() as server, host(http(server.url, **keys)) as opened:

        async def call(value: str = ODD, **options: Any) -> str:
            it = opened.tooling.get("it")
            return (await it.call_tool_blocking("echo", {"text": value}, **options)).value

        yield server, call


def encoded(message: Message) -> bytes:
    return json.dumps(honest(message), ensure_ascii=False).encode()


def as_event(message: Message) -> bytes:
    return event(honest(message))


def byte_of_event(n: int) -> Callable[[Message], bytes]:
    return lambda message: as_event(message)[n : n + 1]


# -- answers that are good -------------------------------------------------------------------------


def in_lines(message: Message) -> bytes:
    lines = json.dumps(honest(message), indent=1, ensure_ascii=False).split("\n")
    return "".join(f"data: {line}\n" for line in lines).encode() + b"\n"


def without_media_type(message: Message) -> bytes:
    data = encoded(message)
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


GOOD: dict[str, Answer] = {
    "JSON": body(encoded, "application/json"),
    "JSON with a parameter and capitals": body(encoded, "Application/JSON; charset=UTF-8"),
    "JSON without a media type": raw(without_media_type),
    "JSON in gzip": body(lambda it: gzip.compress(encoded(it)), "application/json", Content_Encoding="gzip"),
    "an array of one": body(lambda it: b"[" + encoded(it) + b"]", "application/json"),
    "a stream": stream(as_event),
    "a stream with a parameter": body(as_event, "text/event-stream;charset=utf-8"),
    "a stream in gzip": body(
        lambda it: gzip.compress(as_event(it)), "text/event-stream", Content_Encoding="gzip"
    ),
    "a stream byte by byte": stream(*map(byte_of_event, range(300))),
    "one message over several lines": stream(in_lines),
    "a priming event first": stream(b"id: 1\nretry: 10\ndata:\n\n", as_event),
    "noise first": stream(
        b": keep-alive\n\nevent: ping\ndata: now\n\nid: 7\n\nevent: keepalive\ndata: {}\n\n", as_event
    ),
    "no JSON first": stream(b"data: {oops\n\ndata: 7\n\n", as_event),
    "a foreign answer first": stream(
        event({"jsonrpc": "2.0", "id": 987654, "result": text("FOREIGN")}), as_event
    ),
    "its answer twice": stream(as_event, as_event),
    "a notification first": stream(event(notification("window/logMessage", a=1)), as_event),
}


@pytest.mark.parametrize("form", GOOD)
async def test_an_answer_may_come_in_any_of_these_forms(form: str) -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = GOOD[form]

        assert await call() == ODD
        assert await call("again") == "again"


@pytest.mark.parametrize("size", [2 << 20, 20 << 20])
@pytest.mark.parametrize("form", ["JSON", "a stream"])
async def test_an_answer_may_be_large(form: str, size: int) -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = GOOD[form]

        assert len(await call("x" * size)) == size


async def test_a_stream_is_read_while_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is handed over although its stream does not end."""
    monkeypatch.setattr(wire, "DRAIN_SECS", 0.01)
    async with calling() as (server, call):

        async def endless(request: Any, message: Message) -> Any:
            response = await stream(as_event)(request, message)
            await server.hang(request, message)
            return response

        server.on["tools/call"] = endless

        assert await call("first") == "first"
        assert await call("second") == "second"


async def test_what_is_still_read_when_the_host_is_left_ends_with_it() -> None:
    def exchanges() -> list[str]:
        running = [repr(task.get_coro()) for task in asyncio.all_tasks()]
        return [each for each in running if "_Exchange" in each]

    async with odd_http() as server:
        async with host(http(server.url)) as opened:

            async def endless(request: Any, message: Message) -> Any:
                response = await stream(as_event)(request, message)
                await server.hang(request, message)
                return response

            server.on["tools/call"] = endless
            await opened.tooling.get("it").call_tool_blocking("echo", {"text": ODD})
            assert len(exchanges()) == 1
        assert exchanges() == []


@pytest.mark.parametrize("form", ["JSON", "a stream", "its answer twice"])
async def test_connections_are_used_again(form: str) -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = GOOD[form]
        for _ in range(5):
            await call()
            await asyncio.sleep(0.01)  # a stream is read to its end after its answer

    connections = {each.peer for each in server.seen if each.verb == "POST"}
    assert len(connections) <= 2, "one is enough, and one is for the probe"


async def test_calls_run_side_by_side_and_each_gets_its_own_answer() -> None:
    async with calling() as (server, call):
        waiting: list[asyncio.Event] = []

        async def last_first(request: Any, message: Message) -> Any:
            waiting.append(mine := asyncio.Event())
            if len(waiting) == 8:
                waiting[-1].set()
            await mine.wait()
            waiting.pop()
            if waiting:
                waiting[-1].set()
            return await stream(as_event)(request, message)

        server.on["tools/call"] = last_first
        names = [f"call {n}" for n in range(8)]

        assert await asyncio.gather(*map(call, names)) == names


async def test_a_server_that_closes_connections_as_they_are_used_again_loses_one_request() -> None:
    used: set[object] = set()
    outcomes: list[object] = []

    async with calling() as (server, call):

        async def once_a_connection(request: Any, message: Message) -> Any:
            peer = request.transport.get_extra_info("peername")
            if peer in used:
                return await reset(request, message)
            used.add(peer)
            return await server.answer(request, message)

        server.on["tools/call"] = once_a_connection
        for n in range(6):
            try:
                outcomes.append(await call(str(n)))
            except ConnectionLost as error:
                outcomes.append(error)

    assert len([each for each in outcomes if isinstance(each, ConnectionLost)]) == 1
    assert [each for each in outcomes if isinstance(each, str)] == ["0", "2", "3", "4", "5"]


# -- answers that are none -------------------------------------------------------------------------


def short(message: Message) -> bytes:
    data = encoded(message)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data) + 500}\r\n\r\n"
    return head.encode() + data


BAD: dict[str, tuple[Answer, type[ToolpostError], str]] = {
    "500": (status(500, "<html>oops</html>"), ServerError, "HTTP 500 Internal Server Error: <html>oops"),
    "429": (
        status(429, "slow down", Retry_After="3"),
        ServerError,
        r"HTTP 429 Too Many Requests \(Retry-After: 3\): slow down",
    ),
    "401": (
        status(401, WWW_Authenticate='Bearer realm="x"'),
        ServerError,
        r'HTTP 401 Unauthorized \(WWW-Authenticate: Bearer realm="x"\) .*auth_token',
    ),
    "403": (status(403, "not you"), ServerError, "HTTP 403 Forbidden: not you"),
    "a status that nobody knows": (status(599), ServerError, r"HTTP 599 \(code"),
    "accepted, and nothing more": (status(202), ServerError, "HTTP 202 without an answer"),
    "no content": (status(204), ServerError, "HTTP 204 without an answer"),
    "text": (
        body(lambda _: b"hi", "text/plain"),
        ServerError,
        r"at http://\S+ answered HTTP 200 with 'text/pl",
    ),
    "a page": (body(lambda _: b"<html>", "text/html; charset=utf-8"), ServerError, "with 'text/html', not"),
    "no JSON": (
        body(lambda _: b"{oops", "application/json"),
        ServerError,
        "no answer to this request: {oops",
    ),
    "another id": (
        body(lambda it: json.dumps(honest(it) | {"id": 987654}).encode(), "application/json"),
        ServerError,
        "no answer to this request.*987654",
    ),
    "a broken body": (raw(short), ConnectionLost, "an answer that ends too early"),
    "a broken connection": (reset, ConnectionLost, "the server .* connection"),
    "what is no HTTP": (raw(lambda _: b"hello\r\n\r\n"), ConnectionLost, "no HTTP"),
    "an unknown encoding": (
        body(encoded, "application/json", Content_Encoding="x-odd"),
        ConnectionLost,
        "encoding 'x-odd', which it was not offered",
    ),
    "an encoding that it is not in": (
        body(encoded, "application/json", Content_Encoding="gzip"),
        ConnectionLost,
        "cannot be decoded|not in its encoding",
    ),
    "half of gzip": (
        body(lambda it: gzip.compress(encoded(it))[:-20], "application/json", Content_Encoding="gzip"),
        ServerError,
        "no answer to this request, in gzip: {",
    ),
    "an empty stream": (stream(), ConnectionLost, "ended the stream of its answer without an answer"),
    "a stream that ends in an event": (
        stream(lambda it: as_event(it).rstrip()),
        ConnectionLost,
        "ended the stream of its answer without an answer",
    ),
    "a stream that breaks": (stream(b"data: {", abort=True), ConnectionLost, "ends too early|connection"),
    "a stream without its answer": (
        stream(event({"jsonrpc": "2.0", "id": 987654, "result": text("FOREIGN")})),
        ConnectionLost,
        "without an answer",
    ),
}


@pytest.mark.parametrize("form", BAD)
async def test_a_bad_answer_fails_that_call_at_once_says_why_and_fails_no_other(form: str) -> None:
    bad, kind, said = BAD[form]
    async with calling() as (server, call):
        server.on["tools/call"] = first(bad, then=server.answer)

        with pytest.raises(kind, match=said):
            await call()
        assert await call("next") == "next"

    assert len(server.asked("tools/call")) == 2, "what may have had effect is not sent again"
    assert len(server.asked("initialize")) == 1


async def test_a_status_can_be_read_by_a_program() -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = status(503, "later", Retry_After="7")

        with pytest.raises(ServerError) as caught:
            await call()

    assert caught.value.data == {"status": 503, "Retry-After": "7"}


@pytest.mark.parametrize("code", [200, 400, 404])
async def test_a_json_rpc_error_is_one_whatever_its_status(code: int) -> None:
    async with calling() as (server, call):

        async def refuse(request: Any, message: Message) -> Any:
            said = json.dumps(error_to(message, -32602, "no such tool"))
            return await status(code, said, Content_Type="application/json")(request, message)

        server.on["tools/call"] = refuse
        if code == 404:  # with that status a session is gone, unless the error says what is missing
            server.on["tools/call"] = status(
                404,
                json.dumps(
                    {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such tool"}}
                ),
                Content_Type="application/json",
            )

        with pytest.raises(ServerError, match="the server answered: no such tool"):
            await call()


async def test_an_error_without_an_id_is_that_of_its_request() -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "what?"}})
    async with calling() as (server, call):
        server.on["tools/call"] = body(lambda _: message.encode(), "application/json")

        with pytest.raises(ServerError, match=r"the server answered: what\?") as caught:
            await call()

    assert caught.value.code == -32700


@pytest.mark.parametrize("form", ["JSON", "a stream"])
async def test_an_answer_that_is_too_long_fails_that_call_and_names_the_limit(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_ANSWER_BYTES", 1 << 20)
    async with calling() as (server, call):
        server.on["tools/call"] = GOOD[form]

        with pytest.raises(ServerError, match="longer than 1 MiB"):
            await call("x" * (2 << 20))
        assert await call("next") == "next"


async def test_a_call_that_is_not_answered_ends_in_time_and_the_server_is_told() -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = first(server.hang, then=server.answer)

        with pytest.raises(RequestTimeout, match=r"no answer within 0\.1 s"):
            await call(timeout=0.1)
        assert await call("next") == "next"

        [asked, _] = server.asked("tools/call")
        [told] = server.asked("notifications/cancelled")
    assert told.message["params"]["requestId"] == asked.message["id"]


async def test_bytes_that_bring_nothing_do_not_stop_the_clock() -> None:
    async with calling() as (server, call):

        async def alive(request: Any, message: Message) -> Any:
            response = await stream(b": alive\n\n")(request, message)
            while True:
                await response.write(b": alive\n\n")
                await asyncio.sleep(0.01)

        server.on["tools/call"] = first(alive, then=server.answer)

        with pytest.raises(RequestTimeout):
            await call(timeout=0.1)
        assert await call("next") == "next"


async def test_a_caller_that_leaves_takes_only_its_own_call_with_it() -> None:
    async with calling() as (server, call):
        server.on["tools/call"] = first(server.hang, then=server.answer)
        left = asyncio.ensure_future(call())
        await until(lambda: server.asked("tools/call"))
        left.cancel()

        assert await call("next") == "next"
        assert left.cancelled() or left.cancelling()
