"""A change that comes while a subscription is made, ended or renewed is not missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import pytest
from aiohttp import web

from tests.mcp.support import event_of, host, http, odd, received, until
from tests.servers.own.odd_http import Message, OddHttp, answer_to, odd_http
from toolpost import ResourceUpdated
from toolpost.mcp import subscriptions

A = "odd://a"


class Changing:
    """The resource `A` of a server, and who is subscribed to it."""

    def __init__(self, server: OddHttp) -> None:
        self.text = "before"
        self.is_subscribed = False
        self.asked = 0
        """How many `resources/subscribe` have come."""
        self.ended = 0
        """How many `resources/unsubscribe` have been done."""
        server.on |= {
            "resources/read": self.read,
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.unsubscribe,
        }

    async def read(self, _: web.Request, message: Message) -> web.StreamResponse:
        return web.json_response(answer_to(message, {"contents": [{"uri": A, "text": self.text}]}))

    async def subscribe(self, _: web.Request, message: Message) -> web.StreamResponse:
        self.asked += 1
        self.is_subscribed = True
        return web.json_response(answer_to(message, {}))

    async def unsubscribe(self, _: web.Request, message: Message) -> web.StreamResponse:
        self.is_subscribed = False
        self.ended += 1
        return web.json_response(answer_to(message, {}))


async def test_over_http_a_subscription_is_not_undone_by_the_end_of_the_one_before() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        changing, it = Changing(server), opened.tooling.get("it")

        async def takes_its_time(request: web.Request, message: Message) -> web.StreamResponse:
            with anyio.move_on_after(0.5):  # what must wait for this would come now, if it did not
                await until(lambda: changing.asked == 2)
            return await changing.unsubscribe(request, message)

        server.on["resources/unsubscribe"] = takes_its_time
        first = await it.subscribe_resource(A)
        await it.read_resource(A)
        await it.unsubscribe_resource(first)
        second = await it.subscribe_resource(A)
        await until(lambda: changing.asked == 2 and changing.ended)

        assert changing.is_subscribed
        await server.updated(A)
        assert isinstance(await event_of(opened, second), ResourceUpdated)


async def test_an_end_that_takes_too_long_does_not_undo_what_came_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "UNSUBSCRIBE_SECS", 0.05)
    async with odd_http() as server, host(http(server.url)) as opened:
        changing, it = Changing(server), opened.tooling.get("it")

        async def comes_late(request: web.Request, message: Message) -> web.StreamResponse:
            await until(lambda: changing.asked == 2)
            return await changing.unsubscribe(request, message)

        server.on["resources/unsubscribe"] = comes_late
        first = await it.subscribe_resource(A)
        await it.read_resource(A)
        await it.unsubscribe_resource(first)
        second = await it.subscribe_resource(A)
        await until(lambda: changing.ended and changing.is_subscribed)

        assert isinstance(await event_of(opened, second), ResourceUpdated)


async def test_over_stdio_the_end_of_one_and_the_beginning_of_the_next_keep_their_order(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        first = await it.subscribe_resource(A)
        await it.read_resource(A)
        await it.unsubscribe_resource(first)
        await it.subscribe_resource(A)
        await it.read_resource(A)

    methods = [each["method"] for each in received(log) if "subscribe" in each.get("method", "")]
    assert methods[:3] == ["resources/subscribe", "resources/unsubscribe", "resources/subscribe"]


async def test_a_subscription_that_a_second_connection_agrees_to_looks_at_once() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        changing, it = Changing(server), opened.tooling.get("it")

        async def lost_at_first(request: web.Request, message: Message) -> web.StreamResponse:
            response = await changing.subscribe(request, message)
            if changing.asked == 1:
                assert request.transport is not None
                request.transport.abort()
            else:
                changing.text = "after"  # between the agent's read and this: told to nobody
            return response

        server.on["resources/subscribe"] = lost_at_first
        id = await it.subscribe_resource(A)
        await until(lambda: changing.asked)

        assert (await it.read_resource(A)).content == "before" or changing.asked == 2
        event = await event_of(opened, id)
        assert isinstance(event, ResourceUpdated)
        assert event.content == "after"


async def test_a_stream_of_the_server_that_opens_late_is_a_gap() -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        changing, it, may_open = Changing(server), opened.tooling.get("it"), asyncio.Event()

        async def late(request: web.Request, message: Message) -> web.StreamResponse:
            await may_open.wait()
            return await server.open_stream(request, message)

        server.on["GET"] = late
        id = await it.subscribe_resource(A)
        assert (await it.read_resource(A)).content == "before"
        changing.text = "after"
        await server.updated(A)  # no stream is open yet, so nobody hears of it
        may_open.set()

        event = await event_of(opened, id)
        assert isinstance(event, ResourceUpdated)
        assert event.content == "after"


async def test_a_subscription_bears_a_server_that_stalls_over_its_renewal() -> None:
    quick = {"tooling_request_timeout_secs": 0.5, "tooling_connect_backoff_start_ms": 5}
    async with odd_http() as server, host(http(server.url), **quick) as opened:
        changing, it = Changing(server), opened.tooling.get("it")

        async def stalls_once(request: web.Request, message: Message) -> web.StreamResponse:
            response = await changing.subscribe(request, message)
            if changing.asked == 2:
                await asyncio.Event().wait()
            return response

        server.on["resources/subscribe"] = stalls_once
        id = await it.subscribe_resource(A)
        await it.read_resource(A)
        server.sessions.clear()
        server.end_streams()

        assert isinstance(await event_of(opened, id), ResourceUpdated)
        assert it.is_open(id)
        assert changing.asked == 3
