"""The running house: it owns the toolings, the agents' contexts and every task.

It lives in one task of its own, so a host can be opened and closed from any task, in any order. Inside,
everything has a parent:

    house ─┬─ background work of the backends (connections)
           └─ one seat per agent ── the pumps of its sources, the hops of its threads

Closing goes the same way back: agents first, then backends, then whatever is left is cancelled. Each wait on
the way is bounded: code of others that does not even end when it is cancelled is reported and left behind.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from toolpost.config import Config, ToolingConfig
from toolpost.errors import ConfigError, HostClosed, ToolpostError, UnknownTooling, UsageError
from toolpost.host.agents import NO_OUTCOME, Agent, AgentRun, Outcome
from toolpost.host.bridge import Bridge, Landing
from toolpost.host.cancelling import Tasks, end_tasks, is_cancelled
from toolpost.host.context import MAIN, AgentContext
from toolpost.host.face import Host
from toolpost.host.handle import Tooling
from toolpost.host.inbox import Inbox
from toolpost.host.order import ACTOR
from toolpost.host.simulation import EPOCH, SimulatedLoop
from toolpost.host.standing import shown, stack_of_task
from toolpost.host.sync import SyncHost
from toolpost.model import JsonObject
from toolpost.secret import get_logger
from toolpost.tooling.port import Backend, Describes, Progress, Site
from toolpost.trace.events import AgentOutcome, State
from toolpost.trace.log import Trace

BACKEND_CLOSE_SECS = 15.0
"""How long a backend may take to end; what is left then is cancelled."""
CANCEL_SECS = 5.0
"""How long what was cancelled may take to end; what is left then is left behind."""

_log = get_logger("toolpost.host")


class Seat:
    """An agent's place in the house while it runs."""

    def __init__(self, context: AgentContext, bridge: Bridge, find: Callable[[str], Tooling]) -> None:
        self.context = context
        self.bridge = bridge
        self.find = find


class Core:
    """One house. Opened once, closed once."""

    def __init__(
        self,
        config: Config,
        *,
        trace: bool,
        extras: Mapping[str, Any],
        on_state: Callable[[State], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """`on_state` and `on_progress` are for a program that shows people what goes on; see `Site`."""
        if unknown := [name for name in extras if name not in config.tooling]:
            known = ", ".join(map(repr, sorted(config.tooling))) or "none"
            raise UsageError(
                f"handlers for {unknown[0]!r}: {config.label} has no such tooling; it has: {known}"
            )
        self.config = config
        self.trace = Trace() if trace else None
        self._extras = extras
        self._on_state = on_state
        self._on_progress = on_progress
        self._backends: dict[str, Backend] = {}
        self._background = Tasks("a tooling")
        self._runs: dict[AgentRun, None] = {}
        self.left_behind: list[AgentRun] = []
        """The agents that did not end: their threads still run."""
        self.starved: list[tuple[str, float, float]] = []
        """Each `recv` of an agent that timed out: whose, when by the loop's clock, and its limit."""
        self._seats: dict[anyio.Event, None] = {}
        """Each is set when an agent has left its seat."""
        self._closing = asyncio.Event()
        self._landing: Landing
        self._accepts_tasks = False
        self._epoch = 0.0
        self._simulation: SimulatedLoop | None = None
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._tasks: TaskGroup | None = None

    # -- open and close --------------------------------------------------------------------------

    async def open(self) -> None:
        """Build the toolings and start the house. Connects to nothing.

        Raises:
            ConfigError: A tooling could not be built.
            UsageError: This house was opened before.
        """
        if self._task is not None:
            raise UsageError("this host was opened already; call open_host again for another one")
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        self._simulation = loop if isinstance(loop, SimulatedLoop) else None
        if self._simulation is not None and self.trace is not None:
            note_progress = self._simulation.note_progress
            self.trace.tap(lambda _: note_progress())
        self._landing = Landing(loop)
        self._epoch = (time.time() if self._simulation is None else EPOCH) - loop.time()
        self._task = asyncio.create_task(self._live(ready), name="toolpost house")
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self.close()
            raise
        if not ready.done() or ready.exception() is not None:
            await self.close()
            ready.result()

    async def close(self) -> None:
        """End agents, toolings and every task; returns when nothing is left. From any task."""
        task = self._task
        if task is None:
            return
        self._closing.set()
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                with anyio.CancelScope(shield=True):  # a cancelled scope would cancel each wait anew
                    await asyncio.wait({task})
            except asyncio.CancelledError as error:  # every wait inside is bounded: finish, then obey
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if not task.cancelled():
            task.result()

    def hurry(self) -> None:
        """Grant no more grace to agents that are shut down."""
        self._hurry.set()

    async def _live(self, ready: asyncio.Future[None]) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._accepts_tasks = True
            try:
                if self._is_built(ready):
                    await self._closing.wait()
            finally:
                self._closing.set()  # the house may have been cancelled: `asyncio.run` does so at its end
                with anyio.CancelScope(shield=True):
                    await self._close_all()
                if self.trace is not None:
                    self.trace.end()
                tasks.cancel_scope.cancel()

    async def _close_all(self) -> None:
        cancelled: asyncio.CancelledError | None = None
        for step in (self._end_agents, self._clear_seats, self._close_backends, self._end_background):
            try:
                await step()
            except asyncio.CancelledError as error:  # the loop is torn down: only this step ends here
                cancelled = error
                for run in tuple(self._runs):
                    run.abandon()
        if cancelled is not None:
            raise cancelled

    def _is_built(self, ready: asyncio.Future[None]) -> bool:
        try:
            self._build_backends()
        except BaseException as error:  # told to who opens, as it is: a task group would wrap it
            if not ready.done():
                ready.set_exception(error)
            return False
        if not ready.done():
            ready.set_result(None)
        return True

    def _build_backends(self) -> None:
        failures: dict[str, Exception] = {}
        for name, tooling in self.config.tooling.items():
            try:
                self._backends[name] = tooling.kind.factory(tooling.params, self._site(tooling))
            except Exception as error:
                failures[name] = error
        causes = tuple(failures.values())
        if (
            len(causes) == 1
            and isinstance(causes[0], ToolpostError)
            and not isinstance(causes[0], ConfigError)
        ):
            raise causes[0]
        if causes:
            problems = [line for name, error in failures.items() for line in self._unbuilt(name, error)]
            raise ConfigError(problems) from causes[0]

    def _unbuilt(self, name: str, error: Exception) -> list[str]:
        """Why a tooling could not be built, as lines of a `ConfigError`."""
        if isinstance(error, ConfigError):
            return [f"{self.config.label}: {problem}" for problem in error.problems]
        kind = self.config.tooling[name].kind.name
        why = str(error) if isinstance(error, ToolpostError) else f"{type(error).__name__}: {error}"
        return [f"{self.config.label}: tooling.{name}: kind {kind!r} could not be built: {why}"]

    def _site(self, tooling: ToolingConfig) -> Site:
        def on_state(state: str) -> None:
            event = State(tooling=tooling.name, state=state)
            if self.trace is not None:
                self.trace.append(event)
            if self._on_state is not None:
                self._on_state(event)

        return Site(
            name=tooling.name,
            start_task=self._start_task,
            on_state=on_state,
            tunables=self.config.tunables,
            trace=self.trace,
            on_progress=self._on_progress,
            extras=self._extras.get(tooling.name),
        )

    def _start_task(self, func: Callable[..., Coroutine[Any, Any, object]], /, *args: object) -> None:
        async def contained() -> None:
            try:
                await func(*args)
            except (Exception, asyncio.CancelledError):  # one tooling's fault must not end the house
                if is_cancelled():
                    raise
                _log.exception("a background task of a tooling raised")

        if not self._accepts_tasks:
            raise HostClosed("the host is closed; open another one")
        self._background.start_soon(contained)

    async def _end_agents(self) -> None:
        async with anyio.create_task_group() as ends:
            for run in tuple(self._runs):
                ends.start_soon(run.end, self._hurry)

    async def _close_backends(self) -> None:
        self._accepts_tasks = False

        async def close(name: str, backend: Backend) -> None:
            async def contained() -> None:
                try:
                    await backend.aclose()
                except (Exception, asyncio.CancelledError):
                    if is_cancelled():
                        raise
                    _log.exception("tooling %r raised while it closed", name)

            closing = asyncio.create_task(contained())
            await asyncio.wait({closing}, timeout=BACKEND_CLOSE_SECS)
            if closing.done():
                return
            where = shown(stack_of_task(closing))
            _log.warning(
                "tooling %r did not close within %g s; it stands at\n%s", name, BACKEND_CLOSE_SECS, where
            )
            if await end_tasks({closing}, CANCEL_SECS):
                _log.error("tooling %r swallows its cancellation, and its closing is left behind", name)

        async with anyio.create_task_group() as closes:
            for name, backend in self._backends.items():
                closes.start_soon(close, name, backend)

    async def _clear_seats(self) -> None:
        for has_left in tuple(self._seats):
            await has_left.wait()

    async def _end_background(self) -> None:
        await self._background.close(CANCEL_SECS)

    async def describe(self, name: str) -> JsonObject | None:
        """What the server of a tooling says of itself; None for a kind without one. Connects."""
        backend = self._backends[name]
        return await backend.describe() if isinstance(backend, Describes) else None

    def backend(self, name: str) -> Backend:
        """The backend of a tooling, to look into; also once the house is closed.

        Raises:
            UnknownTooling: The config has none of that name.
        """
        if name not in self._backends:
            raise UnknownTooling(name, self._backends)
        return self._backends[name]

    def now(self) -> float:
        """Seconds since the epoch by the loop's clock, which never goes back."""
        return self._epoch + asyncio.get_running_loop().time()

    # -- agents ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def seat(
        self,
        name: str,
        *,
        params: JsonObject | None = None,
        granted: Iterable[str] | None = None,
        is_program: bool = False,
    ) -> AsyncGenerator[Seat]:
        """A place for an agent. Leaving it cancels the agent's sources, on the wire too."""
        toolings = frozenset(self._backends if granted is None else granted)
        tunables = self.config.tunables
        tasks = Tasks(f"agent {name!r}")
        inbox = Inbox(
            agent=name,
            bound=tunables.inbox_bound,
            calls_bound=tunables.open_calls_bound,
            trace=self.trace,
            new_id=_new_id if self._simulation is None else self._simulation.new_id,
        )
        context = AgentContext(
            name,
            inbox=inbox,
            tasks=tasks,
            trace=self.trace,
            params=params or {},
            recv_timeout=tunables.recv_timeout_secs,
            now=self.now,
            is_program=is_program,
        )

        def find(tooling: str) -> Tooling:
            if tooling not in toolings:
                raise UnknownTooling(tooling, toolings)
            return Tooling(context, tooling, self._backends[tooling])

        bridge = Bridge(
            asyncio.get_running_loop(), tasks, context.ending, lambda: context.is_stopped, self._landing
        )
        has_left = anyio.Event()
        self._seats[has_left] = None
        try:
            yield Seat(context, bridge, find)
        finally:
            context.end()
            bridge.close()
            try:
                with anyio.CancelScope(shield=True):
                    await tasks.close(CANCEL_SECS)
            finally:
                self._seats.pop(has_left, None)
                has_left.set()

    async def open_main(self) -> Seat:
        """The seat of a program that is its own agent; kept until the house closes."""
        assert self._tasks is not None, "the house is open"
        return await self._tasks.start(self._hold_main)

    async def _hold_main(self, *, task_status: TaskStatus[Seat]) -> None:
        async with self.seat(MAIN, is_program=True) as seat:
            task_status.started(seat)
            await self._closing.wait()

    async def run_agents(self, agents: Sequence[Agent], stop: asyncio.Event) -> dict[str, Outcome]:
        """Run agents side by side to their ends. Once `stop` is set, they are shut down.

        They belong to the house: where the caller is cancelled, closing it ends them.
        """
        assert self._tasks is not None, "the house is open"
        outcomes: dict[str, Outcome] = {}
        ended = asyncio.Event()

        async def run_all() -> None:
            try:
                async with anyio.create_task_group() as watch:
                    async with anyio.create_task_group() as all_agents:
                        for agent in (
                            agents if self._simulation is None else self._simulation.shuffled(agents)
                        ):
                            all_agents.start_soon(self._run_agent, agent, outcomes)
                        watch.start_soon(self._end_on, stop)  # after them: it ends those that have begun
                    watch.cancel_scope.cancel()
            finally:
                ended.set()

        self._tasks.start_soon(run_all)
        await ended.wait()
        return {agent.name: outcomes.get(agent.name, NO_OUTCOME) for agent in agents}

    @property
    def runs(self) -> list[AgentRun]:
        """The agents that run now."""
        return list(self._runs)

    def end_agent(self, name: str, verdict: Outcome) -> None:
        """End an agent without `Shutdown` and grace; this is its outcome, whatever it does. Does not wait."""
        assert self._tasks is not None, "the house is open"
        for run in self._runs:
            if run.name == name:
                run.decide(verdict)
                self._tasks.start_soon(run.see_off)

    async def _end_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        await self._end_agents()

    async def _run_agent(self, agent: Agent, outcomes: dict[str, Outcome]) -> None:
        ACTOR.set((agent.name,))
        config = self.config.agents.get(agent.name)
        params = config.params if config is not None else None
        granted = config.toolings if config is not None else None
        async with self.seat(agent.name, params=params, granted=granted) as seat:
            run = AgentRun(agent, seat.context)
            self._runs[run] = None
            try:
                host = Host(seat.context, seat.find)
                outcome = await run.run(host, SyncHost(host, seat.bridge), seat.bridge)
            finally:
                self._runs.pop(run, None)
                if run.is_left_behind:
                    self.left_behind.append(run)
                self.starved += [(agent.name, *each) for each in seat.context.starved]
        outcomes[agent.name] = outcome
        if self.trace is not None:
            self.trace.append(AgentOutcome(agent=agent.name, outcome=outcome.to_json()))


def _new_id() -> str:
    """A random UUID, as text at once: each queued call has one, and an object of `uuid` costs more."""
    octets = bytearray(os.urandom(16))
    octets[6] = octets[6] & 0x0F | 0x40  # version 4: RFC 9562, 5.4
    octets[8] = octets[8] & 0x3F | 0x80
    digits = octets.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
