"""Random scripts, random agents and random seeds through the simulation, against what every run promises.

An agent is a list of things to do; the same list makes a sync agent, an async one, or a guest
(tests/wasm/test_simulated_guests.py). What happened is read
off the trace, each record with the virtual time at which it was written, and held against the script: since
time is virtual, it is known when each answer is due, and nothing may come earlier, later or twice.

TOOLPOST_SOAK=50 in the environment runs 50 times as many examples (`make soak`).
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import math
import os
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolpost
from toolpost.config import load_config
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop
from toolpost.trace.events import AgentOutcome, Call, Closed, Inbound, Opened, TraceEvent

SOAK = int(os.environ.get("TOOLPOST_SOAK", "1"))
EXAMPLES = 120

NAMES = ("ada", "bob", "cyd", "dan")
TOOLS = ("echo", "add")
URIS = ("mem://a", "mem://b")
CANCELS = ("cancel", "unsubscribe_resource", "unsubscribe_resource_list")
CALLS = ("call_tool", "call_tool_blocking")
DEADLOCK = Outcome("failed", "deadlock")
TINY = 1e-6
"""Seconds by which sums of the same delays may differ."""


# -- what can be run -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """What a step waits for: a record of the trace, by any agent or one."""

    kind: Literal["call", "inbound"]
    what: str
    """The operation, or the event."""
    agent: str | None = None

    def to_toml(self) -> dict[str, str]:
        table = {"kind": self.kind, "op" if self.kind == "call" else "event": self.what}
        return table if self.agent is None else {**table, "agent": self.agent}

    def sees(self, record: TraceEvent) -> bool:
        """By hand, and not by the patterns of toolpost: these are what is tested."""
        if self.agent is not None and getattr(record, "agent", None) != self.agent:
            return False
        if self.kind == "call":
            return isinstance(record, Call) and record.op == self.what
        return isinstance(record, Inbound) and record.event == self.what


@dataclass(frozen=True)
class Step:
    """One step of the mock. What it brings is told by its number."""

    what: str
    """A tool, or a URI; empty for the list."""
    brings: Literal["answer", "error", "pending"]
    gate: Gate | None

    def said(self, number: int) -> str:
        """What is in its envelope."""
        return f"<{self.brings} {number}>"

    def to_toml(self, number: int, what: str, answer: dict[str, Any]) -> dict[str, Any]:
        table: dict[str, Any] = {} if not what else {what: self.what}
        match self.brings:
            case "answer":
                table |= answer
            case "error":
                table["error"] = self.said(number)
            case "pending":
                table["pending"] = True
        return table if self.gate is None else {**table, "after": self.gate.to_toml()}


Op: TypeAlias = tuple[Any, ...]
"""A method of `Part`, and its arguments."""
End: TypeAlias = Literal["completed", "exited", "failed"]
ENDS: tuple[End, ...] = ("completed", "completed", "exited", "failed")


@dataclass(frozen=True)
class Program:
    """One agent."""

    is_async: bool
    ops: tuple[Op, ...]
    end: End


@dataclass(frozen=True)
class Plan:
    """Everything that a run is a function of."""

    calls: tuple[Step, ...]
    lists: tuple[Step, ...]
    contents: tuple[Step, ...]
    delay_ms: int
    inbox_bound: int
    open_calls_bound: int
    programs: tuple[Program, ...]
    stop_after: float | None
    """When everybody is told to come to an end, in virtual seconds."""
    seed: int

    def config(self) -> dict[str, Any]:
        mock = {
            "kind": "mock",
            "delay_ms": self.delay_ms,
            "tool_calls": [
                each.to_toml(number, "name", {"result": each.said(number)})
                for number, each in enumerate(self.calls)
            ],
            "initial_resource_list": [{"uri": uri, "name": uri} for uri in URIS],
            "resource_list_updates": [
                each.to_toml(number, "", {"resources": [{"uri": each.said(number), "name": "new"}]})
                for number, each in enumerate(self.lists)
            ],
            "resource_content_updates": [
                each.to_toml(number, "uri", {"content": each.said(number)})
                for number, each in enumerate(self.contents)
            ],
        }
        bounds = {"inbox_bound": self.inbox_bound, "open_calls_bound": self.open_calls_bound}
        return {"tooling": {"mcp": mock}, "tunables": bounds}


# Whole steps and whole operations are drawn, from lists in which what is wanted more often stands more often:
# drawing each part by itself would take longer than the run.
GATES = (
    *(None,) * 10,
    *(Gate("call", op) for op in ("call_tool", "cancel", "list_tools", "subscribe_resource")),
    *(Gate("call", op, name) for op in ("call_tool", "read_resource") for name in NAMES[:2]),
    *(Gate("inbound", event) for event in ("tool-result", "error", "resource-updated")),
)
BRINGS: tuple[Any, ...] = (*("answer",) * 6, "error", "pending")
LIMITS = (None, None, None, 0.5, 3.25)
"""Hardly a sum of delays: so it is known which of two comes first."""
WAITS = (None, 0, 0.005, 2.125, 100, 100, 100, math.inf)


def all_of(often: int, name: str, *arguments: tuple[Any, ...]) -> list[Op]:
    """Every operation of that name, and so many of them."""
    every = list(itertools.product((name,), *arguments))
    return [op for _, op in zip(range(often), itertools.cycle(every), strict=False)]


def steps(what: tuple[str, ...], least: int, most: int) -> st.SearchStrategy[tuple[Step, ...]]:
    every = [Step(*parts) for parts in itertools.product(what, BRINGS, GATES)]
    return st.lists(st.sampled_from(every), min_size=least, max_size=most).map(tuple)


OPS = [
    *all_of(80, "queue", ("echo",) * 9 + ("add",), LIMITS),
    *all_of(40, "block", ("echo",) * 9 + ("add",), LIMITS),
    *all_of(100, "receive", WAITS),
    *all_of(20, "look"),
    *all_of(40, "cancel", tuple(range(12)), CANCELS),
    *all_of(60, "subscribe", (*URIS, None)),
    *all_of(20, "read", URIS),
    *all_of(20, "list", ("list_tools", "list_resources")),
    *all_of(40, "sleep", (0, 0.01, 0.02, 1, 7)),
    *all_of(20, "ask", tuple(range(12))),
]
READS: tuple[Op, ...] = (("receive", 100),) * 6
"""At the end of some: so that all that comes is taken."""


def program(is_async: bool, ops: list[Op], reads: int, end: End) -> Program:
    return Program(is_async, (*ops, *READS[:reads]), end)


programs = st.builds(
    program,
    st.booleans(),
    st.lists(st.sampled_from(OPS), min_size=2, max_size=14),
    st.sampled_from((0, 2, 6)),
    st.sampled_from(ENDS),
)
plans = st.builds(
    Plan,
    calls=steps(("echo",) * 9 + ("add",), 4, 16),
    lists=steps(("",), 0, 3),
    contents=steps(URIS, 1, 6),
    delay_ms=st.sampled_from((0, 10, 1000)),
    inbox_bound=st.sampled_from((1, 1024, 1024)),
    open_calls_bound=st.sampled_from((2, 1024, 1024)),
    programs=st.lists(programs, min_size=1, max_size=4).map(tuple),
    stop_after=st.sampled_from((None, None, None, 0, 0.01, 5)),
    seed=st.integers(0, 1000),
)


# -- an agent at work ------------------------------------------------------------------------------

Request: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A call of the host or of its tooling: its name and arguments."""
Acting: TypeAlias = Generator[Request, Any, None]


def ask(name: str, *args: Any, **kwargs: Any) -> Request:
    return name, args, kwargs


class Part:
    """One agent of a run: it does what its program says, and looks at what it gets."""

    def __init__(self, name: str, program: Program, run: Run) -> None:
        self.name = name
        self.doing: Op = ()
        self.program = program
        self._run = run
        self.cancelled: set[str] = set()
        """What it has cancelled, which may have waited in its inbox."""
        self._has_shutdown = False
        self._last_now = 0.0

    def agent(self) -> Agent:
        return Agent(self.name, self._in_task if self.program.is_async else self._in_thread)

    async def _in_task(self, host: Any) -> str | None:
        mcp, acting = host.tooling.get("mcp"), self.act()
        try:
            request = next(acting)
            while True:
                try:
                    answer = self._call(host, mcp, request)
                    if inspect.isawaitable(answer):
                        answer = await answer
                except toolpost.ToolpostError as error:
                    request = acting.throw(error)
                else:
                    request = acting.send(answer)
        except StopIteration:
            return self._end()

    def _in_thread(self, host: Any) -> str | None:
        mcp, acting = host.tooling.get("mcp"), self.act()
        try:
            request = next(acting)
            while True:
                try:
                    answer = self._call(host, mcp, request)
                except toolpost.ToolpostError as error:
                    request = acting.throw(error)
                else:
                    request = acting.send(answer)
        except StopIteration:
            return self._end()

    def _call(self, host: Any, mcp: Any, request: Request) -> Any:
        name, args, kwargs = request
        return getattr(host if hasattr(host, name) else mcp, name)(*args, **kwargs)

    def _end(self) -> str | None:
        if self.program.end == "failed":
            raise ValueError("no luck")
        return "bye" if self.program.end == "exited" else None

    def expected(self) -> list[str]:
        """The outcomes that it can come to."""
        own = {"completed": "completed", "exited": "exited: bye", "failed": "failed: ValueError: no luck"}
        late = f"failed: AgentStopped: agent {self.name!r} did not end in time after Shutdown"
        return [
            own[self.program.end],
            *[late for _ in range(self._run.is_stopping)],
            *[str(DEADLOCK) for _ in range(self._run.has_stalled)],
        ]

    def act(self) -> Acting:
        try:
            for op in self.program.ops:
                self.doing = op
                yield from getattr(self, f"_{op[0]}")(*op[1:])
                self._see_time((yield ask("now")))
        except AssertionError as fault:
            self._run.faults.append(fault)
        finally:
            self.doing = ()

    def _see_time(self, now: float) -> None:
        assert now >= self._last_now, "time went back"
        self._last_now = now

    def _queue(self, tool: str, timeout: float | None) -> Acting:
        limits = self._run.limits[self.name]
        limits.append(timeout)
        try:
            uuid = yield ask("call_tool", tool, timeout=timeout)
        except toolpost.HostClosed:
            assert self._run.is_stopping
            limits.pop()
        except toolpost.TooManyOpenCalls:
            assert self._run.untaken_calls(self.name) >= self._run.plan.open_calls_bound
            limits.pop()
        else:
            self._run.known.append((self.name, uuid))

    def _subscribe(self, uri: str | None) -> Acting:
        try:
            uuid = yield ask("subscribe_resource_list") if uri is None else ask("subscribe_resource", uri)
        except toolpost.HostClosed:
            assert self._run.is_stopping
        else:
            self._run.known.append((self.name, uuid))

    def _block(self, tool: str, timeout: float | None) -> Acting:
        self._run.limits[self.name].append(timeout)
        try:
            result = yield ask("call_tool_blocking", tool, timeout=timeout)
        except toolpost.ToolpostError as error:
            text = str(error)
        else:
            text = result.value
        self._run.answered[self.name].append((self._run.now(), text))

    def _receive(self, timeout: float | None) -> Acting:
        start, limit = self._run.now(), 60 if timeout is None else timeout
        try:
            envelope = yield ask("recv", timeout)
        except toolpost.RecvTimeout:
            assert self._run.now() == pytest.approx(start + limit, abs=TINY)
            self._run.check_nothing_waits(self.name, self.cancelled)
        except toolpost.HostClosed:
            assert self._has_shutdown, "the inbox is closed only behind Shutdown"
        else:
            assert self._run.now() <= start + limit + TINY
            if self._run.now() > start + TINY:
                self._run.check_has_just_come(envelope.id)
            self._took(envelope)

    def _look(self) -> Acting:
        try:
            envelope = yield ask("try_recv")
        except toolpost.HostClosed:
            assert self._has_shutdown, "the inbox is closed only behind Shutdown"
        else:
            if envelope is not None:
                self._took(envelope)

    def _took(self, envelope: toolpost.Envelope) -> None:
        assert not self._has_shutdown, "nothing follows Shutdown"
        assert envelope.id not in self.cancelled, "taken after it was cancelled"
        assert (envelope.id == "") == isinstance(envelope.event, toolpost.Shutdown)
        self._has_shutdown = envelope.id == ""

    def _cancel(self, which: int, how: str) -> Acting:
        known = [*self._run.known, ("nobody", "00000000-0000-4000-8000-000000000000")]
        owner, uuid = known[which % len(known)]
        yield ask(how, uuid)
        if owner == self.name:
            self.cancelled.add(uuid)
            assert not (yield ask("is_open", uuid)), "open, though it was cancelled"

    def _ask(self, which: int) -> Acting:
        """Whether a source is open, which the trace tells as well."""
        if known := self._run.known:
            owner, uuid = known[which % len(known)]
            before = self._run.is_open(uuid)
            is_open = yield ask("is_open", uuid)
            if owner != self.name:
                assert not is_open, "another agent's source"
            elif before == self._run.is_open(uuid):  # else it has ended meanwhile
                assert is_open == before

    def _read(self, uri: str) -> Acting:
        try:
            yield ask("read_resource", uri)
        except toolpost.ResourceNotFound:
            pass

    def _list(self, which: str) -> Acting:
        yield ask(which)

    def _sleep(self, seconds: float) -> Acting:
        start = self._run.now()
        yield ask("sleep", seconds)
        assert self._run.now() == pytest.approx(start + seconds, abs=TINY)


def threads_under_way() -> set[threading.Thread]:
    """But not the one that looks after guests, which goes once it has seen that there are none."""
    return {each for each in threading.enumerate() if each.name != "toolpost guests"}


# -- a run -----------------------------------------------------------------------------------------


class Run:
    """One run of a plan: what happened, when, and what was due."""

    def __init__(self, plan: Plan, config: toolpost.Config, part: Callable[..., Part] = Part) -> None:
        self.plan = plan
        self._config = config
        self.loop = SimulatedLoop(plan.seed)
        self.moments: list[tuple[float, TraceEvent]] = []
        """The trace, with the virtual time of each record."""
        self.known: list[tuple[str, str]] = []
        """The sources whose UUIDs somebody has: owner and UUID."""
        self.answered: dict[str, list[tuple[float, str]]] = {name: [] for name in NAMES}
        """By agent, when each of its blocking calls came back, and with what."""
        self.limits: dict[str, list[float | None]] = {name: [] for name in NAMES}
        """By agent, the limits of all its calls."""
        self.faults: list[BaseException] = []
        """What an agent, or a callback, saw that must not be."""
        self.outcomes: dict[str, Outcome] = {}
        self.is_stopping = False
        self.has_stalled = False
        names = NAMES[: len(plan.programs)]
        self.parts = [part(name, each, self) for name, each in zip(names, plan.programs, strict=True)]

    def play(self) -> list[str]:
        """Run it, see that nothing is left of it, and give its trace in JSON, with the times."""
        threads = threads_under_way()
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._live())
        for thread in threads_under_way() - threads:  # it has said its last, and is about to go
            thread.join(10)
        assert threads_under_way() == threads
        if self.faults:
            raise self.faults[0]
        times = [moment for moment, _ in self.moments]
        assert times == sorted(times), "time went back"
        return [f"{moment!r} {line}" for moment, line in zip(times, self._lines, strict=True)]

    async def _live(self) -> None:
        core = Core(self._config, trace=True, extras={})
        await core.open()
        assert core.trace is not None
        core.trace.tap(lambda record: self.moments.append((self.loop.time(), record)))
        self.loop.on_stall = lambda: self._stalled(core)
        stop = asyncio.Event()
        if self.plan.stop_after is not None:
            self.loop.call_later(self.plan.stop_after, self._stop, stop)
        self.outcomes = await core.run_agents([part.agent() for part in self.parts], stop)
        await core.close()
        assert core.left_behind == []
        assert asyncio.all_tasks() == {asyncio.current_task()}
        self._lines = list(core.trace.json_lines())

    def _stop(self, stop: asyncio.Event) -> None:
        self.is_stopping = True
        stop.set()

    def _stalled(self, core: Core) -> None:
        try:
            assert not self.has_stalled, "told once"
            self.check_nobody_can_go_on({run.name for run in core.runs})
        except AssertionError as fault:
            self.faults.append(fault)
        self.has_stalled = True
        for run in core.runs:
            core.end_agent(run.name, DEADLOCK)

    # -- what agents look up -----------------------------------------------------------------------

    def now(self) -> float:
        return self.loop.time()

    def records(self) -> list[TraceEvent]:
        return [record for _, record in self.moments]

    def is_open(self, uuid: str) -> bool:
        mine = [record for record in self.records() if getattr(record, "id", None) == uuid]
        return not any(isinstance(record, Closed) for record in mine)

    def untaken_calls(self, agent: str) -> int:
        """Queued calls whose places are still taken."""
        return sum(
            not (source.taken or source.reason == "cancelled")
            for source in self.sources()
            if source.agent == agent and source.is_call
        )

    def check_nothing_waits(self, agent: str, cancelled: set[str]) -> None:
        """Its inbox was empty: everything that was due before this instant has been taken."""
        for source in self.sources():
            if source.agent == agent and source.uuid not in cancelled and source.reason != "cancelled":
                due = [each for each in self.due(source) if each.when < self.now() - TINY]
                if source.is_call or self.plan.inbox_bound > 1:
                    assert len(source.taken) >= len(due), f"{source} is owed {due}"

    def check_has_just_come(self, uuid: str) -> None:
        """Somebody waited for the envelope that was taken last under this UUID."""
        for source in self.sources():
            if source.uuid == uuid:
                if source.is_call:
                    assert source.ended == pytest.approx(self.now(), abs=TINY)
                elif self.plan.inbox_bound > 1:
                    assert self.due(source)[len(source.taken) - 1].when == pytest.approx(self.now(), abs=TINY)

    def check_nobody_can_go_on(self, running: set[str]) -> None:
        """As a stall says: no timer is needed, and who waits for an envelope has none."""
        for part in self.parts:
            if part.name in running:
                assert part.doing[0] == "block" or part.doing == ("receive", math.inf), part.doing
                if part.doing[0] == "block":
                    assert self.due_of_call(self.calls(part.name)[-1]).when == math.inf
                else:
                    self.check_nothing_waits(part.name, part.cancelled)
        for source in self.sources():
            if source.reason is None and (source.is_call or self.plan.inbox_bound > 1):
                assert not any(self.now() + TINY < each.when < math.inf for each in self.due(source)), source

    # -- what was due ------------------------------------------------------------------------------

    def calls(self, agent: str | None = None) -> list[Made]:
        """Every tool call so far, or those of one agent. Each takes the next step."""
        made: list[Made] = []
        counts: dict[str, int] = dict.fromkeys(NAMES, 0)
        for moment, record in self.moments:
            if isinstance(record, Call) and record.op in CALLS:
                limit = self.limits[record.agent][counts[record.agent]]
                counts[record.agent] += 1
                made.append(Made(record, moment, len(made), math.inf if limit is None else limit))
        return [each for each in made if agent in (None, each.record.agent)]

    def sources(self) -> list[Source]:
        """Every source of the run so far."""
        found: dict[str, Source] = {}
        made = iter(self.calls())
        before: TraceEvent | None = None
        last: Made | None = None
        for moment, record in self.moments:
            match record:
                case Call(op=op) if op in CALLS:
                    last = next(made)
                case Opened(id=uuid):
                    assert isinstance(before, Call), "a call is written before what it opens"
                    assert (before.agent, before.op) == (record.agent, record.source)
                    assert uuid not in found
                    found[uuid] = Source(record, moment, before, last)
                case Closed(id=uuid):
                    assert found[uuid].reason is None, "closed twice"
                    assert found[uuid].agent == record.agent
                    found[uuid].ended, found[uuid].reason = moment, record.reason
                case Inbound(id=uuid) if uuid:
                    assert found[uuid].agent == record.agent, "an envelope went to a stranger"
                    found[uuid].taken.append((moment, record))
                case _:
                    pass
            before = record
        return list(found.values())

    def due(self, source: Source) -> list[Due]:
        """What is to enter the inbox under a source, and when."""
        if source.is_call:
            assert source.made is not None
            return [self.due_of_call(source.made)]
        uri = source.call.detail.get("uri")
        at, found = source.opened, list[Due]()
        for number, step in enumerate(self.plan.lists if uri is None else self.plan.contents):
            if uri is None or step.what == uri:
                at = self._fires(step, at)
                if step.brings == "pending" or at == math.inf:
                    break
                found.append(Due(at, (step.said(number),)))
        return found

    def due_of_call(self, made: Made) -> Due:
        """What a tool call is to bring."""
        tool = str(made.record.detail["name"])
        if made.number >= len(self.plan.calls) or self.plan.calls[made.number].what != tool:
            return Due(made.moment, ("step", "script"))
        step = self.plan.calls[made.number]
        answer = math.inf if step.brings == "pending" else self._fires(step, made.moment)
        limit = made.moment + made.limit
        if limit < answer - TINY:
            return Due(limit, ("no answer within",))
        if limit < answer + TINY:  # at one instant: either may come first
            return Due(answer, ("no answer within", step.said(made.number)))
        return Due(answer, (step.said(made.number),))

    def _fires(self, step: Step, reached: float) -> float:
        opened = 0.0
        if step.gate is not None:
            opened = next((moment for moment, record in self.moments if step.gate.sees(record)), math.inf)
        return max(reached, opened) + self.plan.delay_ms / 1000

    # -- when all is over --------------------------------------------------------------------------

    def check(self) -> None:
        for source in self.sources():
            if source.is_call:
                self._check_call(source)
            else:
                self._check_subscription(source)
        for part in self.parts:
            self._check_blocking(part.name)
            told = [record for record in self.records() if record == self._outcome_of(part.name)]
            assert len(told) == 1, "each agent comes to one end"
            assert str(self.outcomes[part.name]) in part.expected()
        self._check_cancelled()
        self._check_last_words()

    def _outcome_of(self, agent: str) -> AgentOutcome:
        return AgentOutcome(agent=agent, outcome=self.outcomes[agent].to_json())

    def _check_call(self, source: Source) -> None:
        (due,) = self.due(source)
        if source.reason == "cancelled":
            assert source.ended <= due.when + TINY, "it would have been answered before"
            assert source.taken == []
            return
        assert source.reason is not None, "never closed"
        assert source.ended == pytest.approx(due.when, abs=TINY)
        assert len(source.taken) <= 1, "a second envelope for one call"
        for moment, record in source.taken:
            assert moment >= source.ended
            assert (record.event == "tool-result") == (source.reason == "ended")
            assert any(text in said(record) for text in due.texts), f"{record} instead of {due}"

    def _check_subscription(self, source: Source) -> None:
        assert source.reason == "cancelled", "a mock never ends one"
        due = self.due(source)
        assert len(source.taken) <= len(due), "more than the script has"
        for (moment, record), expected in zip(source.taken, due, strict=False):
            assert expected.texts[0] in said(record), "out of order"
            assert moment >= expected.when - TINY, "before it was due"

    def _check_blocking(self, agent: str) -> None:
        made = [each for each in self.calls(agent) if each.record.op == "call_tool_blocking"]
        answered = self.answered[agent]
        assert len(made) - len(answered) in (0, 1), "all but one that was stopped came back"
        for each, (moment, text) in zip(made, answered, strict=False):
            due = self.due_of_call(each)
            assert moment == pytest.approx(due.when, abs=TINY)
            assert any(expected in text for expected in due.texts), f"{text} instead of {due}"

    def _check_cancelled(self) -> None:
        """Nobody but its owner, or its owner's end, cancels a source; nothing of it is taken then."""
        owner = {source.uuid: source.agent for source in self.sources()}
        gone: set[object] = set()
        for before, record in itertools.pairwise([None, *self.records()]):
            match record:
                case Call(op=op, detail=detail) if op in CANCELS:
                    if owner.get(str(detail["uuid"])) == record.agent:
                        gone.add(detail["uuid"])
                case Inbound(id=uuid):
                    assert uuid not in gone, "taken after it was cancelled"
                case Closed(id=uuid, reason="cancelled") if not self._has_ended_by(record):
                    assert isinstance(before, Call)
                    assert before.detail.get("uuid") == uuid
                    assert before.agent == record.agent
                case _:
                    pass

    def _has_ended_by(self, record: TraceEvent) -> bool:
        """Whether the agent of a record opens nothing any more: it has ended, or is told to."""
        at = next(at for at, each in enumerate(self.records()) if each is record)
        agent = getattr(record, "agent", None)
        return not any(isinstance(each, Opened) and each.agent == agent for each in self.records()[at:])

    def _check_last_words(self) -> None:
        for part in self.parts:
            mine = [record for record in self.records() if getattr(record, "agent", None) == part.name]
            taken = [record.event for record in mine if isinstance(record, Inbound)]
            assert "shutdown" not in taken[:-1], "something follows Shutdown"
            assert isinstance(mine[-1], AgentOutcome), "something follows its outcome"


@dataclass(frozen=True)
class Made:
    """A tool call that was made."""

    record: Call
    moment: float
    number: int
    """Of the step that it takes."""
    limit: float


@dataclass(frozen=True)
class Due:
    """Something that is to come."""

    when: float
    texts: tuple[str, ...]
    """One of them is in it."""


class Source:
    """A queued call or a subscription, as the trace tells of it."""

    def __init__(self, record: Opened, opened: float, call: Call, made: Made | None) -> None:
        self.agent = record.agent
        self.uuid = record.id
        self.is_call = record.source == "call_tool"
        self.opened = opened
        self.call = call
        self.made = made
        self.ended = math.inf
        self.reason: str | None = None
        self.taken: list[tuple[float, Inbound]] = []


def said(record: Inbound) -> str:
    """What is in an envelope, with the mark of the step that it came from."""
    return f"{record.payload} "


# -- the test --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Agents fail on purpose here, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=EXAMPLES * SOAK, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans)
def test_a_run_keeps_every_promise_and_is_the_same_each_time(plan: Plan) -> None:
    config = load_config(plan.config())
    run = Run(plan, config)
    trace = run.play()
    run.check()

    assert Run(plan, config).play() == trace, "one seed, two traces"


# -- calls that wait for nothing -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_sync_agent_that_asks_again_and_again_lets_others_go_on(seed: int) -> None:
    asked: list[str] = []

    def asks(host: toolpost.SyncHost) -> None:
        while "done" not in asked:
            host.try_recv()
            asked.append("asks")

    async def acts(host: toolpost.Host) -> None:
        for _ in range(5):
            await host.sleep(0)
        asked.append("done")

    config = load_config({"tooling": {"mcp": {"kind": "mock"}}})
    outcomes = toolpost.run(config, agents={"asks": asks, "acts": acts}, simulate=True, seed=seed)

    assert {str(outcome) for outcome in outcomes.values()} == {"completed"}


def test_what_a_sync_agent_asks_in_passing_is_done_in_debug_mode_too() -> None:
    def agent(host: toolpost.SyncHost) -> str:
        mcp = host.tooling.get("mcp")
        first = mcp.call_tool("echo")
        mcp.call_tool("echo")
        host.sleep(1)
        assert host.try_recv() is not None  # opens the gate that a task waits for
        assert not mcp.is_open(first)
        return getattr(host.recv().event, "value", "")

    steps = [{"name": "echo", "result": "1"}, {"name": "echo", "result": "2", "after": {"kind": "inbound"}}]
    config = load_config({"tooling": {"mcp": {"kind": "mock", "tool_calls": steps}}})
    with asyncio.Runner(loop_factory=SimulatedLoop, debug=True) as runner:
        report = runner.run(toolpost.run_async(config, agents={"agent": agent}))

    assert str(report.outcomes["agent"]) == "exited: 2"
