"""A session over HTTP: its headers, its end, its loss, and the stream on which the server speaks unasked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from aiohttp import web

from tests.mcp.support import BOUND_SECS, event_of, host, http, states, until
from tests.servers.own.odd_http import (
    Message,
    OddHttp,
    answer_to,
    event,
    first,
    honest,
    notification,
    odd_http,
    reset,
    status,
    stream,
)
from toolpost import (
    ConnectFailed,
    ConnectionLost,
    Error,
    OpenHost,
    ResourceListUpdated,
    ResourceUpdated,
)
from toolpost.mcp import get_stream, http_session
from toolpost.mcp import http as wire

A = "odd://a"
FAST: dict[str, Any] = {"tooling_connect_backoff_start_ms": 5}


async def call(opened: OpenHost, text: str = "hi") -> str:
    return (await opened.tooling.get("it").call_tool_blocking("echo", {"text": text})).value


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are opened again at once."""
    monkeypatch.setattr(get_stream, "FIRST_PAUSE_SECS", 0.001)
    monkeypatch.setattr(wire, "RETRY_SECS", 0.001)
    monkeypatch.setattr(wire, "RETRY_FLOOR_SECS", 0.001)


# -- headers ---------------------------------------------------------------------------------------


async def test_the_session_id_and_the_version_go_with_every_request_after_the_handshake() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        await call(opened)
        await until(lambda: server.streams)

    [initialize] = server.asked("initialize")
    assert "Mcp-Session-Id" not in initialize.headers
    assert "MCP-Protocol-Version" not in initialize.headers
    later = [each for each in server.seen if each.name not in ("initialize", "server/discover")]
    names = {"notifications/initialized", "GET", "tools/call", "tools/list", "DELETE"}
    assert {each.name for each in later} == names
    for each in later:
        assert each.headers["Mcp-Session-Id"] == "session-1"
        assert each.headers["MCP-Protocol-Version"] == "2025-11-25"


async def test_a_post_accepts_json_and_streams_and_a_get_streams_only() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        await call(opened)
        await until(lambda: server.streams)

    for each in server.asked("tools/call"):
        assert each.headers["Accept"] == "application/json, text/event-stream"
        assert each.headers["Content-Type"] == "application/json"
        assert each.headers["Accept-Encoding"] == "gzip, deflate"
    [get] = server.asked("GET")
    assert get.headers["Accept"] == "text/event-stream"


# -- its end ---------------------------------------------------------------------------------------


async def test_the_session_is_ended_at_the_server_when_the_host_ends() -> None:
    async with odd_http() as server:
        async with host(http(server.url)) as opened:
            await call(opened)

        assert len(server.asked("DELETE")) == 1
        assert server.sessions == set()


@pytest.mark.parametrize("code", [404, 405, 500])
async def test_whatever_the_server_says_to_that_is_a_normal_end(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with odd_http() as server:
        server.on["DELETE"] = status(code)
        async with host(http(server.url)) as opened:
            await call(opened)

    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_a_server_that_does_not_let_go_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "DELETE_SECS", 0.05)
    async with odd_http() as server:
        server.on["DELETE"] = server.hang
        async with host(http(server.url)) as opened:
            await call(opened)

        assert len(server.asked("DELETE")) == 1


@pytest.mark.parametrize("header", [{}, {"Mcp_Session_Id": ""}], ids=["none", "an empty one"])
async def test_a_server_without_sessions_gets_no_id_and_no_delete(header: dict[str, str]) -> None:
    async with odd_http() as server:

        async def initialize(request: Any, message: Message) -> Any:
            capabilities: Message = {"tools": {}}
            result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "x", "version": "1"}}
            data = json.dumps(answer_to(message, result | {"capabilities": capabilities}))
            return await status(200, data, Content_Type="application/json", **header)(request, message)

        server.on |= {"initialize": initialize, "tools/call": server.answer, "GET": status(405)}
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"

    assert not any("Mcp-Session-Id" in each.headers for each in server.seen)
    assert server.asked("DELETE") == []


# -- its loss --------------------------------------------------------------------------------------


async def gone(request: Any, message: Message) -> Any:
    return await status(404, "session not found")(request, message)


async def forgotten(request: Any, message: Message) -> Any:
    return await status(400, "Bad Request: No valid session ID provided")(request, message)


@pytest.mark.parametrize("answer", [gone, forgotten])
async def test_a_call_that_was_refused_for_its_session_is_sent_again_in_a_new_one(answer: Any) -> None:
    async with odd_http() as server:
        server.on["tools/call"] = first(answer, then=server.answer)
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"
            found = states(opened.trace)

    old, new = server.asked("tools/call")
    assert (old.headers["Mcp-Session-Id"], new.headers["Mcp-Session-Id"]) == ("session-1", "session-2")
    assert all("Mcp-Session-Id" not in each.headers for each in server.asked("initialize"))
    assert found == ["dialing", "ready", "lost", "dialing", "ready"]


async def test_all_calls_that_were_refused_for_their_session_are_sent_again() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        await call(opened)
        server.sessions.clear()

        assert await asyncio.gather(*(call(opened, str(n)) for n in range(16))) == [str(n) for n in range(16)]

    assert len(server.asked("initialize")) == 2


async def test_a_server_that_knows_no_session_is_not_asked_for_ever() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        server.on["tools/call"] = gone

        with pytest.raises(ConnectionLost, match=r"no longer knows the session \(HTTP 404\)"):
            await call(opened)

    assert len(server.asked("tools/call")) == 2
    assert len(server.asked("initialize")) == 2


async def test_a_server_that_was_restarted_is_dialed_by_the_next_use() -> None:
    async with odd_http() as server, host(http(server.url), **FAST) as opened:
        await call(opened)
        await server.stop()
        await server.start()

        assert await call(opened) == "hi"

    assert len(server.asked("initialize")) == 2


async def test_a_server_that_is_away_for_a_while_is_waited_for() -> None:
    async with odd_http() as server, host(http(server.url), **FAST) as opened:
        await call(opened)
        await server.stop()
        waiting = asyncio.ensure_future(call(opened))
        await until(lambda: states(opened.trace)[-1] == "dialing")
        await server.start()

        assert await waiting == "hi"


async def test_a_server_that_goes_away_during_a_call_fails_it_and_it_is_not_sent_again() -> None:
    async with odd_http() as server, host(http(server.url), **FAST) as opened:
        server.on["tools/call"] = first(reset, then=server.answer)

        with pytest.raises(ConnectionLost, match="effect is unknown"):
            await call(opened)
        assert await call(opened) == "hi"

    assert len(server.asked("tools/call")) == 2


async def test_a_server_that_cannot_be_reached_fails_the_dial_and_says_where() -> None:
    async with odd_http() as server:
        url = server.url
    async with host(http(url), tooling_connect_backoff_cap_secs=0) as opened:
        with pytest.raises(ConnectFailed, match=rf"the server cannot be reached at {url}: ") as caught:
            await call(opened)

    assert caught.value.attempts == 1


# -- dials that fail -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "said"), [(401, "HTTP 401 Unauthorized.*`auth_token`"), (403, "HTTP 403 Forbidden: no")]
)
async def test_a_dial_that_is_not_allowed_is_final_at_once(code: int, said: str, waits: list[float]) -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        server.on |= dict.fromkeys(("server/discover", "initialize"), status(code, "no"))

        with pytest.raises(ConnectFailed, match=said):
            await call(opened)

    assert waits == []


async def test_a_page_in_place_of_a_server_is_final_and_named(waits: list[float]) -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        page = status(200, "<html>Sign in</html>", Content_Type="text/html")
        server.on |= dict.fromkeys(("server/discover", "initialize"), page)

        with pytest.raises(ConnectFailed, match=rf"at {server.url} answered HTTP 200 with 'text/html'"):
            await call(opened)

    assert waits == []


async def test_a_version_that_is_refused_by_status_is_final(waits: list[float]) -> None:
    async def refuse(request: Any, message: Message) -> Any:
        error = {
            "code": -32602,
            "message": "Unsupported protocol version",
            "data": {"supported": ["1999-01-01"]},
        }
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return await status(400, data, Content_Type="application/json")(request, message)

    async with odd_http() as server, host(http(server.url)) as opened:
        server.on["initialize"] = refuse

        with pytest.raises(ConnectFailed, match="refused the protocol version: Unsupported"):
            await call(opened)

    assert waits == []


async def test_a_server_that_is_not_ready_is_dialed_again_when_it_says(waits: list[float]) -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        busy = status(503, "warming up", Retry_After="7")
        server.on["initialize"] = first(busy, busy, then=server.initialize)

        assert await call(opened) == "hi"

    assert waits == [7.0, 7.0]


async def test_a_notification_that_is_not_accepted_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        server.on["notifications/initialized"] = status(400, "what?")

        assert await call(opened) == "hi"

    assert "notifications/initialized was not accepted: HTTP 400 what?" in caplog.text


# -- the server's own stream -----------------------------------------------------------------------


async def test_an_update_on_the_stream_reaches_the_subscriber() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        listing = await it.subscribe_resource_list()
        await until(lambda: server.asked("resources/subscribe"))
        await call(opened)
        await server.updated(A)
        await server.push(notification("notifications/resources/list_changed"))

        assert isinstance(await event_of(opened, subscription), ResourceUpdated)
        assert isinstance(await event_of(opened, listing), ResourceListUpdated)


async def test_what_an_agent_calls_after_it_has_subscribed_does_not_overtake() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        await call(opened)
        await opened.tooling.get("it").subscribe_resource(A)
        await call(opened)

    names = [each.name for each in server.seen if each.name in ("resources/subscribe", "tools/call")]
    assert names == ["tools/call", "resources/subscribe", "tools/call"]


@pytest.mark.parametrize("code", [404, 405, 406])
async def test_a_server_need_not_have_a_stream_and_is_asked_once(code: int) -> None:
    async with odd_http() as server:
        server.on["GET"] = status(code)
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"
            assert await call(opened) == "hi"

    assert len(server.asked("GET")) == 1
    assert len(server.asked("initialize")) == 1


async def test_what_is_no_stream_is_not_taken_for_one() -> None:
    async with odd_http() as server:
        server.on["GET"] = status(200, "{}", Content_Type="application/json")
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"

    assert len(server.asked("GET")) == 1


async def test_a_server_that_sends_no_headers_before_its_first_event_does_not_hold_up_the_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_session, "OPENED_SECS", 0.01)
    async with odd_http() as server:
        server.on["GET"] = server.hang
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"


async def test_a_stream_that_ended_is_taken_up_after_its_last_event_and_repeats_nothing(quick: None) -> None:
    updates = [event(notification("notifications/resources/updated", uri=A), id=f"e{n}") for n in (1, 2)]
    async with odd_http() as server:
        server.on["GET"] = first(
            stream(updates[0], abort=True), stream(*updates), stream(*updates), then=server.open_stream
        )
        async with host(http(server.url)) as opened:
            subscription = await opened.tooling.get("it").subscribe_resource(A)
            await event_of(opened, subscription)
            await until(lambda: server.streams)
            await server.updated("odd://last")
            await call(opened)
            while (envelope := opened.try_recv()) is not None:
                assert envelope.id == subscription

    ids = [each.headers.get("Last-Event-ID") for each in server.asked("GET")]
    assert ids == [None, "e1", "e2", "e2"]


async def test_where_there_is_nothing_to_go_on_from_every_subscriber_looks_again(quick: None) -> None:
    async with odd_http() as server:
        server.on["GET"] = first(stream(b": hello\n\n"), then=server.open_stream)
        async with host(http(server.url)) as opened:
            subscription = await opened.tooling.get("it").subscribe_resource(A)

            assert isinstance(await event_of(opened, subscription), ResourceUpdated)


async def test_a_stream_that_ends_at_once_is_opened_ever_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    class Anyio:
        async def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            if len(slept) > 10:
                await asyncio.Event().wait()

        def __getattr__(self, name: str) -> Any:
            return getattr(__import__("anyio"), name)

    monkeypatch.setattr(get_stream, "anyio", Anyio())
    async with odd_http() as server:
        server.on["GET"] = stream(b"retry: 1\nid: 7\ndata:\n\n")
        async with host(http(server.url)) as opened:
            await call(opened)
            await until(lambda: len(slept) > 10)

    assert slept == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]


def test_a_wait_that_the_server_asks_for_is_kept_and_bounded() -> None:
    read = wire.Stream(lambda _: None)
    assert read.retry_secs(0.5) == 0.5
    for asked, expected in ((3000, 3.0), (10**17, wire.RETRY_CAP_SECS), (0, wire.RETRY_FLOOR_SECS)):
        read._retry_ms = asked  # pyright: ignore[reportPrivateUsage]: as a stream would set it
        assert read.retry_secs(0.5) == expected


async def test_a_subscription_goes_on_after_a_restart_with_one_refresh(quick: None) -> None:
    async with odd_http() as server, host(http(server.url), **FAST) as opened:
        subscription = await opened.tooling.get("it").subscribe_resource(A)
        await until(lambda: server.asked("resources/subscribe"))
        await call(opened)
        await server.stop()
        await server.start()

        assert isinstance(await event_of(opened, subscription), ResourceUpdated)
        assert len(server.asked("resources/subscribe")) == 2
        await server.updated(A)
        assert isinstance(await event_of(opened, subscription), ResourceUpdated)


async def test_a_session_that_is_gone_is_noticed_by_its_stream(quick: None) -> None:
    """No call is made: the stream is refused, a ping tells why, the subscription moves to a new session."""
    async with odd_http() as server, host(http(server.url), **FAST) as opened:
        subscription = await opened.tooling.get("it").subscribe_resource(A)
        await until(lambda: server.asked("resources/subscribe"))
        await call(opened)
        server.sessions.clear()
        server.end_streams()

        assert isinstance(await event_of(opened, subscription), ResourceUpdated)

    assert server.asked("resources/subscribe")[-1].headers["Mcp-Session-Id"] == "session-2"


async def test_a_server_may_ask_on_the_stream_of_a_call_and_is_answered() -> None:
    async with odd_http() as server:

        async def ask(request: Any, message: Message) -> Any:
            ping = {"jsonrpc": "2.0", "id": "q1", "method": "ping"}
            roots = {"jsonrpc": "2.0", "id": "q2", "method": "roots/list"}
            response = await stream(event(ping), event(roots))(request, message)
            await until(lambda: len(server.asked("answer")) == 2)
            await response.write(event(honest(message)))
            return response

        server.on["tools/call"] = ask
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"

    answers = {each.message["id"]: each.message for each in server.asked("answer")}
    assert answers["q1"]["result"] == {}
    assert answers["q2"]["error"]["code"] == -32600


async def test_an_answer_on_the_servers_own_stream_is_nobodys() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:

        async def elsewhere(request: Any, message: Message) -> Any:
            await server.push({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}})
            return await server.answer(request, message)

        server.on["tools/call"] = elsewhere

        assert await call(opened, "mine") == "mine"


# -- answers that are taken up again ---------------------------------------------------------------


async def test_an_answer_whose_stream_ended_before_is_taken_up_where_it_was(quick: None) -> None:
    async with odd_http() as server:
        held: list[Message] = []

        async def begin(request: Any, message: Message) -> Any:
            held.append(honest(message))
            return await stream(b"id: a1\nretry: 1\ndata:\n\n")(request, message)

        async def go_on(request: Any, message: Message) -> Any:
            if request.headers.get("Last-Event-ID") != "a1":
                return await server.open_stream(request, message)
            return await stream(event(held[0], id="a2"))(request, message)

        server.on |= {"tools/call": begin, "GET": go_on}
        async with host(http(server.url)) as opened:
            assert await call(opened) == "hi"

    assert len(server.asked("tools/call")) == 1


async def test_attempts_to_take_it_up_are_bounded(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "RESUMES", 5)
    async with odd_http() as server:

        async def nothing(request: Any, message: Message) -> Any:
            if request.method == "GET" and "Last-Event-ID" not in request.headers:
                return await server.open_stream(request, message)
            return await stream(f"id: b{len(server.seen)}\ndata:\n\n".encode())(request, message)

        server.on |= {"tools/call": nothing, "GET": nothing}
        async with host(http(server.url)) as opened:
            with pytest.raises(ConnectionLost, match="5 attempts to go on brought nothing"):
                await call(opened)

            server.on["tools/call"] = server.answer
            assert await call(opened) == "hi"

    assert len([each for each in server.asked("GET") if "Last-Event-ID" in each.headers]) == 5


async def test_a_server_that_does_not_take_it_up_ends_the_wait(quick: None) -> None:
    async with odd_http() as server:

        async def refuse(request: Any, message: Message) -> Any:
            if "Last-Event-ID" not in request.headers:
                return await server.open_stream(request, message)
            return await status(405)(request, message)

        server.on |= {"tools/call": stream(b"id: a1\ndata:\n\n"), "GET": refuse}
        async with host(http(server.url)) as opened:
            with pytest.raises(ConnectionLost, match=r"does not take up its stream again \(HTTP 405\)"):
                await call(opened)


async def test_a_queued_call_gets_its_error_as_an_event() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        server.on["tools/call"] = status(500, "oops")
        id = await opened.tooling.get("it").call_tool("echo", {"text": "x"})
        envelope = await opened.recv(BOUND_SECS)

    assert envelope.id == id
    assert isinstance(envelope.event, Error)
    assert "HTTP 500 Internal Server Error: oops" in envelope.event.text


# -- from 2026-07-28 on ----------------------------------------------------------------------------


@pytest.fixture
async def modern() -> AsyncGenerator[OddHttp]:
    """A server of 2026-07-28: no session, no stream of its own."""

    async def discover(request: Any, message: Message) -> Any:
        said: Message = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return web.json_response(answer_to(message, said))

    async def called(request: Any, message: Message) -> Any:
        result = honest(message)
        result["result"]["resultType"] = "complete"
        return web.json_response(result)

    async with odd_http() as server:
        server.on |= {"server/discover": discover, "tools/call": called}
        yield server


async def test_a_request_of_the_new_era_names_its_method_and_its_tool(modern: OddHttp) -> None:
    async with host(http(modern.url)) as opened:
        assert await call(opened) == "hi"

    # the list says what the result must look like
    assert [each.name for each in modern.seen] == ["server/discover", "tools/call", "tools/list"]
    asked = modern.seen[1].headers
    assert asked["MCP-Protocol-Version"] == "2026-07-28"
    assert (asked["Mcp-Method"], asked["Mcp-Name"]) == ("tools/call", "echo")
    assert "Mcp-Session-Id" not in asked


async def test_in_the_new_era_a_call_is_cancelled_by_the_end_of_its_connection(modern: OddHttp) -> None:
    ended = asyncio.Event()

    async def hang(request: Any, message: Message) -> Any:
        while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110  # its end sets no event
            await asyncio.sleep(0.005)
        ended.set()
        return web.Response()

    async with host(http(modern.url)) as opened:
        modern.on["tools/call"] = hang
        it = opened.tooling.get("it")
        id = await it.call_tool("echo", {"text": "x"})
        await until(lambda: modern.asked("tools/call"))
        await it.cancel(id)
        await asyncio.wait_for(ended.wait(), BOUND_SECS)

    assert modern.asked("notifications/cancelled") == []
