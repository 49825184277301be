"""What pumps make of a backend: one end for each source, whatever it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

import toolpost
from tests import memory
from tests.loop import settle
from tests.memory import Memory
from toolpost import Error, ResourceListUpdated, ResourceUpdated
from toolpost.trace.events import Closed

pytestmark = pytest.mark.usefixtures("either_way")

URI = "memo:a"


@asynccontextmanager
async def opened(
    memo: Memory, *, trace: bool = True, **tunables: Any
) -> AsyncGenerator[tuple[toolpost.OpenHost, toolpost.Tooling]]:
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo, tunables=tunables), trace=trace) as host:
            yield host, host.tooling.get("memo")


def ends(host: toolpost.OpenHost) -> list[str]:
    """Why the sources of the trace ended."""
    return [event.reason for event in host.trace if isinstance(event, Closed)]


def content(text: str, uri: str = URI) -> ResourceUpdated:
    return ResourceUpdated(uri=uri, mime_type="text/plain", content=text)


async def taken(host: toolpost.OpenHost) -> list[toolpost.Event]:
    """Everything that waits, and what comes while it is taken."""
    events: list[toolpost.Event] = []
    await settle()
    while (envelope := host.try_recv()) is not None:
        events.append(envelope.event)
        await settle()
    return events


# -- calls of backends that misbehave --------------------------------------------------------------


async def _raises_later(call: toolpost.ToolCall) -> Any:
    raise KeyError(call.name)


async def _cancels_itself(call: toolpost.ToolCall) -> Any:
    raise asyncio.CancelledError


async def _answers_with_a_dict(call: toolpost.ToolCall) -> Any:
    return {"name": call.name}


async def _raises_a_group(call: toolpost.ToolCall) -> Any:
    raise ExceptionGroup("several", [KeyError("a"), ValueError("b")])


async def _times_out(call: toolpost.ToolCall) -> Any:
    raise TimeoutError


def _raises_at_once(call: toolpost.ToolCall) -> Any:
    raise KeyError(call.name)


def _gives_no_awaitable(call: toolpost.ToolCall) -> Any:
    return None


def _gives_a_cancelled_future(call: toolpost.ToolCall) -> Any:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


MISBEHAVING: dict[Callable[[toolpost.ToolCall], Any], str] = {
    _raises_later: "KeyError: 'any'",
    _cancels_itself: "its backend cancelled itself",
    _answers_with_a_dict: "dict",
    _raises_a_group: "several",
    _times_out: "TimeoutError",
    _raises_at_once: "KeyError: 'any'",
    _gives_no_awaitable: "TypeError",
    _gives_a_cancelled_future: "its backend cancelled itself",
}


@pytest.mark.parametrize(
    ("on_call", "cause"), MISBEHAVING.items(), ids=[each.__name__[1:] for each in MISBEHAVING]
)
async def test_whatever_a_backend_does_a_call_has_one_envelope(
    on_call: Callable[[toolpost.ToolCall], Any], cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    memo = Memory()
    memo.on_call = on_call
    async with opened(memo) as (host, tooling):
        uuid = await tooling.call_tool("any")
        envelope = await host.recv()

        assert envelope.id == uuid
        assert isinstance(envelope.event, Error)
        assert envelope.event.text.startswith("tooling 'memo': call_tool")
        assert cause in envelope.event.text
        assert await taken(host) == []
        assert ends(host) == ["failed"]


async def test_a_foreign_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Memory()) as (host, tooling):
        await tooling.call_tool("break")
        event = (await host.recv()).event

    assert event == Error("tooling 'memo': call_tool: LookupError: the far end is out of order")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None


async def test_an_error_of_the_tree_is_told_as_it_is_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(Memory()) as (host, tooling):
        await tooling.call_tool("fail")
        await host.recv()

    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_lost_connection_ends_each_call_that_is_under_way() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuids = {await tooling.call_tool("hold") for _ in range(3)}
        memo.lose_connection()

        assert {(await host.recv()).id for _ in range(3)} == uuids
        assert ends(host) == ["failed"] * 3


async def test_secrets_in_a_failure_are_masked() -> None:
    memo = Memory()
    secret = toolpost.Secret("hunter2-hunter2", allow_unlocked=True)
    async with opened(memo) as (host, tooling):
        await tooling.call_tool("hold")
        memo.held[0].fail(ValueError(f"bad token {secret.expose()}"))
        event = (await host.recv()).event

    assert isinstance(event, Error)
    assert event.text.endswith("bad token ***")


# -- subscriptions ---------------------------------------------------------------------------------


async def test_a_change_brings_the_content_after_it() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.change(URI, "a1")

        assert await host.recv() == toolpost.Envelope(uuid, content("a1"))
        assert tooling.is_open(uuid)


async def test_a_change_of_the_list_brings_the_list_after_it() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource_list()
        await memo.wait_subscribed()
        memo.remove("memo:b")

        listed = ResourceListUpdated([toolpost.ResourceInfo(uri=URI, name=URI)])
        assert await host.recv() == toolpost.Envelope(uuid, listed)


async def test_a_finished_value_is_delivered_as_it_is() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource(URI)
        (subscription,) = await memo.wait_subscribed()
        for number in range(3):
            subscription.publish(content(f"step {number}"))

        assert await taken(host) == [content("step 0"), content("step 1"), content("step 2")]
        assert memo.resources[URI] == "a0"


async def test_changes_during_a_read_back_fold_into_one_that_brings_the_last_state() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.hold_reads()
        for number in range(10):
            memo.change(URI, f"a{number}")
            await settle()
        memo.release_reads()

        assert await taken(host) == [content("a9"), content("a9")]


async def test_a_full_inbox_stalls_a_subscription_and_the_last_state_still_arrives() -> None:
    memo = Memory()
    async with opened(memo, inbox_bound=1) as (host, tooling):
        await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        for number in range(10):
            memo.change(URI, f"a{number}")
            await settle()

        assert await taken(host) == [content("a0"), content("a1"), content("a9")]


async def test_a_slow_agent_stalls_no_other_and_no_call() -> None:
    memo = Memory()
    async with opened(memo, inbox_bound=1) as (host, tooling):
        await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        for number in range(3):
            memo.change(URI, f"a{number}")
            await settle()

        assert (await tooling.call_tool_blocking("echo", {"message": "hi"})).value == "hi"
        uuid = await tooling.call_tool("echo")
        await settle()
        assert not tooling.is_open(uuid)
        assert host.try_recv() is not None


async def test_a_refused_subscription_is_an_error_that_ends_it() -> None:
    memo = Memory()
    memo.refusals[None] = toolpost.Unsupported("tooling 'memo': the server declares no list changes")
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource_list()
        envelope = await host.recv()

        assert envelope.id == uuid
        assert envelope.event == Error("tooling 'memo': the server declares no list changes")
        assert not tooling.is_open(uuid)
        assert ends(host) == ["failed"]


async def test_a_stream_that_breaks_ends_its_subscription_with_an_error() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource(URI)
        (subscription,) = await memo.wait_subscribed()
        subscription.publish(content("before"))
        subscription.end(OSError("torn"))

        assert await taken(host) == [
            content("before"),
            Error("tooling 'memo': subscribe_resource 'memo:a': OSError: torn"),
        ]
        assert ends(host) == ["failed"]


async def test_a_stream_that_ends_ends_its_subscription_in_silence() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        (subscription,) = await memo.wait_subscribed()
        subscription.end()

        assert await taken(host) == []
        assert not tooling.is_open(uuid)
        assert ends(host) == ["ended"]


async def test_a_failed_read_back_is_an_error_and_the_subscription_goes_on() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.read_failure = toolpost.ConnectionLost("tooling 'memo': read_resource: the connection was lost")
        memo.change(URI, "a1")
        failed = await taken(host)
        memo.read_failure = None
        memo.change(URI, "a2")

        assert failed == [Error("tooling 'memo': read_resource: the connection was lost")]
        assert tooling.is_open(uuid)
        assert await taken(host) == [content("a2")]


async def test_a_foreign_exception_in_a_read_back_is_told_with_its_place() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource_list()
        await memo.wait_subscribed()
        memo.read_failure = LookupError("out of order")
        memo.remove("memo:b")

        assert await taken(host) == [
            Error("tooling 'memo': subscribe_resource_list: reading it back: LookupError: out of order")
        ]


async def test_a_lost_connection_refreshes_subscriptions() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.lose_connection()

        assert await taken(host) == [content("a0")]


async def test_unsubscribing_takes_back_what_waits_and_tells_the_far_end() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.change(URI, "a1")
        await settle()
        await tooling.unsubscribe_resource(uuid)
        await settle()

        assert await taken(host) == []
        assert memo.subscriptions == []
        assert ends(host) == ["cancelled"]


@pytest.mark.parametrize("turns", range(6))
async def test_unsubscribing_during_a_read_back_ends_it(turns: int) -> None:
    memo = Memory()
    memo.hold_reads()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        await memo.wait_subscribed()
        memo.change(URI, "a1")
        for _ in range(turns):
            await asyncio.sleep(0)
        await tooling.unsubscribe_resource(uuid)
        memo.release_reads()

        assert await taken(host) == []
        assert memo.under_way == 0


async def test_two_subscriptions_to_one_resource_are_told_each_under_its_own_uuid() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuids = {await tooling.subscribe_resource(URI), await tooling.subscribe_resource(URI)}
        await memo.wait_subscribed(2)
        memo.change(URI, "a1")

        assert {(await host.recv()).id for _ in range(2)} == uuids


# -- subscriptions of backends that misbehave ------------------------------------------------------


@asynccontextmanager
async def _cancels_itself_on_entering(uri: str | None) -> AsyncGenerator[AsyncIterator[Any]]:
    raise asyncio.CancelledError
    yield


@asynccontextmanager
async def _cancels_itself_in_the_stream(uri: str | None) -> AsyncGenerator[AsyncIterator[Any]]:
    async def stream() -> AsyncGenerator[Any]:
        raise asyncio.CancelledError
        yield

    yield stream()


@asynccontextmanager
async def _gives_something_else(uri: str | None) -> AsyncGenerator[AsyncIterator[Any]]:
    async def stream() -> AsyncGenerator[Any]:
        yield "changed"

    yield stream()


@asynccontextmanager
async def _raises_on_leaving(uri: str | None) -> AsyncGenerator[AsyncIterator[Any]]:
    async def stream() -> AsyncGenerator[Any]:
        for nothing in ():
            yield nothing

    yield stream()
    raise LookupError("on leaving")


def _raises_on_subscribing(uri: str | None) -> Any:
    raise LookupError("at once")


def _gives_no_context_manager(uri: str | None) -> Any:
    return None


@pytest.mark.parametrize(
    "subscribe",
    [
        _cancels_itself_on_entering,
        _cancels_itself_in_the_stream,
        _gives_something_else,
        _raises_on_leaving,
        _raises_on_subscribing,
        _gives_no_context_manager,
    ],
    ids=lambda each: each.__name__[1:],
)
async def test_whatever_a_backend_does_a_subscription_ends_with_an_error(
    subscribe: Callable[[str | None], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memo = Memory()
    monkeypatch.setattr(memo, "subscribe", subscribe)
    async with opened(memo) as (host, tooling):
        uuid = await tooling.subscribe_resource(URI)
        envelope = await host.recv()

        assert envelope.id == uuid
        assert isinstance(envelope.event, Error)
        assert envelope.event.text.startswith("tooling 'memo': subscribe_resource 'memo:a'")
        assert not tooling.is_open(uuid)
        assert ends(host) == ["failed"]
