"""The trace: append-only, read by index, told to taps and followers, written as JSON Lines."""

from __future__ import annotations

import asyncio
import json
import logging

import anyio
import msgspec
import pytest

import toolpost
from tests.loop import settle
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, State, TraceEvent
from toolpost.trace.log import Trace

EVENTS: list[TraceEvent] = [
    Call(
        agent="ada", op="call_tool", detail={"tooling": "memo", "name": "echo", "arguments": {"n": [1, None]}}
    ),
    Opened(agent="ada", id="id1", source="call_tool"),
    Closed(agent="ada", id="id1", reason="ended"),
    Inbound(agent="ada", id="id1", event="error", payload="text with ü, \u2028 and \n"),
    State(tooling="memo", state="connected"),
    AgentOutcome(agent="ada", outcome={"exited": "text"}),
    AgentOutcome(agent="bob", outcome="completed"),
]


def state(text: str) -> State:
    return State(tooling="memo", state=text)


def traced(*events: TraceEvent) -> Trace:
    trace = Trace()
    for event in events:
        trace.append(event)
    return trace


def test_a_trace_is_a_sequence() -> None:
    trace = traced(*EVENTS)

    assert list(trace) == EVENTS
    assert (len(trace), trace[0], trace[-1], trace[1:3]) == (7, EVENTS[0], EVENTS[-1], EVENTS[1:3])
    assert EVENTS[4] in trace
    assert repr(trace) == "<Trace of 7 events>"


def test_json_lines_give_the_same_events_back() -> None:
    lines = list(traced(*EVENTS).json_lines())

    assert [msgspec.json.decode(line, type=TraceEvent) for line in lines] == EVENTS
    assert not any("\n" in line for line in lines)


def test_each_line_names_its_kind() -> None:
    kinds = [json.loads(line)["kind"] for line in traced(*EVENTS).json_lines()]

    assert kinds == [event.kind for event in EVENTS]
    assert kinds == ["call", "opened", "closed", "inbound", "state", "outcome", "outcome"]


def test_half_a_surrogate_pair_from_a_server_can_be_written() -> None:
    (line,) = traced(Inbound(agent="ada", id="id1", event="error", payload="x\ud83dy")).json_lines()

    assert json.loads(line)["payload"] == "x\ud83dy"
    line.encode()


def test_secrets_are_masked_when_a_record_is_written() -> None:
    secret = toolpost.Secret("hunter2-hunter2", allow_unlocked=True)
    arguments = {"deep": ["Bearer hunter2-hunter2"]}
    trace = traced(
        Call(agent="ada", op="call_tool", detail={"tooling": "memo", "arguments": arguments}),
        Inbound(agent="ada", id="id1", event="error", payload="of hunter2-hunter2"),
        State(tooling="memo", state="lost: hunter2-hunter2"),
        AgentOutcome(agent="ada", outcome={"failed": "hunter2-hunter2"}),
    )

    assert secret.expose() not in "\n".join(trace.json_lines())
    assert secret.expose() in arguments["deep"][0]  # what the agent holds stays as it is
    first = trace[0]
    assert isinstance(first, Call)
    assert first.detail["arguments"] == {"deep": ["Bearer ***"]}


# -- taps ------------------------------------------------------------------------------------------


def test_a_tap_is_told_of_each_record_from_then_on() -> None:
    trace, told = traced(EVENTS[0]), list[TraceEvent]()
    detach = trace.tap(told.append)
    trace.append(EVENTS[1])
    detach()
    detach()
    trace.append(EVENTS[2])

    assert told == [EVENTS[1]]


def test_a_tap_that_raises_is_detached_and_logged_and_hurts_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace, told = Trace(), list[TraceEvent]()
    raised: list[TraceEvent] = []

    def raises(event: TraceEvent) -> None:
        raised.append(event)
        raise LookupError("tap")

    trace.tap(raises)
    trace.tap(told.append)
    trace.append(EVENTS[0])
    trace.append(EVENTS[1])

    assert (raised, told) == (EVENTS[:1], EVENTS[:2])
    assert [(record.levelno, record.name) for record in caplog.records] == [(logging.ERROR, "toolpost.trace")]


def test_a_tap_may_detach_itself_and_raise(caplog: pytest.LogCaptureFixture) -> None:
    trace = Trace()

    def goes(event: TraceEvent) -> None:
        detach()
        raise LookupError("tap")

    detach = trace.tap(goes)
    trace.append(EVENTS[0])
    trace.append(EVENTS[1])

    assert list(trace) == EVENTS[:2]
    assert len(caplog.records) == 1


# -- followers -------------------------------------------------------------------------------------


async def followed(trace: Trace, start: int = 0) -> list[TraceEvent]:
    return [event async for event in trace.follow(start)]


async def test_a_follower_has_every_record_past_and_to_come_until_the_end() -> None:
    trace = traced(state("before"))
    with anyio.fail_after(5):
        follower = asyncio.create_task(followed(trace))
        await settle()
        for text in ("one", "two"):
            trace.append(state(text))
            await settle()
        trace.append(state("three"))
        trace.append(state("four"))
        trace.end()

        assert await follower == [state(text) for text in ("before", "one", "two", "three", "four")]


async def test_a_follower_may_start_at_an_index() -> None:
    trace = traced(state("one"), state("two"))
    trace.end()

    assert await followed(trace, 1) == [state("two")]
    assert await followed(trace, 5) == []


async def test_a_slow_follower_misses_nothing_and_delays_nobody() -> None:
    trace = Trace()
    gate = anyio.Event()
    slow: list[TraceEvent] = []

    async def follow_slowly() -> None:
        async for event in trace.follow():
            slow.append(event)
            await gate.wait()

    with anyio.fail_after(5):
        follower = asyncio.create_task(follow_slowly())
        fast = asyncio.create_task(followed(trace))
        for number in range(50):
            trace.append(state(str(number)))
            await settle()
        assert len(slow) == 1
        trace.end()
        assert len(await fast) == 50
        gate.set()
        await follower

    assert slow == list(trace)


async def test_a_follower_that_goes_leaves_the_others() -> None:
    trace = Trace()
    with anyio.fail_after(5):
        goes, stays = asyncio.create_task(followed(trace)), asyncio.create_task(followed(trace))
        await settle()
        goes.cancel()
        await settle()
        trace.append(state("one"))
        trace.end()

        assert await stays == [state("one")]
