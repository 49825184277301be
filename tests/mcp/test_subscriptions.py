"""Subscriptions in both eras: one on the wire, many readers, and the last state always arrives."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.mcp.support import (
    changing,
    event_of,
    events_of,
    host,
    kill,
    odd,
    received,
    recorded,
    said,
    to_server,
    until,
)
from toolpost import Error, ResourceListUpdated, ResourceUpdated

OLD, NEW = "2025-11-25", "2026-07-28"
ASKS = {OLD: "resources/subscribe", NEW: "subscriptions/listen"}
STOPS = {OLD: "resources/unsubscribe", NEW: "notifications/cancelled"}
A, B = "demo://a", "demo://b"

both_eras = pytest.mark.parametrize("era", [OLD, NEW])


@both_eras
async def test_an_update_carries_the_content_after_the_change(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.call_tool_blocking("set", {"uri": A, "text": "changed"})
        event = await event_of(opened, subscription)

    assert event == ResourceUpdated(uri=A, mime_type="text/plain", content="changed")


@both_eras
async def test_binary_content_comes_as_base64(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("demo://pixel")
        await it.call_tool_blocking("touch", {"uri": "demo://pixel"})
        event = await event_of(opened, subscription)

    assert isinstance(event, ResourceUpdated)
    assert event.bytes() == b"\x89PNG\r\n\x1a\n"


@both_eras
async def test_a_list_update_carries_every_page_of_the_new_list(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource_list()
        await it.call_tool_blocking("add", {"uri": "demo://new", "text": "x"})
        event = await event_of(opened, subscription)

    assert isinstance(event, ResourceListUpdated)
    assert [each.uri for each in event.resources] == [A, B, "demo://pixel", "demo://new"]


@both_eras
async def test_what_is_called_after_subscribing_reaches_the_server_after_the_subscription(
    era: str, tmp_path: Path
) -> None:
    """With no connection yet, and with one: an update that one's own next call causes is never missed."""
    log = tmp_path / "wire"
    async with host(recorded(changing(protocol=era), log)) as opened:
        it = opened.tooling.get("it")
        for uri in (A, B):
            subscription = await it.subscribe_resource(uri)
            queued = [await it.call_tool("set", {"uri": uri, "text": str(n)}) for n in range(3)]
            await events_of(opened, [subscription, *queued])

    methods = [each["method"] for each in to_server(log) if each["method"] in (ASKS[era], "tools/call")]
    assert methods == [ASKS[era], *["tools/call"] * 3] * 2


@both_eras
async def test_an_update_of_another_resource_is_not_told(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.call_tool_blocking("set", {"uri": B, "text": "other"})
        await it.call_tool_blocking("set", {"uri": A, "text": "mine"})
        event = await event_of(opened, subscription)

        assert opened.try_recv() is None
    assert isinstance(event, ResourceUpdated)
    assert event.uri == A


async def test_an_update_of_a_resource_below_a_subscribed_one_counts() -> None:
    async with host(changing(protocol=OLD)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.call_tool_blocking("touch", {"uri": f"{A}/b/c"})
        event = await event_of(opened, subscription)

    assert event == ResourceUpdated(uri=A, mime_type="text/plain", content="alpha")


@pytest.mark.parametrize(
    ("subscribed", "updated", "counts"),
    [
        ("file:///a", "file:///a", True),
        ("file:///a", "file:///a/b", True),
        ("file:///a", "file:///a/b/c", True),
        ("file:///a/", "file:///a/b", True),
        ("file:///a", "file:///ab", False),
        ("file:///a", "file:///A", False),
        ("file:///a/b", "file:///a", False),
        ("file:///a/./b", "file:///a/b", False),
        ("x:a", "x:a", True),
        ("x:a", "x:ab", False),
        ("file:///", "file:///a", True),
    ],
)
async def test_a_uri_is_compared_as_it_stands(subscribed: str, updated: str, counts: bool) -> None:
    async with host(odd(protocol=OLD)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(subscribed)
        params = {"method": "notifications/resources/updated", "params": {"uri": updated}}
        await it.call_tool_blocking("notify", params)
        if counts:
            await event_of(opened, subscription)

        await it.list_tools()
        assert opened.try_recv() is None


# -- one on the wire -------------------------------------------------------------------------------


@both_eras
async def test_many_subscribers_of_one_resource_cost_one_subscription_on_the_wire(
    era: str, tmp_path: Path
) -> None:
    log = tmp_path / "wire"
    async with host(recorded(changing(protocol=era), log)) as opened:
        it = opened.tooling.get("it")
        ids = [await it.subscribe_resource(A) for _ in range(10)]
        await it.call_tool_blocking("set", {"uri": A, "text": "for all"})
        events = await events_of(opened, ids)
        late = await it.subscribe_resource(A)
        await it.call_tool_blocking("set", {"uri": A, "text": "for the late one too"})
        await events_of(opened, [*ids, late])

    assert {getattr(each, "content", None) for each in events.values()} == {"for all"}
    assert len(to_server(log, ASKS[era])) == 1


@both_eras
async def test_the_server_is_told_when_the_last_subscriber_leaves_and_not_before(
    era: str, tmp_path: Path
) -> None:
    log = tmp_path / "wire"
    async with host(recorded(changing(protocol=era), log)) as opened:
        it = opened.tooling.get("it")
        first, second = await it.subscribe_resource(A), await it.subscribe_resource(A)
        await it.list_tools()
        await it.unsubscribe_resource(first)
        await it.call_tool_blocking("set", {"uri": A, "text": "for the second"})
        await event_of(opened, second)
        assert to_server(log, STOPS[era]) == []

        await it.unsubscribe_resource(second)
        await until(lambda: to_server(log, STOPS[era]))
        await it.call_tool_blocking("set", {"uri": A, "text": "for nobody"})

        assert opened.try_recv() is None


@both_eras
async def test_a_resource_can_be_subscribed_to_again_after_the_last_has_left(
    era: str, tmp_path: Path
) -> None:
    log = tmp_path / "wire"
    async with host(recorded(changing(protocol=era), log)) as opened:
        it = opened.tooling.get("it")
        for number in range(5):
            subscription = await it.subscribe_resource(A)
            await it.call_tool_blocking("set", {"uri": A, "text": str(number)})
            event = await event_of(opened, subscription)
            await it.unsubscribe_resource(subscription)
            assert getattr(event, "content", None) == str(number)

    assert len(to_server(log, ASKS[era])) == 5


@both_eras
async def test_a_subscriber_that_comes_as_the_last_one_leaves_is_served(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.list_tools()
        for number in range(10):
            await it.unsubscribe_resource(subscription)
            subscription = await it.subscribe_resource(A)
            await it.call_tool_blocking("set", {"uri": A, "text": str(number)})
            event = await event_of(opened, subscription)
            assert getattr(event, "content", None) == str(number)


@both_eras
async def test_the_list_and_a_resource_are_subscriptions_of_their_own(era: str) -> None:
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        one, all_ = await it.subscribe_resource(A), await it.subscribe_resource_list()
        await it.call_tool_blocking("add", {"uri": "demo://new", "text": "x"})
        await it.call_tool_blocking("set", {"uri": A, "text": "changed"})
        events = await events_of(opened, [one, all_])

    assert isinstance(events[one], ResourceUpdated)
    assert isinstance(events[all_], ResourceListUpdated)


# -- level-triggered -------------------------------------------------------------------------------


@both_eras
async def test_a_slow_reader_gets_the_last_state_of_1000_updates_and_few_before(
    era: str, tmp_path: Path
) -> None:
    """With room for one envelope, updates fold while that one waits."""
    log = tmp_path / "wire"
    contents: list[str] = []
    async with host(recorded(changing(protocol=era), log), inbox_bound=1) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.call_tool_blocking("rewrite", {"uri": A, "times": 1000})

        while not contents or contents[-1] != "999":
            event = await event_of(opened, subscription)
            assert isinstance(event, ResourceUpdated)
            contents.append(event.content)

    assert len(to_server(log, "resources/read")) <= 5
    assert contents == sorted(contents, key=int)


async def test_a_slow_reader_holds_up_neither_calls_nor_other_subscriptions() -> None:
    async with host(changing(protocol=OLD), inbox_bound=2) as opened:
        it = opened.tooling.get("it")
        slow, other = await it.subscribe_resource(A), await it.subscribe_resource(B)
        for text in "123":
            await it.call_tool_blocking("set", {"uri": A, "text": text})
        await it.call_tool_blocking("set", {"uri": B, "text": "b"})
        call = await it.call_tool("set", {"uri": "demo://c", "text": "c"})
        await until(lambda: not it.is_open(call))

        events = await events_of(opened, [slow, other, call])
    assert getattr(events[other], "content", None) == "b"


# -- failures --------------------------------------------------------------------------------------


@both_eras
async def test_a_read_back_that_fails_is_an_error_and_the_subscription_stays_open(era: str) -> None:
    gone = "demo://gone"
    async with host(changing(protocol=era)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(gone)
        await it.call_tool_blocking("touch", {"uri": gone})
        error = await event_of(opened, subscription)
        assert it.is_open(subscription)
        await it.call_tool_blocking("set", {"uri": gone, "text": "back"})
        event = await event_of(opened, subscription)

    assert isinstance(error, Error)
    assert f"read_resource {gone!r}: the server answered: Resource not found" in error.text
    assert isinstance(event, ResourceUpdated)


@pytest.mark.parametrize("mode", ["asks", "modern"])
async def test_a_subscription_that_the_server_refuses_is_an_error_that_ends_it(mode: str) -> None:
    async with host(odd(mode)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://refused")
        error = await event_of(opened, subscription)

        assert not it.is_open(subscription)
    assert isinstance(error, Error)
    assert "subscribe_resource 'odd://refused'" in error.text
    assert "not this one" in error.text


@pytest.mark.parametrize("mode", ["asks", "modern"])
async def test_a_server_that_does_not_answer_a_subscription_is_a_time_out(mode: str) -> None:
    async with host(odd(mode, request_timeout_secs=1)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://unanswered")
        called = await it.call_tool_blocking("echo", {"text": "meanwhile"})
        error = await event_of(opened, subscription)

    assert called.value == "meanwhile"
    assert isinstance(error, Error)
    assert "within 1 s" in error.text


# -- streams of 2026-07-28 -------------------------------------------------------------------------


async def test_a_server_that_agrees_to_tell_of_nothing_is_an_error() -> None:
    async with host(odd("modern")) as opened:
        it = opened.tooling.get("it")
        error = await event_of(opened, await it.subscribe_resource("odd://nothing"))

    assert isinstance(error, Error)
    assert "agreed to tell of nothing" in error.text


async def test_a_stream_may_tell_of_a_resource_below_the_subscribed_one() -> None:
    async with host(odd("modern")) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://one")
        await it.call_tool_blocking("touch", {"uri": "odd://one/below"})
        event = await event_of(opened, subscription)

    assert event == ResourceUpdated(uri="odd://one", content="of odd://one")


async def test_a_server_that_leaves_instead_of_confirming_is_asked_again_on_a_new_connection(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with host(odd("modern", log=log)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://unanswered")
        await until(lambda: received(log, "subscriptions/listen"))
        kill(said(log, "pid")[0])
        await until(lambda: len(received(log, "subscriptions/listen")) == 2)

        assert it.is_open(subscription)


async def test_a_stream_that_the_server_ends_is_opened_again_with_a_refresh(
    tmp_path: Path,
) -> None:
    log = tmp_path / "wire"
    async with host(recorded(changing(protocol=NEW), log)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await it.call_tool_blocking("close_streams")
        refresh = await event_of(opened, subscription)
        await it.call_tool_blocking("set", {"uri": A, "text": "after"})
        after = await event_of(opened, subscription)

        assert it.is_open(subscription)
    assert getattr(refresh, "content", None) == "alpha"
    assert getattr(after, "content", None) == "after"
    assert len(to_server(log, "subscriptions/listen")) == 2


async def test_streams_that_end_at_once_are_opened_again_as_often_as_a_server_is_dialed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    backoff = {"tooling_connect_backoff_start_ms": 1, "tooling_connect_backoff_cap_secs": 0.004}
    async with host(odd("ends_streams", log=log), **backoff) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://one")
        with anyio.fail_after(20):
            while not isinstance(event := await event_of(opened, subscription), Error):
                assert isinstance(event, ResourceUpdated), "a refresh: something may have been missed"

        assert not it.is_open(subscription)
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"
    assert event.text == (
        "tooling 'it': subscribe_resource 'odd://one': the server ended the stream of changes "
        "3 times in a row, each time within 2 s"
    )
    assert len(received(log, "subscriptions/listen")) == 3


async def test_streams_that_bring_something_may_end_as_often_as_they_like(tmp_path: Path) -> None:
    log = tmp_path / "log"
    backoff = {"tooling_connect_backoff_start_ms": 1, "tooling_connect_backoff_cap_secs": 0.004}
    async with host(odd("ends_streams", log=log, n=1), **backoff) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://one")
        await until(lambda: len(received(log, "subscriptions/listen")) > 5)

        assert it.is_open(subscription)


async def test_an_agents_end_stops_its_subscriptions_on_the_wire(tmp_path: Path) -> None:
    from toolpost import Host, run_async

    log = tmp_path / "wire"

    async def short(agent: Host) -> None:
        it = agent.tooling.get("it")
        await it.subscribe_resource(A)
        await it.call_tool_blocking("set", {"uri": A, "text": "x"})

    async def long(agent: Host) -> None:
        await agent.tooling.get("it").list_tools()
        await until(lambda: to_server(log, "resources/unsubscribe"))

    config = {"tooling": {"it": recorded(changing(protocol=OLD), log)}}
    report = await run_async(config, agents={"short": short, "long": long})

    assert {outcome.to_json() for outcome in report.outcomes.values()} == {"completed"}


async def test_two_agents_share_one_subscription_and_each_is_told(tmp_path: Path) -> None:
    from toolpost import Host, run_async

    log = tmp_path / "wire"
    told: list[str] = []
    all_subscribed = anyio.Event()

    async def listener(agent: Host) -> None:
        it = agent.tooling.get("it")
        await it.subscribe_resource(A)
        told.append("")
        if len(told) == 2:
            all_subscribed.set()
        await all_subscribed.wait()
        await it.call_tool_blocking("set", {"uri": A, "text": "news"})
        envelope = await agent.recv(20)
        told.append(getattr(envelope.event, "content", ""))

    config = {"tooling": {"it": recorded(changing(protocol=OLD), log)}}
    await run_async(config, agents={"one": listener, "two": listener})

    assert told == ["", "", "news", "news"]
    assert len(to_server(log, "resources/subscribe")) == 1
