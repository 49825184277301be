"""Agents that are given as functions, run to their ends within a limit of real time.

Two ways: on the loop that runs already, where a timer ends those that are late; or on a loop of its own in
a thread, which a watchdog looks after. The second one also ends an agent that blocks its loop, and its time
may be simulated.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, wait

from toolpost.config import Config
from toolpost.errors import AgentStopped
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop
from toolpost.host.standing import own_part, shown, stack_of_thread
from toolpost.testing.report import Standing
from toolpost.testing.watchdog import Watchdog, break_thread
from toolpost.trace.log import Trace

INTERRUPTED_SECS = 5.0
"""How long agents may take to end after Ctrl-C."""


class TimedRun:
    """Agents on their way to their ends. Run once."""

    def __init__(
        self,
        config: Config,
        agents: Sequence[Agent],
        *,
        limit: float,
        seed: int | None = None,
        on_trace: Callable[[Trace], None],
    ) -> None:
        """`seed` is that of a simulated run; with None time is real."""
        self._config = config
        self._agents = agents
        self._limit = limit
        self._seed = seed
        self._on_trace = on_trace
        self._core: Core | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._why = ""
        """Why the agents were ended, in a few words."""
        self._standing: list[Standing] | None = None
        """Where they stood then; None while they were not."""
        self._ended: Future[dict[str, Outcome]] = Future()
        """Of a run in a thread."""
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._run,), name="toolpost agents", daemon=True
        )  # a daemon: an agent that nothing can end must not keep the process

    async def on_this_loop(self) -> dict[str, Outcome]:
        """The outcomes; where `lateness` says something, they are not the agents' own."""
        timer = asyncio.get_running_loop().call_later(self._limit, self._end_agents, self._is_late)
        try:
            return await self._live()
        finally:
            timer.cancel()

    def in_thread(self) -> dict[str, Outcome]:
        """As `on_this_loop`. This thread only waits, and may be interrupted."""
        try:
            self._thread.start()
            return self._ended.result()
        except KeyboardInterrupt:
            self._note("interrupted", [])  # where no agent has started yet, none will
            self._ask(lambda: None)
            wait([self._ended], INTERRUPTED_SECS)
            raise

    def lateness(self) -> str | None:
        """Why agents were ended that did not come to it themselves, and where they stood; None if all did."""
        if self._standing is None:
            return None
        lines = [self._why]
        for each in self._standing:
            waits = "".join(f", waiting in {wait}" for wait in each.waits)
            stack = each.stack.rstrip().splitlines()
            lines += [f"agent {each.agent!r}{waits}{', standing at' if stack else ''}", *stack]
        return "\n".join(lines)

    # -- on the loop -------------------------------------------------------------------------------

    async def _live(self) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        self._core = core = Core(self._config, trace=True, extras={})
        await core.open()
        try:
            assert core.trace is not None
            self._on_trace(core.trace)
            self._loop = asyncio.get_running_loop()
            if self._standing is None:
                outcomes = await core.run_agents(self._agents, asyncio.Event())
        finally:
            await core.close()
            self._break_left_behind(core)
        return outcomes

    def _break_left_behind(self, core: Core) -> None:
        """Threads that loop for ever would slow whatever comes next."""
        for run in core.left_behind:
            if run.thread is not None and run.thread.ident is not None:
                break_thread(run.thread.ident)

    @property
    def _is_late(self) -> str:
        return f"the agents did not end within {self._limit:g} s (timeout of toolpost_host)"

    def _end_agents(self, why: str) -> None:
        if self._core is None:
            return
        runs = self._core.runs
        self._note(why, [Standing(run.name, run.stack(), run.waits()) for run in runs])
        for run in runs:
            self._core.end_agent(run.name, Outcome("failed", why))

    def _note(self, why: str, standing: list[Standing]) -> None:
        """The first time counts: later ones come about by it."""
        if self._standing is None:
            self._why, self._standing = why, standing

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with (
                Watchdog(self._limit, ask=self._ask, on_silent=self._note_silent, on_stuck=self._give_up),
                asyncio.Runner(loop_factory=self._new_loop) as runner,
            ):
                self._settle(runner.run(self._live()))
        except AgentStopped:  # from the watchdog, while no agent's code ran
            self._give_up()
        except BaseException as error:
            self._settle(error)

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if self._seed is None:
            return asyncio.new_event_loop()
        loop = SimulatedLoop(self._seed)
        loop.on_stall = lambda: self._end_agents(
            f"deadlock at {loop.time():g} s of simulated time: nobody can go on"
        )
        return loop

    def _ask(self, heard: Callable[[], None]) -> None:
        """End the agents, by way of the loop."""

        def end() -> None:
            heard()
            self._end_agents(self._is_late)

        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(end)
        except RuntimeError:  # it has closed: the run is all but over
            heard()

    def _note_silent(self) -> int | None:
        """The loop does nothing: keep where the thread stands that holds it up; gives its number."""
        held = self._loop.turns.running if isinstance(self._loop, SimulatedLoop) else None
        thread = held or self._thread
        name = self._name_of_current() if held is None else held.name
        stack = shown(own_part(stack_of_thread(thread)))
        self._note(self._is_late, [Standing(name.removeprefix("agent "), stack, [])])
        return thread.ident

    def _name_of_current(self) -> str:
        task = None if self._loop is None else asyncio.current_task(self._loop)
        return "" if task is None else task.get_name()

    def _give_up(self) -> None:
        self._settle({})

    def _settle(self, end: dict[str, Outcome] | BaseException) -> None:
        try:
            if isinstance(end, BaseException):
                self._ended.set_exception(end)
            else:
                self._ended.set_result(end)
        except InvalidStateError:  # it was given up, and came to an end after all
            pass
