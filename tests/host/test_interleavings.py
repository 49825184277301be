"""Random interleavings of everything that can happen to a host, against the guarantees of the inbox.

The machine drives a real event loop by turns: no step waits for time. A step does one thing (an agent's call
starts, the far end answers, a connection is lost, …) and lets the loop run for a few turns, so that later
steps fall into the middle of earlier ones. What agents did and took is written into one log, and held
against the guarantees in every step and at the end. The same machine runs with and without a trace.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import anyio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import toolpost
from tests import memory
from tests.loop import settle, turns
from tests.memory import Memory
from toolpost.config import load_config
from toolpost.host.core import Core, Seat
from toolpost.host.face import Host
from toolpost.trace.events import Call, Closed, Inbound, Opened

T = TypeVar("T")

INBOX_BOUND = 2
CALLS_BOUND = 3
URIS = ("memo:a", "memo:b")
OPENING = ("call_tool", "subscribe_resource", "subscribe_resource_list")

pick = st.integers(0, 30)
"""Chooses one of what there is, whatever there is."""
some_turns = st.sampled_from((0, 0, 0, 1, 2, 3, 4))
"""Often none, so that things happen in one and the same turn."""
agents = st.sampled_from(("ada", "bob"))
uris = st.sampled_from((*URIS, None))


@dataclass
class Opening:
    """What the machine knows of one source."""

    agent: str
    uuid: str
    op: str
    uri: str | None = None
    number: int = -1
    """Of a call: its argument, by which the answer is recognised."""
    cancelled: bool = False
    """A `cancel` of it has returned."""
    taken: list[toolpost.Event] = field(default_factory=list[toolpost.Event])


class Agent:
    """One agent: its seat in the house, its handle, and what it has in hand."""

    def __init__(self, name: str, seat: Seat) -> None:
        self.name = name
        self.context = seat.context
        self.inbox = seat.context.inbox
        self.host = Host(seat.context, seat.find)
        self.tooling = self.host.tooling.get("memo")
        self.leaves = anyio.Event()
        self.has_shutdown = False
        """It was told to end."""
        self.took_shutdown = False
        self.has_left = False
        self.readers: list[asyncio.Task[None]] = []


class Interleavings(RuleBasedStateMachine):
    """Two agents, one far end, one house."""

    with_trace: ClassVar[bool] = True
    with_futures: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.memo = Memory()
        self.memo.drives_calls = self.with_futures
        self.agents: dict[str, Agent] = {}
        self.openings: dict[str, Opening] = {}
        self.pending: list[asyncio.Task[None]] = []
        """Operations of agents that have not returned."""
        self.seats: list[asyncio.Task[None]] = []
        self.versions = 0
        self.streams_go_on = True
        """The far end has neither refused nor ended a subscription."""

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        async def bounded() -> T:
            with anyio.fail_after(20):  # a bound for failures: nothing here takes time
                return await work()

        return self.runner.run(bounded())

    def step(self, count: int) -> None:
        self.run(lambda: turns(count))

    # -- set up ------------------------------------------------------------------------------------

    @initialize()
    def open(self) -> None:
        logging.getLogger("toolpost.host").setLevel(logging.CRITICAL)  # thousands of foreign exceptions
        self.run(self._open)

    async def _open(self) -> None:
        tunables = {
            "inbox_bound": INBOX_BOUND,
            "open_calls_bound": CALLS_BOUND,
            "recv_timeout_secs": math.inf,
        }
        config = load_config(memory.config(self.memo, tunables=tunables))
        self.core = Core(config, trace=self.with_trace, extras={})
        await self.core.open()
        for name in ("ada", "bob"):
            self.seats.append(asyncio.create_task(self._sit(name)))
        await settle()

    async def _sit(self, name: str) -> None:
        async with self.core.seat(name) as seat:
            agent = self.agents[name] = Agent(name, seat)
            await agent.leaves.wait()

    # -- agents ------------------------------------------------------------------------------------

    def start(
        self,
        agent: Agent,
        work: Callable[[], Awaitable[None]],
        count: int,
        *,
        is_reader: bool = False,
        gives_up: bool = False,
    ) -> None:
        async def operation() -> None:
            try:
                await work()
            except toolpost.AgentStopped:
                assert agent.has_left
            except toolpost.HostClosed:
                assert agent.has_shutdown

        async def begin() -> None:
            task = asyncio.create_task(operation())
            self.pending.append(task)
            if is_reader:
                agent.readers.append(task)
            await turns(count)
            if gives_up:  # in the middle of it, if it is not over
                task.cancel()

        self.run(begin)

    @rule(agent=agents, count=some_turns, gives_up=st.booleans())
    def call(self, agent: str, count: int, gives_up: bool) -> None:
        who = self.agents[agent]

        async def work() -> None:
            number = len(self.memo.held)
            full = who.inbox.statistics()["open_calls"] >= CALLS_BOUND
            try:
                uuid = await who.tooling.call_tool("hold", {"n": number})
            except toolpost.TooManyOpenCalls:
                assert full
            else:
                assert not full
                self.openings[uuid] = Opening(agent, uuid, "call_tool", number=number)

        self.start(who, work, count, gives_up=gives_up and count == 1)

    @rule(agent=agents, uri=uris, count=some_turns, gives_up=st.booleans())
    def subscribe(self, agent: str, uri: str | None, count: int, gives_up: bool) -> None:
        who = self.agents[agent]

        async def work() -> None:
            if uri is None:
                uuid = await who.tooling.subscribe_resource_list()
                self.openings[uuid] = Opening(agent, uuid, "subscribe_resource_list")
            else:
                uuid = await who.tooling.subscribe_resource(uri)
                self.openings[uuid] = Opening(agent, uuid, "subscribe_resource", uri=uri)

        self.start(who, work, count, gives_up=gives_up and count == 1)

    @precondition(lambda self: self.openings)
    @rule(agent=agents, which=pick, how=st.integers(0, 2), count=some_turns)
    def cancel(self, agent: str, which: int, how: int, count: int) -> None:
        """Anybody's: open, ended, taken, cancelled already, or the other agent's."""
        who, opening = self.agents[agent], chosen(list(self.openings.values()), which)
        tooling = who.tooling
        operation = (tooling.cancel, tooling.unsubscribe_resource, tooling.unsubscribe_resource_list)[how]

        async def work() -> None:
            await operation(opening.uuid)
            if opening.agent == agent:
                opening.cancelled = True
                assert not tooling.is_open(opening.uuid)

        self.start(who, work, count)

    @rule(agent=agents, count=some_turns)
    def recv(self, agent: str, count: int) -> None:
        who = self.agents[agent]

        async def work() -> None:
            self.took(who, await who.host.recv())

        self.start(who, work, count, is_reader=True)

    @rule(agent=agents)
    def try_recv(self, agent: str) -> None:
        who = self.agents[agent]

        async def work() -> None:
            if who.has_left or who.took_shutdown:
                return
            envelope = who.host.try_recv()
            if envelope is not None:
                self.took(who, envelope)

        self.run(work)

    @precondition(lambda self: self.pending)
    @rule(which=st.sampled_from((0, 0, 0, *range(10))), count=some_turns)
    def abandon(self, which: int, count: int) -> None:
        """The caller of an operation is cancelled: nothing that it could have had is lost."""

        async def work() -> None:
            under_way = [task for task in reversed(self.pending) if not task.done()]
            if under_way:
                chosen(under_way, which).cancel()
            await turns(count)

        self.run(work)

    def took(self, agent: Agent, envelope: toolpost.Envelope) -> None:
        assert not agent.took_shutdown, "nothing follows Shutdown"
        if isinstance(envelope.event, toolpost.Shutdown):
            assert envelope.id == ""
            agent.took_shutdown = True
            return
        opening = self.openings.get(envelope.id)
        if opening is None:  # taken by another task before the caller had the UUID
            return
        assert opening.agent == agent.name, "an envelope went to a stranger"
        assert not opening.cancelled, "taken after it was cancelled"
        if opening.op == "call_tool":
            assert opening.taken == [], "a second envelope for one call"
            assert not agent.tooling.is_open(opening.uuid)
            if isinstance(envelope.event, toolpost.ToolResult):
                assert envelope.event.value == f"answer {opening.number}"
        opening.taken.append(envelope.event)

    # -- the far end -------------------------------------------------------------------------------

    def waiting(self) -> list[memory.Held]:
        return [held for held in self.memo.held if held.is_waiting]

    @precondition(lambda self: self.waiting())
    @rule(which=pick, count=some_turns)
    def answer(self, which: int, count: int) -> None:
        held = chosen(self.waiting(), which)
        held.answer(f"answer {held.call.arguments['n']}")
        self.step(count)

    @precondition(lambda self: self.waiting())
    @rule(which=pick, foreign=st.booleans(), count=some_turns)
    def fail(self, which: int, foreign: bool, count: int) -> None:
        error = KeyError("foreign") if foreign else toolpost.RequestTimeout("too slow")
        chosen(self.waiting(), which).fail(error)
        self.step(count)

    @precondition(lambda self: self.waiting())
    @rule(which=pick, answer_first=st.booleans(), count=some_turns)
    def answer_and_cancel_at_once(self, which: int, answer_first: bool, count: int) -> None:
        held = chosen(self.waiting(), which)
        number = held.call.arguments["n"]
        for opening in self.openings.values():
            if opening.number == number:
                break
        else:  # its caller does not know its UUID yet
            return
        who = self.agents[opening.agent]

        async def work() -> None:
            if answer_first:
                held.answer(f"answer {number}")
            await who.tooling.cancel(opening.uuid)
            held.answer(f"answer {number}")
            opening.cancelled = True

        self.start(who, work, count)

    @precondition(lambda self: self.waiting())
    @rule(which=pick, count=some_turns)
    def backend_cancels_itself(self, which: int, count: int) -> None:
        chosen(self.waiting(), which).cancel_itself()
        self.step(count)

    @rule(count=some_turns)
    def lose_connection(self, count: int) -> None:
        self.memo.lose_connection()
        self.step(count)

    @rule(uri=st.sampled_from(URIS), count=some_turns)
    def change(self, uri: str, count: int) -> None:
        self.versions += 1
        self.memo.change(uri, f"{self.versions}")
        self.step(count)

    @rule(count=some_turns)
    def change_list(self, count: int) -> None:
        self.versions += 1
        self.memo.change(f"memo:new{self.versions}", "new")
        self.step(count)

    @precondition(lambda self: self.memo.subscriptions)
    @rule(which=pick, broken=st.booleans(), count=some_turns)
    def end_stream(self, which: int, broken: bool, count: int) -> None:
        self.streams_go_on = False
        chosen(self.memo.subscriptions, which).end(OSError("torn") if broken else None)
        self.step(count)

    @rule(uri=uris, refused=st.booleans())
    def refuse(self, uri: str | None, refused: bool) -> None:
        self.memo.refusals.pop(uri, None)
        if refused:
            self.streams_go_on = False
            self.memo.refusals[uri] = toolpost.Unsupported("refused")

    @rule(held=st.booleans(), count=some_turns)
    def hold_reads(self, held: bool, count: int) -> None:
        if held and self.memo.reads_go_on.is_set():
            self.memo.hold_reads()
        elif not held:
            self.memo.release_reads()
        self.step(count)

    @rule(failing=st.booleans(), count=some_turns)
    def fail_reads(self, failing: bool, count: int) -> None:
        self.memo.read_failure = LookupError("out of order") if failing else None
        self.step(count)

    @rule()
    def let_everything_settle(self) -> None:
        self.run(settle)
        self.check_calls_are_open_while_they_wait()
        self.check_nobody_waits_for_what_is_there()

    # -- ends --------------------------------------------------------------------------------------

    @rule(agent=agents, count=some_turns, last_chance=st.integers(0, 3))
    def shut_down(self, agent: str, count: int, last_chance: int) -> None:
        if last_chance:  # rarely, so that runs are long
            return
        who = self.agents[agent]
        adds = 0 if who.has_shutdown else 1  # Shutdown itself; what waits stays and is taken before it
        who.has_shutdown = True

        async def work() -> None:
            before = who.inbox.statistics()["waiting"]
            who.context.shut_down()
            assert who.inbox.statistics()["waiting"] == before + adds
            assert not any(who.tooling.is_open(uuid) for uuid in self.openings)
            await turns(count)

        self.run(work)

    @rule(agent=agents, count=some_turns, last_chance=st.integers(0, 3))
    def leave(self, agent: str, count: int, last_chance: int) -> None:
        """The agent comes to its end, and its sources with it."""
        if last_chance:
            return
        who = self.agents[agent]
        who.has_left = who.has_shutdown = True
        who.leaves.set()
        self.step(count)

    # -- in every step -----------------------------------------------------------------------------

    @invariant()
    def bounds_hold(self) -> None:
        for agent in self.agents.values():
            now = agent.inbox.statistics()
            assert 0 <= now["open_calls"] <= CALLS_BOUND
            assert 0 <= now["filled"] <= INBOX_BOUND
            assert now["waiting"] <= CALLS_BOUND + INBOX_BOUND + 1

    @invariant()
    def only_the_owner_sees_a_source_open(self) -> None:
        for opening in self.openings.values():
            for agent in self.agents.values():
                if agent.name != opening.agent or opening.cancelled:
                    assert not agent.tooling.is_open(opening.uuid)

    @invariant()
    def the_trace_says_what_is_open(self) -> None:
        if self.agents and self.core.trace is not None:
            opened = {event.id for event in self.core.trace if isinstance(event, Opened)}
            closed = {event.id for event in self.core.trace if isinstance(event, Closed)}
            for opening in self.openings.values():
                is_open = self.agents[opening.agent].tooling.is_open(opening.uuid)
                assert is_open == (opening.uuid in opened and opening.uuid not in closed)

    def check_calls_are_open_while_they_wait(self) -> None:
        """Without the trace, and only when everything has settled."""
        waiting = {held.call.arguments["n"] for held in self.waiting()}
        for opening in self.openings.values():
            if opening.op == "call_tool":
                agent = self.agents[opening.agent]
                assert agent.tooling.is_open(opening.uuid) == (opening.number in waiting)

    def check_nobody_waits_for_what_is_there(self) -> None:
        for agent in self.agents.values():
            if not all(reader.done() for reader in agent.readers):
                assert agent.inbox.statistics()["waiting"] == 0, "a reader was not woken"

    # -- at the end --------------------------------------------------------------------------------

    def teardown(self) -> None:
        try:
            if self.agents:
                self.run(self._end)
        finally:
            self.runner.close()
            logging.getLogger("toolpost.host").setLevel(logging.NOTSET)

    async def _end(self) -> None:
        await self._let_go()
        self.check_nobody_waits_for_what_is_there()
        await self._drain()
        self._check_what_is_left()
        self._check_calls()
        self._check_subscriptions()
        await self._shut_down_all()
        if self.core.trace is not None:
            self._check_trace(list(self.core.trace))

    async def _let_go(self) -> None:
        """Nothing is held back any more, and every resource changes once more."""
        self.memo.read_failure = None
        self.memo.release_reads()
        for held in self.waiting():
            held.answer(f"answer {held.call.arguments['n']}")
        await settle()  # what is about to subscribe has done so
        for uri in URIS:
            self.versions += 1
            self.memo.change(uri, f"{self.versions}")
        self.memo.change("memo:last", "")
        await settle()

    async def _drain(self) -> None:
        for agent in self.agents.values():
            while not (agent.has_left or agent.took_shutdown):
                await settle()
                envelope = agent.host.try_recv()
                if envelope is None:
                    break
                self.took(agent, envelope)
        for task in self.pending:
            task.cancel()
        for ended in await asyncio.gather(*self.pending, return_exceptions=True):
            if ended is not None and not isinstance(ended, asyncio.CancelledError):
                raise ended

    def _check_what_is_left(self) -> None:
        """Open subscriptions, and nothing else: no call, and no source that nobody knows."""
        for agent in self.agents.values():
            mine = [each for each in self.openings.values() if each.agent == agent.name]
            is_open = [each for each in mine if agent.tooling.is_open(each.uuid)]
            if not agent.took_shutdown and not agent.has_left:
                assert agent.inbox.statistics() == {
                    "waiting": 0,
                    "open_calls": 0,
                    "filled": 0,
                    "sources": len(is_open),
                }
            if self.streams_go_on and not agent.has_shutdown:
                assert is_open == [each for each in mine if each.op != "call_tool" and not each.cancelled]

    def _check_calls(self) -> None:
        for opening in self.openings.values():
            agent = self.agents[opening.agent]
            if opening.op != "call_tool" or opening.cancelled:
                continue
            if agent.has_left or agent.has_shutdown:
                assert len(opening.taken) <= 1
            else:
                assert len(opening.taken) == 1, "each call has its one envelope"

    def _check_subscriptions(self) -> None:
        for opening in self.openings.values():
            agent = self.agents[opening.agent]
            told = [event for event in opening.taken if isinstance(event, toolpost.ResourceUpdated)]
            versions = [int(event.content) for event in told if event.content.isdigit()]
            assert versions == sorted(versions), "envelopes of one source keep their order"
            if opening.op == "call_tool" or not agent.tooling.is_open(opening.uuid):
                continue
            if opening.uri is None:
                assert opening.taken[-1] == toolpost.ResourceListUpdated(self.memo.list())
            else:
                assert told[-1] is opening.taken[-1], "a read-back that works comes after one that failed"
                assert told[-1].content == self.memo.resources[opening.uri], "the last state arrives"

    async def _shut_down_all(self) -> None:
        for agent in self.agents.values():
            agent.has_shutdown = True
            agent.context.shut_down()
            while not (agent.took_shutdown or agent.has_left):
                envelope = agent.host.try_recv()
                assert envelope is not None, "Shutdown always fits"
                self.took(agent, envelope)
            assert agent.inbox.statistics()["open_calls"] == 0 or agent.has_left
            agent.leaves.set()
        await asyncio.gather(*self.seats)
        for agent in self.agents.values():
            if agent.took_shutdown:
                assert set(agent.inbox.statistics().values()) == {0}
        await self.core.close()
        await settle()
        assert (self.memo.under_way, self.memo.subscriptions) == (0, [])
        assert not self.waiting(), "the far end knows that nobody waits for its answer"
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def _check_trace(self, trace: list[Any]) -> None:
        opened: dict[str, Opened] = {}
        closed: set[str] = set()
        for position, event in enumerate(trace):
            match event:
                case Opened(id=uuid, agent=agent, source=source):
                    before = trace[position - 1]
                    assert isinstance(before, Call), "a call is written before what it opens"
                    assert (before.agent, before.op) == (agent, source)
                    assert uuid not in opened
                    opened[uuid] = event
                case Closed(id=uuid, agent=agent):
                    assert opened[uuid].agent == agent
                    assert uuid not in closed, "each source closes once"
                    closed.add(uuid)
                case Inbound(id=uuid, agent=agent, event=kind):
                    assert (uuid == "") == (kind == "shutdown")
                    assert uuid == "" or opened[uuid].agent == agent
                    assert uuid == "" or uuid in closed or opened[uuid].source != "call_tool"
                case Call(op=op):
                    assert op in OPENING or "uuid" in event.detail
                case _:
                    raise AssertionError(f"unexpected: {event}")
        assert closed == set(opened), "each source that opened closed"


class InterleavingsWithoutTrace(Interleavings):
    """The same guarantees: taking the trace away changes nothing."""

    with_trace = False


class InterleavingsOfFutures(Interleavings):
    """The same guarantees, from a backend whose calls need nobody to drive them."""

    with_futures = True


def chosen(things: list[T], which: int) -> T:
    return things[which % len(things)]


# Filters are cheap here (preconditions on what there is), and long runs are the point.
_settings = settings(max_examples=120, stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow])
TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = _settings
TestInterleavingsWithoutTrace = InterleavingsWithoutTrace.TestCase
TestInterleavingsWithoutTrace.settings = _settings
TestInterleavingsOfFutures = InterleavingsOfFutures.TestCase
TestInterleavingsOfFutures.settings = _settings
