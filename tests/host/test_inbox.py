"""The inbox alone: places, room, order, cancelling, the end. No backend and no pump."""

from __future__ import annotations

import asyncio
from itertools import count

import anyio
import pytest

from tests.loop import settle
from toolpost.errors import HostClosed, TooManyOpenCalls
from toolpost.events import Envelope, Error, Shutdown
from toolpost.host.inbox import Inbox, Source
from toolpost.trace.events import Closed, Inbound, Opened
from toolpost.trace.log import Trace

EMPTY = {"waiting": 0, "open_calls": 0, "filled": 0, "sources": 0}


def new_inbox(*, bound: int = 2, calls_bound: int = 2, trace: Trace | None = None) -> Inbox:
    ids = count(1)
    return Inbox(
        agent="tester", bound=bound, calls_bound=calls_bound, trace=trace, new_id=lambda: f"id{next(ids)}"
    )


def answered(inbox: Inbox, text: str) -> Source:
    """A call whose answer waits in the inbox."""
    call = inbox.open_source("call_tool")
    inbox.put_outcome(call, Error(text), "ended")
    return call


async def putting(inbox: Inbox, source: Source, text: str) -> asyncio.Task[None]:
    """A put that has gone as far as it can."""

    source.work = scope = anyio.CancelScope()

    async def put() -> None:
        with scope:
            await inbox.put(source, Error(text))

    task = asyncio.create_task(put())
    await settle()
    return task


def texts(inbox: Inbox) -> list[str]:
    """Takes everything that waits."""
    taken: list[str] = []
    while (envelope := inbox.take_nowait()) is not None:
        taken.append(envelope.event.text if isinstance(envelope.event, Error) else envelope.event.kind)
        if isinstance(envelope.event, Shutdown):
            break
    return taken


async def test_an_envelope_is_taken_with_the_id_of_its_source() -> None:
    inbox = new_inbox()
    call = answered(inbox, "one")

    assert inbox.take_nowait() == Envelope(call.id, Error("one"))
    assert inbox.take_nowait() is None
    assert inbox.statistics() == EMPTY


async def test_envelopes_are_taken_in_the_order_of_their_arrival() -> None:
    inbox = new_inbox()
    subscription = inbox.open_source("subscribe_resource")
    await inbox.put(subscription, Error("first"))
    answered(inbox, "second")
    await inbox.put(subscription, Error("third"))

    assert texts(inbox) == ["first", "second", "third"]


async def test_a_call_is_open_until_its_envelope_enters() -> None:
    inbox = new_inbox()
    call = inbox.open_source("call_tool")
    assert inbox.is_open(call.id)

    inbox.put_outcome(call, Error("done"), "ended")
    assert not inbox.is_open(call.id)


async def test_a_call_has_one_outcome_the_first() -> None:
    inbox = new_inbox()
    call = answered(inbox, "first")
    inbox.put_outcome(call, Error("second"), "failed")

    assert texts(inbox) == ["first"]


async def test_a_call_keeps_its_place_until_its_envelope_is_taken() -> None:
    inbox = new_inbox(calls_bound=2)
    answered(inbox, "one")
    inbox.open_source("call_tool")
    with pytest.raises(TooManyOpenCalls, match="'tester' has 2 queued calls"):
        inbox.open_source("call_tool")

    inbox.take_nowait()
    inbox.open_source("call_tool")


async def test_cancelling_a_call_frees_its_place_at_once() -> None:
    inbox = new_inbox(calls_bound=1)
    inbox.cancel(inbox.open_source("call_tool").id)
    inbox.cancel(answered(inbox, "waits").id)

    assert inbox.statistics() == EMPTY
    inbox.open_source("call_tool")


async def test_calls_fit_where_subscriptions_have_filled_the_inbox() -> None:
    inbox = new_inbox(bound=1)
    await inbox.put(inbox.open_source("subscribe_resource"), Error("fills it"))
    answered(inbox, "fits")

    assert texts(inbox) == ["fills it", "fits"]


async def test_subscriptions_wait_for_room_first_come_first_served() -> None:
    inbox = new_inbox(bound=1)
    source = inbox.open_source("subscribe_resource")
    other = inbox.open_source("subscribe_resource_list")
    await inbox.put(source, Error("1"))
    waiting = [await putting(inbox, source, "2"), await putting(inbox, other, "3")]
    assert inbox.statistics()["waiting"] == 1

    taken = [inbox.take_nowait()]
    await settle()
    taken.append(inbox.take_nowait())
    await settle()
    taken.append(inbox.take_nowait())

    assert [envelope and envelope.event for envelope in taken] == [Error("1"), Error("2"), Error("3")]
    assert all(task.done() for task in waiting)


async def test_room_that_was_promised_is_not_taken_by_who_comes_later() -> None:
    inbox = new_inbox(bound=1)
    source = inbox.open_source("subscribe_resource")
    await inbox.put(source, Error("1"))
    await putting(inbox, source, "waited")
    inbox.take_nowait()  # the room is promised, and the one who waited has not run yet
    late = asyncio.create_task(inbox.put(inbox.open_source("subscribe_resource"), Error("late")))
    await settle()

    assert inbox.take_nowait() == Envelope(source.id, Error("waited"))
    await late


async def test_cancelling_a_subscription_takes_out_what_waits_of_it_and_nothing_else() -> None:
    inbox = new_inbox(bound=3)
    source, other = inbox.open_source("subscribe_resource"), inbox.open_source("subscribe_resource")
    for each, text in [(source, "gone"), (other, "stays"), (source, "gone too")]:
        await inbox.put(each, Error(text))
    inbox.cancel(source.id)

    assert inbox.statistics()["filled"] == 1
    assert texts(inbox) == ["stays"]


async def test_cancelling_gives_the_freed_room_to_who_waits_for_it() -> None:
    inbox = new_inbox(bound=1)
    source, other = inbox.open_source("subscribe_resource"), inbox.open_source("subscribe_resource")
    await inbox.put(source, Error("gone"))
    await putting(inbox, other, "comes in")
    inbox.cancel(source.id)
    await settle()

    assert texts(inbox) == ["comes in"]


async def test_a_source_that_is_cancelled_while_it_waits_for_room_leaves_none_taken() -> None:
    inbox = new_inbox(bound=1)
    source, other = inbox.open_source("subscribe_resource"), inbox.open_source("subscribe_resource")
    await inbox.put(other, Error("1"))
    task = await putting(inbox, source, "never")
    inbox.cancel(source.id)
    await settle()

    assert task.done()
    assert texts(inbox) == ["1"]
    assert inbox.statistics() == {**EMPTY, "sources": 1}


async def test_room_that_was_promised_to_a_source_cancelled_since_is_handed_on() -> None:
    inbox = new_inbox(bound=1)
    first, second = inbox.open_source("subscribe_resource"), inbox.open_source("subscribe_resource")
    await inbox.put(first, Error("1"))
    await putting(inbox, first, "never")
    await putting(inbox, second, "comes in")
    inbox.take_nowait()  # promised to the first …
    inbox.cancel(first.id)  # … which will not use it
    await settle()

    assert texts(inbox) == ["comes in"]


@pytest.mark.parametrize("uuid", ["", "unknown", "id1"], ids=["empty", "unknown", "of a forgotten source"])
async def test_cancelling_what_is_not_there_has_no_effect(uuid: str) -> None:
    inbox = new_inbox()
    answered(inbox, "taken")
    inbox.take_nowait()
    waiting = answered(inbox, "waits")
    inbox.cancel(uuid)

    assert inbox.take_nowait() == Envelope(waiting.id, Error("waits"))


async def test_cancelling_twice_is_cancelling_once() -> None:
    inbox = new_inbox()
    call = inbox.open_source("call_tool")
    inbox.cancel(call.id)
    inbox.cancel(call.id)

    assert inbox.statistics() == EMPTY


async def test_cancelling_cancels_the_work_for_the_source() -> None:
    inbox = new_inbox()
    call = inbox.open_source("call_tool")
    call.work = scope = anyio.CancelScope()
    inbox.cancel(call.id)

    assert scope.cancel_called
    inbox.put_outcome(call, Error("too late"), "ended")
    assert inbox.take_nowait() is None


async def test_a_subscription_with_nothing_more_to_say_ends_without_an_envelope() -> None:
    inbox = new_inbox()
    source = inbox.open_source("subscribe_resource")
    inbox.end(source)

    assert not inbox.is_open(source.id)
    assert inbox.statistics() == EMPTY


async def test_what_waits_of_a_subscription_outlives_its_end() -> None:
    inbox = new_inbox()
    source = inbox.open_source("subscribe_resource")
    await inbox.put(source, Error("last words"))
    inbox.end(source)

    assert texts(inbox) == ["last words"]
    assert inbox.statistics() == EMPTY


async def test_a_subscription_that_fails_ends_with_its_error() -> None:
    inbox = new_inbox()
    source = inbox.open_source("subscribe_resource")
    await inbox.put_last(source, Error("why"), "failed")

    assert not inbox.is_open(source.id)
    assert texts(inbox) == ["why"]


# -- readers ---------------------------------------------------------------------------------------


async def test_a_reader_is_woken_by_an_arrival() -> None:
    inbox = new_inbox()
    reader = asyncio.create_task(inbox.take())
    await settle()
    call = answered(inbox, "here")

    assert await reader == Envelope(call.id, Error("here"))


async def test_readers_are_served_in_turn() -> None:
    inbox = new_inbox(calls_bound=3)
    readers = [asyncio.create_task(inbox.take()) for _ in range(3)]
    await settle()
    for text in "abc":
        answered(inbox, text)

    assert [(await reader).event for reader in readers] == [Error("a"), Error("b"), Error("c")]


async def test_a_cancelled_reader_takes_no_envelope() -> None:
    inbox = new_inbox()
    reader = asyncio.create_task(inbox.take())
    await settle()
    reader.cancel()
    await settle()
    answered(inbox, "for the next")

    assert reader.cancelled()
    assert texts(inbox) == ["for the next"]


async def test_a_reader_that_is_cancelled_after_it_was_called_up_lets_the_next_one_take() -> None:
    inbox = new_inbox()
    first, second = asyncio.create_task(inbox.take()), asyncio.create_task(inbox.take())
    await settle()
    call = answered(inbox, "not lost")  # calls up the first …
    first.cancel()  # … which goes in the same turn

    assert await second == Envelope(call.id, Error("not lost"))


async def test_a_reader_whose_envelope_was_cancelled_waits_on() -> None:
    inbox = new_inbox()
    reader = asyncio.create_task(inbox.take())
    await settle()
    inbox.cancel(answered(inbox, "gone").id)
    await settle()
    assert not reader.done()

    call = answered(inbox, "the next")
    assert await reader == Envelope(call.id, Error("the next"))


async def test_a_reader_whose_envelope_another_took_waits_on() -> None:
    inbox = new_inbox()
    reader = asyncio.create_task(inbox.take())
    await settle()
    answered(inbox, "snatched")
    assert texts(inbox) == ["snatched"]
    await settle()
    assert not reader.done()

    answered(inbox, "the next")
    assert (await reader).event == Error("the next")


async def test_taking_gives_others_a_turn_even_where_an_envelope_waits() -> None:
    inbox = new_inbox()
    answered(inbox, "waits")
    others: list[str] = []
    asyncio.get_running_loop().call_soon(others.append, "ran")
    await inbox.take()

    assert others == ["ran"]


# -- put back --------------------------------------------------------------------------------------


async def test_what_is_put_back_is_taken_first_and_traced_once() -> None:
    trace = Trace()
    inbox = new_inbox(trace=trace)
    answered(inbox, "first")
    answered(inbox, "second")
    taken = inbox.take_nowait()
    assert taken is not None
    inbox.put_back(taken)

    assert texts(inbox) == ["first", "second"]
    assert [event.kind for event in trace].count("inbound") == 2


async def test_what_is_put_back_wakes_a_reader() -> None:
    inbox = new_inbox()
    answered(inbox, "back")
    taken = inbox.take_nowait()
    assert taken is not None
    reader = asyncio.create_task(inbox.take())
    await settle()
    inbox.put_back(taken)

    assert await reader == taken


async def test_what_is_put_back_can_be_cancelled() -> None:
    inbox = new_inbox()
    call = answered(inbox, "unwanted")
    taken = inbox.take_nowait()
    assert taken is not None
    inbox.put_back(taken)
    inbox.cancel(call.id)

    assert inbox.take_nowait() is None
    assert inbox.statistics() == EMPTY


async def test_shutdown_can_be_put_back() -> None:
    inbox = new_inbox()
    inbox.put_shutdown()
    taken = inbox.take_nowait()
    assert taken is not None
    inbox.put_back(taken)
    inbox.cancel("")

    assert inbox.take_nowait() == Envelope("", Shutdown())


# -- the end ---------------------------------------------------------------------------------------


async def test_shutdown_comes_after_everything_that_waits_and_fits_into_a_full_inbox() -> None:
    inbox = new_inbox(bound=1, calls_bound=1)
    await inbox.put(inbox.open_source("subscribe_resource"), Error("1"))
    answered(inbox, "2")
    inbox.put_shutdown()

    assert texts(inbox)[-1] == "shutdown"


async def test_shutdown_keeps_what_sources_that_had_ended_have_said() -> None:
    inbox = new_inbox()
    answered(inbox, "said before")
    inbox.put_shutdown()

    assert texts(inbox) == ["said before", "shutdown"]


async def test_shutdown_cancels_what_is_open() -> None:
    inbox = new_inbox(bound=1)
    call, source = inbox.open_source("call_tool"), inbox.open_source("subscribe_resource")
    await inbox.put(source, Error("of an open source"))
    waiting = await putting(inbox, source, "waits for room")
    inbox.put_shutdown()
    await settle()

    assert not inbox.is_open(call.id)
    assert not inbox.is_open(source.id)
    assert waiting.done()
    assert inbox.statistics()["open_calls"] == 0


async def test_shutdown_keeps_what_waits_of_sources_that_it_closes() -> None:
    trace = Trace()
    inbox = new_inbox(bound=3, trace=trace)
    source = inbox.open_source("subscribe_resource")
    source.work = scope = anyio.CancelScope()
    await inbox.put(source, Error("1"))
    await inbox.put(source, Error("2"))
    inbox.put_shutdown()
    await inbox.put(source, Error("too late"))

    assert trace[1] == Closed(agent="tester", id="id1", reason="cancelled")
    assert scope.cancel_called
    assert texts(inbox) == ["1", "2", "shutdown"]
    assert inbox.statistics() == EMPTY


async def test_what_shutdown_has_kept_can_still_be_cancelled() -> None:
    inbox = new_inbox()
    source = inbox.open_source("subscribe_resource")
    await inbox.put(source, Error("unwanted"))
    inbox.put_shutdown()
    inbox.cancel(source.id)

    assert texts(inbox) == ["shutdown"]
    assert inbox.statistics() == EMPTY


async def test_shutdown_is_delivered_once() -> None:
    inbox = new_inbox()
    inbox.put_shutdown()
    inbox.put_shutdown()

    assert inbox.take_nowait() == Envelope("", Shutdown())
    with pytest.raises(HostClosed, match="'tester' has taken Shutdown"):
        inbox.take_nowait()


async def test_nothing_opens_after_shutdown() -> None:
    inbox = new_inbox()
    inbox.put_shutdown()

    with pytest.raises(HostClosed, match="shutting down"):
        inbox.open_source("subscribe_resource")


async def test_every_reader_that_waits_is_told_of_the_end() -> None:
    inbox = new_inbox()
    readers = [asyncio.create_task(inbox.take()) for _ in range(3)]
    await settle()
    inbox.put_shutdown()

    first, *others = await asyncio.gather(*readers, return_exceptions=True)
    assert first == Envelope("", Shutdown())
    assert [type(other) for other in others] == [HostClosed, HostClosed]


async def test_a_reader_that_comes_after_the_end_is_told_so() -> None:
    inbox = new_inbox()
    inbox.put_shutdown()
    await inbox.take()

    with pytest.raises(HostClosed):
        await inbox.take()


# -- the record ------------------------------------------------------------------------------------


async def test_the_trace_has_the_life_of_each_source() -> None:
    trace = Trace()
    inbox = new_inbox(trace=trace)
    answered(inbox, "done")
    inbox.cancel(inbox.open_source("subscribe_resource").id)
    inbox.take_nowait()

    assert list(trace) == [
        Opened(agent="tester", id="id1", source="call_tool"),
        Closed(agent="tester", id="id1", reason="ended"),
        Opened(agent="tester", id="id2", source="subscribe_resource"),
        Closed(agent="tester", id="id2", reason="cancelled"),
        Inbound(agent="tester", id="id1", event="error", payload="done"),
    ]


async def test_cancelling_what_has_ended_writes_no_second_end() -> None:
    trace = Trace()
    inbox = new_inbox(trace=trace)
    inbox.cancel(answered(inbox, "waits").id)

    assert [event.kind for event in trace] == ["opened", "closed"]


async def test_a_refused_opening_writes_nothing() -> None:
    trace = Trace()
    inbox = new_inbox(calls_bound=1, trace=trace)
    inbox.open_source("call_tool")
    with pytest.raises(TooManyOpenCalls):
        inbox.open_source("call_tool")

    assert len(trace) == 1
