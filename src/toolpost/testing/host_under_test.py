"""A host as a test uses it: it runs agents, or the test opens it and is the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias, overload

from toolpost.config import Config
from toolpost.errors import UsageError
from toolpost.host.agents import Agent, Outcome, load_agents
from toolpost.host.host import AgentFunction, OpenHost, Opening, SyncOpenHost, open_host, open_host_sync
from toolpost.testing.timed import TimedRun
from toolpost.trace.log import Trace

AGENT = "agent"
"""What an agent is called that is given without a name."""


Clock: TypeAlias = Literal["auto", "virtual", "real"]
"""As `[test] clock` of a test file."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How a host runs agents in time."""

    timeout: float
    """Seconds of real time that they may take."""
    clock: Clock
    seed: int

    def seed_for(self, config: Config) -> int | None:
        """That of a simulated run; None where time is real."""
        if self.clock == "virtual" and config.real_toolings:
            names = ", ".join(map(repr, config.real_toolings))
            raise UsageError(f'clock="virtual" cannot be: these toolings are real: {names}')
        return None if self.clock == "real" or config.real_toolings else self.seed


class HostUnderTest:
    """A host of a test. It runs agents, or the test opens it and is the agent.

    The config is read anew each time, and so each run has toolings of its own, with their scripts from the
    beginning. A mock may be scripted until then.
    """

    def __init__(
        self, config: Callable[[], Config], *, pace: Pace, on_trace: Callable[[Trace], None]
    ) -> None:
        self._config = config
        self._pace = pace
        self._tell_trace = on_trace
        self._trace: Trace | None = None
        self._opened: AbstractContextManager[SyncOpenHost] | None = None
        self._opening: Opening | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def trace(self) -> Trace:
        """The record of its latest run.

        Raises:
            UsageError: It has not run yet.
        """
        if self._trace is None:
            raise UsageError("there is no trace yet: this host has neither run nor been opened")
        return self._trace

    # -- agents ------------------------------------------------------------------------------------

    @overload
    def run(self, agent: AgentFunction, /) -> Outcome: ...
    @overload
    def run(self, /, **agents: AgentFunction) -> dict[str, Outcome]: ...
    def run(self, agent: AgentFunction | None = None, /, **agents: AgentFunction) -> Any:
        """Run agents to their ends.

        Where every tooling is a mock, time is simulated: no wait takes real time, the same agents give the
        same trace, and those that can never go on are ended at once. They run on an event loop in a thread of
        its own. So an agent that blocks it is ended as well when the time is up, unless it waits outside
        Python; then its thread is left behind.

        Args:
            agent: The only agent, `def run(host)` or `async def run(host)`. It is named `agent`.
            agents: Several by name, or one that needs its name: where the config has a table of that name,
                it gets the `params` and `toolings` of it. Without any, the config's own agents run.

        Returns:
            The outcome of the only agent, or those of all by name.

        Raises:
            AssertionError: They could never go on, or did not end within `timeout` of the host; says where
                they stood.
            ConfigError: The config cannot be used, or an agent's script has no `run`.
            UsageError: There is no agent, or an event loop runs in this thread: await `run_async` there.
        """
        __tracebackhide__ = True
        if _running_loop() is not None:
            raise UsageError("run starts an event loop, and one runs in this thread: await run_async instead")
        timed = self._timed(_crew(agent, agents))
        outcomes = timed.in_thread()
        if (late := timed.lateness()) is not None:
            raise AssertionError(late)
        return outcomes if agent is None else outcomes[AGENT]

    @overload
    async def run_async(self, agent: AgentFunction, /) -> Outcome: ...
    @overload
    async def run_async(self, /, **agents: AgentFunction) -> dict[str, Outcome]: ...
    async def run_async(self, agent: AgentFunction | None = None, /, **agents: AgentFunction) -> Any:
        """Run agents as `run` does, while the loop of the test goes on.

        Where time is simulated they have a loop of their own, in another thread. Where it is real they run on
        the loop of the test: so they may share what belongs to it, and none is ended that blocks it.
        """
        __tracebackhide__ = True
        if _running_loop() is None:
            raise UsageError("toolpost runs on asyncio, and this test runs on another event loop")
        timed = self._timed(_crew(agent, agents))
        outcomes = await (timed.aside() if timed.is_simulated else timed.on_this_loop())
        if (late := timed.lateness()) is not None:
            raise AssertionError(late)
        return outcomes if agent is None else outcomes[AGENT]

    def _timed(self, agents: dict[str, AgentFunction]) -> TimedRun:
        config = self._config()
        crew = [Agent(name, function) for name, function in agents.items()] or load_agents(config)
        if not crew:
            raise UsageError(f"{config.label} has no agents to run: give a function, as in host.run(agent)")
        seed = self._pace.seed_for(config)
        return TimedRun(config, crew, limit=self._pace.timeout, seed=seed, on_trace=self._see)

    # -- the test as the agent ---------------------------------------------------------------------

    def __enter__(self) -> SyncOpenHost:
        self._refuse_second()
        opened = open_host_sync(self._config())
        host = opened.__enter__()
        self._opened = opened
        self._see(host.trace)
        return host

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.__exit__(kind, error, trace)

    async def __aenter__(self) -> OpenHost:
        self._refuse_second()
        opening = open_host(self._config())
        host = await opening.__aenter__()
        self._opening, self._loop = opening, asyncio.get_running_loop()
        self._see(host.trace)
        return host

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            await opening.__aexit__(kind, error, trace)

    def close(self) -> None:
        """Close it if it is still open. Its loop, if it has one, must be at rest, as it is between tests."""
        self.__exit__(None, None, None)
        if self._opening is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.run_until_complete(self.__aexit__(None, None, None))

    def _refuse_second(self) -> None:
        if self._opened is not None or self._opening is not None:
            raise UsageError("this host is open already; make another one by toolpost_host")

    def _see(self, trace: Trace) -> None:
        self._trace = trace
        self._tell_trace(trace)


def _crew(agent: AgentFunction | None, named: dict[str, AgentFunction]) -> dict[str, AgentFunction]:
    if agent is not None and named:
        raise UsageError("give one agent, or several by name: host.run(alice=alice, bob=bob)")
    agents = named if agent is None else {AGENT: agent}
    for name, function in agents.items():
        if not callable(function):
            raise UsageError(
                f"agent {name!r} must be a function, `def run(host)` or `async def run(host)`,"
                f" not {function!r}"
            )
    return agents


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
