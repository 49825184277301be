"""Agents that run to their ends within a limit of real time, in real or in simulated time.

What a run comes to, and what is known while it lasts: `run_case` judges it, the fixtures hand it to a test.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from toolpost.config import Config
from toolpost.errors import AgentStopped
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop
from toolpost.host.standing import own_part, shown, stack_of_thread
from toolpost.testing.ended import Ended, Standing, Why
from toolpost.testing.watchdog import Watchdog, break_thread
from toolpost.trace.log import Trace

BREAKING_SECS = 1.0
"""How long a thread that was left behind may take to end by the exception that is raised in it."""

Around = Callable[[Core], AbstractContextManager[object]]


class Watched:
    """One run on its way. Run once."""

    def __init__(
        self,
        config: Config,
        *,
        limit: float,
        seed: int | None,
        around: Around = lambda _core: nullcontext(),
    ) -> None:
        """Nothing runs yet.

        Args:
            config: With the toolings; a house of its own is opened on it.
            limit: Seconds of real time.
            seed: That of a simulated run; with None time is real.
            around: Entered when the house is open, before the first agent starts, and left after the last.
        """
        self._config = config
        self._limit = limit
        self._seed = seed
        self._around = around
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.core: Core | None = None
        """The house, once it is open."""
        self.outcomes: dict[str, Outcome] = {}
        """Of all agents, once the last one has ended."""
        self.ended: Ended | None = None
        """Why the agents were ended; None while they were not."""

    @property
    def trace(self) -> Trace:
        """What has been recorded so far."""
        core_trace = None if self.core is None else self.core.trace
        return Trace() if core_trace is None else core_trace

    @property
    def simulated_secs(self) -> float | None:
        """How long it has run in simulated time; None where time is real."""
        return self._loop.time() if isinstance(self._loop, SimulatedLoop) else None

    # -- running -----------------------------------------------------------------------------------

    def run(
        self, load: Callable[[], Sequence[Agent]], *, on_stuck: Callable[[], None] = lambda: None
    ) -> None:
        """Load the agents and run them, on a loop of its own. This thread is blocked, and watched.

        It may be left by what `load` raises.

        Args:
            load: Gives the agents.
            on_stuck: Called in another thread once it is certain that this one will never come back.
        """
        self._thread = threading.current_thread()
        watchdog = Watchdog(self._limit, ask=self._time_out, on_silent=self._note_silent, on_stuck=on_stuck)
        try:
            with watchdog:
                agents = load()
                with asyncio.Runner(loop_factory=self._new_loop) as runner:
                    runner.run(self._live(agents))
        except AgentStopped:  # from the watchdog, while this thread was in nobody's code but ours
            pass

    async def run_here(self, agents: Sequence[Agent]) -> None:
        """Run agents on the loop that runs already, where nothing can end one that blocks it."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._limit, self._end, loop, "time-out")
        try:
            await self._live(agents)
        finally:
            timer.cancel()

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if self._seed is None:
            return asyncio.new_event_loop()
        loop = SimulatedLoop(self._seed)
        loop.on_stall = lambda: self._end(loop, "deadlock")
        return loop

    async def _live(self, agents: Sequence[Agent]) -> None:
        core = Core(self._config, trace=True, extras={})
        await core.open()
        self.core, self._loop = core, asyncio.get_running_loop()
        try:
            with self._around(core):
                if self.ended is None:
                    self.outcomes = await core.run_agents(agents, asyncio.Event())
        except asyncio.CancelledError:  # by Ctrl-C: whoever runs tests waits for no agent's grace
            core.hurry()
            raise
        finally:
            await core.close()

    # -- ending ------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """From any thread: end the agents; where none has started yet, none will."""
        self.ended = self.ended or Ended("interrupt", 0.0, self._limit, [], len(self.trace))
        self._time_out(lambda: None)

    def break_left_behind(self) -> bool:
        """Break the threads that agents have left behind; tells whether some are still there."""
        left = [] if self.core is None else self.core.left_behind
        threads = [run.thread for run in left if run.thread is not None]
        for thread in threads:
            if thread.ident is not None:
                break_thread(thread.ident)
        deadline = time.monotonic() + BREAKING_SECS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return any(thread.is_alive() for thread in threads)

    def _time_out(self, heard: Callable[[], None]) -> None:
        """In another thread: end the agents, by way of the loop."""
        loop = self._loop
        if loop is None:
            return

        def end() -> None:
            heard()
            self._end(loop, "time-out")

        try:
            loop.call_soon_threadsafe(end)
        except RuntimeError:  # it has closed: the run is all but over
            heard()
        # Only now, when the loop has something to do once it goes on: else it would find a deadlock.
        if isinstance(loop, SimulatedLoop):
            loop.turns.interrupt()

    def _end(self, loop: asyncio.AbstractEventLoop, why: Why) -> None:
        """On the loop: note where the agents stand, and end them."""
        if self.core is None:
            return
        runs = self.core.runs
        self._note(why, loop.time(), [Standing(run.name, run.stack(), run.waits()) for run in runs])
        for run in runs:
            self.core.end_agent(run.name, Outcome("failed", str(self.ended)))

    def _note_silent(self) -> int | None:
        """In the watchdog's thread: note where the thread stands that holds all up; gives its number."""
        held = self._loop.turns.running if isinstance(self._loop, SimulatedLoop) else None
        thread = held or self._thread
        assert thread is not None, "it runs"
        name = self._name_of_current() if held is None else held.name.removeprefix("agent ")
        now = self._loop.time() if self._loop is not None else 0.0
        self._note("time-out", now, [Standing(name, shown(own_part(stack_of_thread(thread))))])
        return thread.ident

    def _note(self, why: Why, now: float, standing: list[Standing]) -> None:
        """The first time counts: what comes later comes about by it."""
        if self.ended is None:
            here = f'File "{Path.cwd()}{os.sep}'  # paths are shown as they are from the current folder
            from_here = [
                Standing(each.agent, each.stack.replace(here, 'File "'), each.waits) for each in standing
            ]
            self.ended = Ended(why, now, self._limit, from_here, len(self.trace))

    def _name_of_current(self) -> str | None:
        """The agent whose task the loop runs; None is none, as while agents are loaded."""
        task = None if self._loop is None else asyncio.current_task(self._loop)
        name = "" if task is None else task.get_name()
        return name.removeprefix("agent ") if name.startswith("agent ") else None
