"""One case, run in this process: its agents on its toolings, watched, and then judged.

The thread that calls `run_case` runs the event loop. An agent that is expected to be `asserted` is stopped as
soon as its list of events is settled; the watchdog ends a case that takes too long. What cannot be ended is
told of (`Result.is_stuck`), since only the end of the process ends it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from toolpost.errors import AgentStopped, ConfigError, ToolpostError
from toolpost.expect.assertions import Expectations
from toolpost.host.agents import ASSERTED, Agent, Outcome, load_agents
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop
from toolpost.host.standing import own_part, shown, stack_of_thread
from toolpost.mock.backend import MockBackend
from toolpost.testing.case import Case
from toolpost.testing.modules import Imports, own_imports
from toolpost.testing.report import Ended, Findings, Standing, Why, judge
from toolpost.testing.result import Result
from toolpost.testing.watchdog import Watchdog, break_thread
from toolpost.trace.events import TraceEvent
from toolpost.trace.log import Trace

BREAKING_SECS = 1.0
"""How long a thread that was left behind may take to end by the exception that is raised in it."""

OnStuck = Callable[[Result, Trace], None]


def run_case(case: Case, *, seed: int | None = None, on_stuck: OnStuck | None = None) -> tuple[Result, Trace]:
    """Run a case to its result. Raises for nothing that the case does.

    It blocks this thread, in which no event loop may run.

    Args:
        case: What to run.
        seed: Of a simulated run; None is the case's own.
        on_stuck: Called in another thread once it is certain that this one will never come back, with what
            is known by then. It can write that down and end the process.
    """
    run = _Run(case, case.settings.seed if seed is None else seed)
    with own_imports(case.config.import_path) as imports:

        def tell_stuck() -> None:
            if on_stuck is not None:
                on_stuck(run.result(imports, is_stuck=True), run.trace)

        try:
            with Watchdog(
                case.settings.timeout_secs, ask=run.time_out, on_silent=run.note_silent, on_stuck=tell_stuck
            ):
                run.run()
        except AgentStopped:  # from the watchdog, while this thread was in nobody's code but ours
            pass
        return run.result(imports, is_stuck=run.break_left_behind()), run.trace


class _Run:
    """One case on its way."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._seed = seed
        self._core: Core | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        self._started = time.monotonic()
        self._outcomes: dict[str, Outcome] = {}
        self._ended: Ended | None = None
        """Why the agents were ended before they came to it themselves."""
        self._error: ConfigError | None = None
        self._fault: str | None = None
        """What ended the run, where that was no agent."""

    @property
    def trace(self) -> Trace:
        """What has been recorded so far."""
        core_trace = None if self._core is None else self._core.trace
        return Trace() if core_trace is None else core_trace

    def run(self) -> None:
        """In the thread of `run_case`."""
        try:
            agents = load_agents(self._case.config)
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                runner.run(self._live(agents))
        except ConfigError as error:
            self._error = error
        except ToolpostError as error:
            self._fault = str(error)
        except Exception as error:
            self._fault = "".join(traceback.format_exception(error))

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        if not self._case.is_simulated:
            return asyncio.new_event_loop()
        loop = SimulatedLoop(self._seed)
        loop.on_stall = lambda: self._end_agents(loop, "deadlock")
        return loop

    async def _live(self, agents: Sequence[Agent]) -> None:
        self._core = core = Core(self._case.config, trace=True, extras={})
        self._loop = asyncio.get_running_loop()
        await core.open()
        try:
            with self._settling(core):
                if self._ended is None:
                    self._outcomes = await core.run_agents(agents, asyncio.Event())
        except asyncio.CancelledError:  # by Ctrl-C: whoever runs tests waits for no agent's grace
            core.hurry()
            raise
        finally:
            await core.close()

    # -- agents that are asserted ------------------------------------------------------------------

    @contextmanager
    def _settling(self, core: Core) -> Generator[None]:
        """Stop each agent that is to be asserted once its events are settled."""
        asserted = [
            each
            for each in self._case.expectations
            if each.outcome is not None and each.outcome.kind == "asserted"
        ]
        detach = [self._settle(core, each) for each in asserted]
        try:
            yield
        finally:
            for each in detach:
                each()

    def _settle(self, core: Core, expected: Expectations) -> Callable[[], None]:
        cursor, loop = expected.follow(), asyncio.get_running_loop()
        assert core.trace is not None

        def see(record: TraceEvent) -> None:
            if expected.concerns(record) and cursor.take(record) and cursor.unmet is None:
                detach()
                # behind the call that is under way, and before any other that the agent can make
                loop.call_soon(core.end_agent, expected.agent, ASSERTED)

        detach = core.trace.tap(see)
        return detach

    # -- time that is up ---------------------------------------------------------------------------

    def time_out(self, heard: Callable[[], None]) -> None:
        """In the watchdog's thread: end the agents, by way of the loop."""
        loop = self._loop

        def end() -> None:
            heard()
            assert loop is not None
            self._end_agents(loop, "time-out")

        if loop is None:
            return
        if isinstance(loop, SimulatedLoop):
            loop.turns.interrupt()
        try:
            loop.call_soon_threadsafe(end)
        except RuntimeError:  # it has closed: the run is all but over
            heard()

    def _end_agents(self, loop: asyncio.AbstractEventLoop, why: Why) -> None:
        assert self._core is not None
        runs = self._core.runs
        if self._ended is None:  # else it was looked up while this thread heard nothing
            standing = [Standing(run.name, _from_here(run.stack()), run.waits()) for run in runs]
            self._ended = Ended(why, loop.time(), standing, len(self.trace))
        for run in runs:
            self._core.end_agent(run.name, Outcome("failed", self._ended.short(self._case)))

    def note_silent(self) -> int | None:
        """In the watchdog's thread: keep where the thread stands that holds all up; gives its number."""
        held = self._loop.turns.running if isinstance(self._loop, SimulatedLoop) else None
        thread = held or self._thread
        if self._ended is None:
            name = self._name_of_current() if held is None else held.name.removeprefix("agent ")
            stack = _from_here(shown(own_part(stack_of_thread(thread))))
            now = self._loop.time() if self._loop is not None else 0.0
            self._ended = Ended("time-out", now, [Standing(name, stack, [])], len(self.trace))
        return thread.ident

    def _name_of_current(self) -> str | None:
        """The agent whose task the loop runs; None is none, as while agents are loaded."""
        task = None if self._loop is None else asyncio.current_task(self._loop)
        name = "" if task is None else task.get_name()
        return name.removeprefix("agent ") if name.startswith("agent ") else None

    def break_left_behind(self) -> bool:
        """Break the threads that agents have left behind; tells whether some are still there."""
        left = [] if self._core is None else self._core.left_behind
        threads = [run.thread for run in left if run.thread is not None]
        for thread in threads:
            if thread.ident is not None:
                break_thread(thread.ident)
        deadline = time.monotonic() + BREAKING_SECS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return any(thread.is_alive() for thread in threads)

    def _mocks(self) -> dict[str, MockBackend]:
        core = self._core
        if core is None or self._error is not None:
            return {}
        backends = {name: core.backend(name) for name in self._case.config.tooling}
        return {name: each for name, each in backends.items() if isinstance(each, MockBackend)}

    # -- the end -----------------------------------------------------------------------------------

    def result(self, imports: Imports, *, is_stuck: bool) -> Result:
        """What came of it, or has so far."""
        files = sorted({str(each) for each in (*self._case.files, *imports.modules().values())})
        return judge(
            self._case,
            Findings(
                outcomes=self._outcomes,
                trace=self.trace,
                mocks=self._mocks(),
                ended=self._ended,
                starved=[] if self._core is None else self._core.starved,
                error=self._error,
                fault=self._fault,
                seconds=time.monotonic() - self._started,
                simulated_secs=self._loop.time() if isinstance(self._loop, SimulatedLoop) else None,
                seed=self._seed,
                files=files,
                is_stuck=is_stuck,
            ),
        )


def _from_here(stack: str) -> str:
    """A stack with the paths of files as they are from the current folder."""
    return stack.replace(f'File "{Path.cwd()}{os.sep}', 'File "')
