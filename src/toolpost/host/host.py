"""The library's way in: open a host from a program, or run agents to their ends."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from toolpost.config import Config, load_config
from toolpost.errors import AgentStopped, UsageError
from toolpost.host.agents import Agent, Outcome, load_agents
from toolpost.host.bridge import Bridge, Latch
from toolpost.host.core import Core, Seat
from toolpost.host.face import Host
from toolpost.host.order import ACTOR
from toolpost.host.simulation import SimulatedLoop
from toolpost.host.sync import SyncHost
from toolpost.model import Json
from toolpost.trace.log import Trace

if TYPE_CHECKING:
    from toolpost.mock.view import Mock

ConfigSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Json] | Config | None
"""A path, a mapping shaped like the TOML, a loaded `Config`; None is `toolpost.toml` in this folder."""

AgentFunction: TypeAlias = Callable[[Host], Awaitable[str | None]] | Callable[[SyncHost], str | None]
"""`async def run(host)` takes a `Host`, `run(host)` a `SyncHost`; either gives None or a string."""

BUSY_SECS = 0.1
"""A loop that has not heard of a signal for so long is held up, and not just busy."""

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

    @property
    def trace(self) -> Trace:
        """The record of this run.

        Raises:
            UsageError: The host was opened with `trace=False`.
        """
        if self._core.trace is None:
            raise UsageError("this host has no trace: it was opened with trace=False")
        return self._core.trace

    def mock(self, name: str) -> Mock:
        """What a tooling of kind `mock` was asked for, and how far its script has come.

        Raises:
            UnknownTooling: The config has no tooling of that name.
            UsageError: The tooling is of another kind.
        """
        from toolpost.mock.view import Mock  # a house without mocks does without

        return Mock(name, self._core.backend(name))


class SyncOpenHost(SyncHost):
    """A host that a program without an event loop has opened. See `OpenHost`."""

    def __init__(self, host: OpenHost, bridge: Bridge) -> None:
        super().__init__(host, bridge)
        self._opened = host

    @property
    def trace(self) -> Trace:
        """The record of this run."""
        return self._opened.trace

    def mock(self, name: str) -> Mock:
        """What a tooling of kind `mock` was asked for. See `OpenHost.mock`."""
        return self._opened.mock(name)


class Opening:
    """What `open_host` gives: a host once it is entered."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def __aenter__(self) -> OpenHost:
        return OpenHost(self._core, await _main_seat(self._core))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._core.close()


async def _main_seat(core: Core) -> Seat:
    await core.open()
    try:
        return await core.open_main()
    except BaseException:
        await core.close()
        raise


def open_host(
    config: ConfigSource = None, *, handlers: Mapping[str, object] | None = None, trace: bool = True
) -> Opening:
    """Open a host for an async program: `async with open_host("toolpost.toml") as host`.

    The config is read here and nothing is connected: a tooling connects when it is first used. Leaving the
    block, from whichever task, ends subscriptions, calls, connections and server processes. Every wait in
    this is bounded: a backend's code that swallows its cancellation is reported and left behind, and neither
    closing nor `asyncio.run` waits for it.

    Args:
        config: A path, a mapping shaped like the TOML, or a `Config`; None is `toolpost.toml`.
        handlers: By tooling, what answers the server's own requests (kind `mcp`: `Handlers`).
        trace: Whether to keep a record of the run.

    Raises:
        ConfigError: The config cannot be used.
        UsageError: `handlers` names a tooling that the config does not have, or is no mapping.
    """
    return Opening(_core(as_config(config), handlers, trace=trace))


def _core(config: Config, handlers: Mapping[str, object] | None, *, trace: bool) -> Core:
    if not isinstance(handlers, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(f"handlers must be a mapping from toolings to their handlers, not {handlers!r}")
    return Core(config, trace=trace, extras=handlers or {})


@contextmanager
def open_host_sync(
    config: ConfigSource = None, *, handlers: Mapping[str, object] | None = None, trace: bool = True
) -> Generator[SyncOpenHost]:
    """Open a host for a program without an event loop: `with open_host_sync("toolpost.toml") as host`.

    The house runs in a thread of its own. Arguments and errors are those of `open_host`. Ctrl-C during a call
    ends that call, and nothing that it had taken from the inbox is lost. Closing is not cut short by Ctrl-C,
    however often it comes: `KeyboardInterrupt` is raised when everything has been closed.
    """
    core = _core(as_config(config), handlers, trace=trace)
    thread = _LoopThread(core.close)
    try:
        with thread:
            seat = thread.run(lambda: _main_seat(core))
            yield SyncOpenHost(OpenHost(core, seat), seat.bridge)
    finally:  # Ctrl-C may come in the very step that begins to end it
        thread.end()


class _LoopThread:
    """An event loop in a thread, for a program that has none. It ends when `close` has run on it."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._loop = asyncio.new_event_loop()
        self._ends = asyncio.Event()
        # A daemon: a program that is ended inside its `with` block must not hang on this thread.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(self._run_loop,), name="toolpost host", daemon=True
        )

    def __enter__(self) -> _LoopThread:
        self._thread.start()
        return self

    def run(self, func: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of an async function on the loop. Interrupted, it is cancelled, and waited for."""
        work = _Work(func)
        with _interrupts_put_off(lambda: self._loop.call_soon_threadsafe(work.cancel)):
            self._loop.call_soon_threadsafe(work.start)
            work.ended.wait()
        return work.result()

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End it, if it has not ended."""
        with _interrupts_put_off():
            if not self._thread.is_alive():
                return
            try:
                self.run(self._close)
            finally:
                self._loop.call_soon_threadsafe(self._ends.set)
                self._thread.join()

    def _run_loop(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        await self._ends.wait()


class _Work(Generic[T]):
    """One async function on the loop of another thread."""

    def __init__(self, func: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.ended = Latch()
        self._func = func
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        """On the loop."""
        self._task = asyncio.ensure_future(self._func())
        self._task.add_done_callback(lambda _: self.ended.set())

    def cancel(self) -> None:
        """On the loop."""
        if self._task is not None:
            self._task.cancel()

    def result(self) -> T:
        """Once it has ended."""
        assert self._task is not None, "it has ended"
        return self._task.result()


@contextmanager
def _interrupts_put_off(on_first: Callable[[], object] = lambda: None) -> Generator[None]:
    """Ctrl-C, however often it comes, is raised at the end of this block. The first one calls `on_first`.

    To catch it in the block would not do: the next may come in the very line that deals with the one before.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # it is not raised here, or not at all
        return
    came: list[KeyboardInterrupt] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt as error:
            came.append(error)
            if len(came) == 1:
                on_first()

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        if (
            signal.getsignal(signal.SIGINT) is on_signal
        ):  # else the program's own handler put another in place
            signal.signal(signal.SIGINT, before)
        if came:
            raise came[0]


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
    handlers: Mapping[str, object] | None = None,
    simulate: bool = False,
    seed: int = 0,
) -> dict[str, Outcome]:
    """Run agents side by side to their ends and give the outcome of each.

    Args:
        config: A path, a mapping shaped like the TOML, or a `Config`; None is `toolpost.toml`.
        agents: Agents from code by name, `run(host)` or `async def run(host)`; None runs the config's own.
            One that the config describes as well gets its `params` and `toolings`.
        handlers: As for `open_host`.
        simulate: Whether time is virtual: nothing is waited for, and one seed gives one order of everything.
            Every tooling must be of a kind that can be simulated, as mocks are.
        seed: Of a simulated run: chooses among what is ready at one instant. 0 is first come, first served.

    Raises:
        ConfigError: The config cannot be used, or an agent's script has no `run`.
        UsageError: There is no agent; an event loop runs in this thread (use `run_async` there); or a tooling
            cannot be simulated.
        KeyboardInterrupt: Ctrl-C; the agents were shut down first.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise UsageError("toolpost.run starts an event loop, and one runs already: await toolpost.run_async")
    with new_runner(simulate=simulate, seed=seed) as runner:
        report = runner.run(run_async(config, agents=agents, handlers=handlers, handle_signals=True))
    if report.interrupted:
        raise KeyboardInterrupt
    return report.outcomes


def new_runner(*, simulate: bool, seed: int = 0) -> asyncio.Runner:
    """What runs a coroutine on a loop of its own, in real time or in virtual."""
    return asyncio.Runner(loop_factory=(lambda: SimulatedLoop(seed)) if simulate else None)


async def run_async(
    config: ConfigSource = None,
    *,
    agents: Mapping[str, AgentFunction] | None = None,
    handlers: Mapping[str, object] | None = None,
    on_trace: Callable[[Trace], None] | None = None,
    handle_signals: bool = False,
) -> RunReport:
    """Run agents as `run` does, on the running loop, and give the whole report.

    Being cancelled ends the agents as closing a host does. An agent that does not end is left behind, be it a
    thread or a task; it keeps neither `asyncio.run` nor the process from ending.

    Args:
        config: As for `run`.
        agents: As for `run`.
        handlers: As for `run`.
        on_trace: Told the trace before the first agent starts.
        handle_signals: Whether SIGINT and SIGTERM shut the agents down, a second one without their grace, as
            they do in `run`. In the main thread only. Afterwards the handlers of before are back. Without it
            Ctrl-C is your program's: under `asyncio.run` it cancels the run, and a second one tears the loop
            down.
    """
    loaded = as_config(config)
    if agents is None:
        crew = load_agents(loaded)
    else:
        crew = [Agent(name, function) for name, function in _checked(agents).items()]
    if not crew:
        raise UsageError(f"{loaded.label} has no agents to run: add an [agents.<name>] table")
    core = _core(loaded, handlers, trace=True)
    _prepare_simulation(core)
    # Outside the house: a signal while it closes must neither break that nor end the process before it.
    with _interruption(core) if handle_signals else nullcontext(asyncio.Event()) as stop:
        async with _opened(core):
            assert core.trace is not None
            if on_trace is not None:
                on_trace(core.trace)
            outcomes = await core.run_agents(crew, stop)
        return RunReport(outcomes, core.trace, interrupted=stop.is_set())


def _prepare_simulation(core: Core) -> None:
    """In a simulated run: see that it can be one, and end the agents that nothing can help any more."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SimulatedLoop):
        return
    if real := core.config.real_toolings:
        names = ", ".join(map(repr, real))
        raise UsageError(f"{core.config.label} cannot be simulated: these toolings are real: {names}")

    def end_all() -> None:
        for run in core.runs:
            waits = " and ".join(run.waits()) or "something of its own"
            why = f"deadlock at {loop.time():g} s of simulated time: it waits in {waits}"
            core.end_agent(run.name, Outcome("failed", why))

    loop.on_stall = end_all


@asynccontextmanager
async def _opened(core: Core) -> AsyncGenerator[Core]:
    await core.open()
    try:
        yield core
    finally:
        await core.close()


def _checked(agents: Mapping[str, AgentFunction]) -> Mapping[str, AgentFunction]:
    if not isinstance(agents, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        raise UsageError(f"agents must be a mapping from names to functions, not {agents!r}")
    for name, function in agents.items():
        if not isinstance(name, str) or not callable(function):  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
            raise UsageError(
                f"agent {name!r} must be a function, `def run(host)` or `async def run(host)`,"
                f" not {function!r}"
            )
    return agents


@contextmanager
def _interruption(core: Core) -> Generator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set. The second time there is no grace.

    A loop that is held up hears of no signal. Where the one before was not heard, the next is raised in the
    code that holds it up: as `AgentStopped` in an agent's, which is stopped by that, and the run goes on to
    its end; else as `KeyboardInterrupt`.

    Whatever handled them before does so again afterwards. So this is `signal.signal`, and not the loop's
    `add_signal_handler`: that one cannot tell what it replaces, and takes a program's own handler away.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    turns = loop.turns if isinstance(loop, SimulatedLoop) else None
    unheard_since: float | None = None

    def interrupt() -> None:
        nonlocal unheard_since
        unheard_since = None
        if stop.is_set():
            core.hurry()
        stop.set()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal unheard_since
        loop.call_soon_threadsafe(interrupt)
        if turns is not None:  # only now, when the loop has something to do: else it would find a deadlock
            turns.interrupt()
        now = time.monotonic()
        if unheard_since is None:
            unheard_since = now
        elif turns is not None and turns.running is not None:
            pass  # the loop waits for an agent's thread, which it soon does no more
        elif now - unheard_since > BUSY_SECS:
            if actor := ACTOR.get():
                raise AgentStopped(f"agent {actor[0]!r} was interrupted: it let nobody else run")
            raise KeyboardInterrupt

    handled: dict[signal.Signals, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                handled[number] = signal.signal(number, on_signal)
        yield stop
    finally:
        for number, before in handled.items():
            if before is not None:  # None: set by no Python code, and so not to be put back by any
                signal.signal(number, before)
