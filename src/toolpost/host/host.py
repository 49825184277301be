"""The library's way in: open a host from a program, or run agents to their ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias, TypeVar

from toolpost.config import Config, load_config
from toolpost.errors import UsageError
from toolpost.host.agents import Agent, AgentFunction, Outcome, load_agent
from toolpost.host.bridge import Bridge
from toolpost.host.core import Core, Seat
from toolpost.host.face import Host
from toolpost.host.sync import SyncHost
from toolpost.model import Json
from toolpost.trace.log import Trace

ConfigSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Json] | Config | None
"""A path, a mapping shaped like the TOML, a loaded `Config`; None is `toolpost.toml` in this folder."""

T = TypeVar("T")


def as_config(source: ConfigSource) -> Config:
    """The configuration of a source, loaded where it is not yet.

    Raises:
        ConfigError: It cannot be used; holds every problem.
    """
    return source if isinstance(source, Config) else load_config(source)


# -- a program as its own agent --------------------------------------------------------------------


class OpenHost(Host):
    """A host that a program has opened: it is its own agent, `main`."""

    def __init__(self, core: Core, seat: Seat) -> None:
        super().__init__(seat.context, seat.find)
        self._core = core
        self.bridge = seat.bridge

    @property
    def trace(self) -> Trace:
        """The record of this run.

        Raises:
            UsageError: The host was opened with `trace=False`.
        """
        if self._core.trace is None:
            raise UsageError("this host has no trace: it was opened with trace=False")
        return self._core.trace


class SyncOpenHost(SyncHost):
    """A host that a program without an event loop has opened. See `OpenHost`."""

    def __init__(self, host: OpenHost, bridge: Bridge) -> None:
        super().__init__(host, bridge)

    @property
    def trace(self) -> Trace:
        """The record of this run."""
        return self.behind.trace


class Opening:
    """What `open_host` gives: a host once it is entered."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __aenter__(self) -> OpenHost:
        await self._core.open()
        try:
            return OpenHost(self._core, await self._core.open_main())
        except BaseException:
            await self._core.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._core.close()


def open_host(
    config: ConfigSource = None, *, handlers: Mapping[str, Any] | None = None, trace: bool = True
) -> Opening:
    """Open a host for an async program: `async with open_host("toolpost.toml") as host`.

    The config is read here and nothing is connected: a tooling connects when it is first used. Leaving the
    block, from whichever task, ends subscriptions, calls, connections and server processes.

    Args:
        config: A path, a mapping shaped like the TOML, or a `Config`; None is `toolpost.toml`.
        handlers: By tooling, what answers the server's own requests (kind `mcp`: `Handlers`).
        trace: Whether to keep a record of the run.

    Raises:
        ConfigError: The config cannot be used.
        UnknownTooling: `handlers` names a tooling that the config does not have.
    """
    return Opening(Core(as_config(config), trace=trace, extras=handlers or {}))


@contextmanager
def open_host_sync(
    config: ConfigSource = None, *, handlers: Mapping[str, Any] | None = None, trace: bool = True
) -> Generator[SyncOpenHost]:
    """Open a host for a program without an event loop: `with open_host_sync("toolpost.toml") as host`.

    The house runs in a thread of its own. Arguments and errors are those of `open_host`.
    """
    opening = open_host(config, handlers=handlers, trace=trace)
    with _LoopThread() as thread:
        host = thread.run(opening.__aenter__)
        try:
            yield SyncOpenHost(host, host.bridge)
        finally:
            thread.run(lambda: opening.__aexit__(None, None, None))


class _LoopThread:
    """An event loop in a thread, for a program that has none."""

    def __enter__(self) -> _LoopThread:
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._ended = asyncio.Event()
        context = contextvars.copy_context()
        # A daemon: a program that is ended inside its `with` block must not hang on this thread.
        self._thread = threading.Thread(
            target=lambda: context.run(asyncio.run, self._live()), name="toolpost host", daemon=True
        )
        self._thread.start()
        self._loop = self._started.result()
        return self

    def run(self, func: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of an async function on the loop. Interrupted, it is finished first."""
        future = asyncio.run_coroutine_threadsafe(func(), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _live(self) -> None:
        self._started.set_result(asyncio.get_running_loop())
        await self._ended.wait()


# -- agents to their ends --------------------------------------------------------------------------


@dataclass(frozen=True)
class RunReport:
    """What came of a run."""

    outcomes: dict[str, Outcome]
    trace: Trace
    interrupted: bool
    """SIGINT or SIGTERM shut it down."""


def run(
    config: ConfigSource = None,
    *,
    agents: Mapping[str, AgentFunction] | None = None,
    handlers: Mapping[str, Any] | None = None,
) -> dict[str, Outcome]:
    """Run agents side by side to their ends and give the outcome of each.

    Args:
        config: A path, a mapping shaped like the TOML, or a `Config`; None is `toolpost.toml`.
        agents: Agents from code by name, `run(host)` or `async def run(host)`; None runs the config's own.
            One that the config describes as well gets its `params` and `toolings`.
        handlers: As for `open_host`.

    Raises:
        ConfigError: The config cannot be used, or an agent's script has no `run`.
        UsageError: There is no agent; or an event loop runs in this thread (use `run_async` there).
        KeyboardInterrupt: Ctrl-C; the agents were shut down first.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError("toolpost.run starts an event loop, and one runs already: await toolpost.run_async")
    report = asyncio.run(run_async(config, agents=agents, handlers=handlers))
    if report.interrupted:
        raise KeyboardInterrupt
    return report.outcomes


async def run_async(
    config: ConfigSource = None,
    *,
    agents: Mapping[str, AgentFunction] | None = None,
    handlers: Mapping[str, Any] | None = None,
    on_trace: Callable[[Trace], None] | None = None,
) -> RunReport:
    """Run agents as `run` does, on the running loop, and give the whole report.

    In the main thread, SIGINT and SIGTERM shut the agents down, a second one without their grace. Being
    cancelled ends the agents as closing a host does.

    Args:
        config: As for `run`.
        agents: As for `run`.
        handlers: As for `run`.
        on_trace: Told the trace before the first agent starts.
    """
    loaded = as_config(config)
    if agents is None:
        crew = [load_agent(agent, loaded.folder) for agent in loaded.agents.values()]
    else:
        crew = [Agent(name, function) for name, function in agents.items()]
    if not crew:
        raise UsageError(f"{loaded.label} has no agents to run: add an [agents.<name>] table")
    core = Core(loaded, trace=True, extras=handlers or {})
    # Outside the house: a signal while it closes must neither break that nor end the process before it.
    with _interruption(core) as stop:
        async with _opened(core):
            assert core.trace is not None
            if on_trace is not None:
                on_trace(core.trace)
            outcomes = await core.run_agents(crew, stop)
        return RunReport(outcomes, core.trace, interrupted=stop.is_set())


@asynccontextmanager
async def _opened(core: Core) -> AsyncGenerator[Core]:
    await core.open()
    try:
        yield core
    finally:
        await core.close()


@contextmanager
def _interruption(core: Core) -> Generator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set. The second time there is no grace.

    Whatever handled them before does so again afterwards (the loop's own way of removing a handler would
    put the system's default there).
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if stop.is_set():
            core.hurry()
        stop.set()

    handled: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            try:
                loop.add_signal_handler(number, interrupt)
            except (NotImplementedError, ValueError):  # Windows: KeyboardInterrupt ends the run instead
                break
            handled[number] = before
    try:
        yield stop
    finally:
        for number, before in handled.items():
            loop.remove_signal_handler(number)
            if before is not None:  # None: set by no Python code, and so not to be put back by any
                signal.signal(number, before)
