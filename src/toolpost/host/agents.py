"""Agents: how a program becomes one, how it runs, and how it ends.

An async agent is a task of its own on the host's loop. A sync agent has a thread of its own, so it may block;
its host calls cross the bridge. Either way an agent ends in one of three outcomes, and at shutdown in three
steps: `Shutdown` in its inbox, after a grace `AgentStopped` in its next host call, and at last a task is
cancelled. A thread, which nothing can end, and a task that swallows its cancellation are left behind, with a
report of where they stand. A guest is a sync agent that can be ended while it computes.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import inspect
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

import anyio
import msgspec

from toolpost.config import AgentConfig, Config
from toolpost.errors import AgentStopped, ConfigError, GuestFailed
from toolpost.host.bridge import Bridge
from toolpost.host.cancelling import leave_behind
from toolpost.host.context import AgentContext
from toolpost.host.simulation import SimulatedLoop
from toolpost.host.standing import own_part, own_traceback, shown, stack_of_task, stack_of_thread
from toolpost.model import Json
from toolpost.secret import mask

SHUTDOWN_GRACE_SECS = 5.0
"""From `Shutdown` until an agent's host calls raise `AgentStopped`."""
STOP_GRACE_SECS = 1.0
"""From then until the agent is cancelled, or its thread left behind."""
CLOSING_STRETCH_SECS = 0.5
"""How long a guest may compute from one host call to the next once it is shut down."""
_LATE = "did not end in time after Shutdown"
_STOPPED = "was stopped"


class Outcome(msgspec.Struct, frozen=True):
    """How an agent ended."""

    kind: Literal["completed", "exited", "failed", "asserted"]
    """`asserted` is for tests: it was stopped once all that was expected of it had happened."""
    text: str | None = None
    """The string that it returned, or why it failed."""

    def to_json(self) -> Json:
        """`"completed"`, `"asserted"`, `{"exited": text}` or `{"failed": text}`."""
        return self.kind if self.text is None else {self.kind: self.text}

    def __str__(self) -> str:
        return self.kind if self.text is None else f"{self.kind}: {self.text}"


COMPLETED = Outcome("completed")
ASSERTED = Outcome("asserted")
NO_OUTCOME = Outcome("failed", "it has no outcome: the house ended before it did")


# -- loading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """An agent that can run: its function, or the error that loading it gave."""

    name: str
    function: Callable[[Any], object] | None
    error: BaseException | None = None
    limit: Callable[[float], None] | None = None
    """Of a guest: ends it, from any thread, once it computes for so many seconds without a host call."""


_LOADERS = {".wasm": "toolpost.wasm.load:load_guest"}
"""What makes an agent of a script that is no Python, by its suffix. Named as an entry point names it, so that
this room needs no import of one above it."""


def load_agents(config: Config) -> list[Agent]:
    """The agents of a config.

    Raises:
        ConfigError: Some cannot be found; holds every problem.
    """
    agents: list[Agent] = []
    problems: list[str] = []
    for each in config.agents.values():
        try:
            agents.append(load_agent(each, config.import_path))
        except ConfigError as error:
            problems += [f"{config.label}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(problems)
    return agents


def load_agent(config: AgentConfig, import_path: Iterable[Path]) -> Agent:
    """The agent of a config's table. A script that raises gives an agent that fails.

    The folders of `import_path` stand first on `sys.path` from then on.

    Raises:
        ConfigError: There is no such module or function.
    """
    if config.script is not None and (loader := _LOADERS.get(config.script.suffix)):
        module, _, attribute = loader.partition(":")
        return getattr(importlib.import_module(module), attribute)(config)
    missing = [text for each in import_path if (text := str(each)) not in sys.path]
    sys.path[:0] = missing
    name, _, attribute = str(config.entry).partition(":")
    spec = None
    if config.script is not None:
        spec, attribute = _spec_of_script(config.name, config.script), "run"
    try:
        module = importlib.import_module(name) if spec is None else _run_script(spec)
    except ModuleNotFoundError as error:
        if spec is None and error.name and f"{name}.".startswith(f"{error.name}."):
            raise ConfigError([f"agents.{config.name}.entry: there is no module {error.name!r}"]) from None
        return Agent(config.name, None, error)
    except (Exception, SystemExit) as error:
        return Agent(config.name, None, error)
    function: Any = module
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        where = config.script or config.entry
        needed = f"`def {attribute}(host)` or `async def {attribute}(host)`"
        raise ConfigError([f"agents.{config.name}: {where} has no function {attribute!r}; it needs {needed}"])
    return Agent(config.name, function)


def _spec_of_script(name: str, path: Path) -> ModuleSpec:
    """A script as a module of its own, also where two agents share the file."""
    spec = importlib.util.spec_from_file_location(f"toolpost_agent_{name}", path)
    if spec is None or spec.loader is None:
        raise ConfigError([f"agents.{name}.script: {path} is no Python file (.py)"])
    return spec


def _run_script(spec: ModuleSpec) -> ModuleType:
    assert spec.loader is not None, "a file has one"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# -- running ---------------------------------------------------------------------------------------


class AgentRun:
    """One agent on its way to its outcome."""

    def __init__(self, agent: Agent, context: AgentContext) -> None:
        self._agent = agent
        self._context = context
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = False
        """By us: what the agent cancels itself is its own doing."""
        self._verdict: Outcome | None = None
        """Its outcome, where the house has decided it."""
        self._has_failed = False
        """By itself, and not by being stopped."""
        self._left = asyncio.Event()
        """Set when a task or a thread is left behind."""
        self.done = anyio.Event()

    @property
    def name(self) -> str:
        """The agent's."""
        return self._agent.name

    @property
    def thread(self) -> threading.Thread | None:
        """The thread of a sync agent, once it runs."""
        return self._thread

    @property
    def is_left_behind(self) -> bool:
        """Whether it has an outcome and still runs."""
        return self._left.is_set()

    async def run(self, host: object, sync_host: object, bridge: Bridge) -> Outcome:
        """Run the agent to its end. Never raises for what the agent does.

        A sync agent is given `sync_host`, which calls by way of `bridge`.
        """
        try:
            function: Any = self._agent.function
            if self._agent.error is not None or function is None:
                return self._failed(self._agent.error or TypeError("there is nothing to run"))
            if _is_async(function):
                outcome = await self._in_task(function, host)
            else:
                outcome = await self._in_thread(function, sync_host, bridge)
            if self._verdict == ASSERTED and self._has_failed:
                return outcome  # on the very event that was the last to be expected
            return self._verdict or outcome
        finally:
            self.done.set()

    async def end(self, hurry: asyncio.Event) -> None:
        """Bring the agent to its end, gently at first; once `hurry` is set, without its grace."""
        self._context.shut_down()
        self._limit(CLOSING_STRETCH_SECS)
        async with anyio.create_task_group() as waits:
            waits.start_soon(_wait_and_cancel, hurry, waits.cancel_scope)
            await self._ends_within(SHUTDOWN_GRACE_SECS)
            waits.cancel_scope.cancel()
        if not self.done.is_set():
            await self._stop(_LATE)

    def decide(self, verdict: Outcome) -> None:
        """Stop the agent without `Shutdown` and grace; this is its outcome, whatever it does."""
        if self._verdict is None:
            self._verdict = verdict
            self._halt(_STOPPED)

    async def see_off(self) -> None:
        """Wait for the end of an agent that was stopped; one that does not heed it is cancelled, or left."""
        if not self.done.is_set():
            await self._stop(_STOPPED)

    def _halt(self, why: str) -> None:
        self._context.stop(why)
        self._limit(0)

    def _limit(self, seconds: float) -> None:
        if self._agent.limit is not None:
            self._agent.limit(seconds)

    async def _stop(self, why: str) -> None:
        self._halt(why)
        self._let_unwind()
        if await self._ends_within(STOP_GRACE_SECS):
            return
        if self._task is not None:
            self._report_stuck(why, "it is cancelled", stack_of_task(self._task))
            self._is_cancelled = True
            self._task.cancel()
            if await self._ends_within(STOP_GRACE_SECS):
                return
            left = "it swallows its cancellation and is left behind"
            self._report_stuck(why, left, stack_of_task(self._task))
        elif self._thread is not None:
            self._report_stuck(why, "its thread is left behind", stack_of_thread(self._thread))
        self._left.set()
        await self._ends_within(STOP_GRACE_SECS)

    def _let_unwind(self) -> None:
        """In a simulated run: wait for a guest that was interrupted. It ends in a moment, of real time."""
        loop = asyncio.get_running_loop()
        if (
            self._agent.limit is not None
            and self._thread is not None
            and isinstance(loop, SimulatedLoop)
            and loop.turns.is_lost(self._thread)
        ):
            self._thread.join(STOP_GRACE_SECS)

    def waits(self) -> list[str]:
        """The host calls that it waits in, such as `recv()`."""
        return [str(each) for each in self._context.under_way]

    def stack(self) -> str:
        """The lines of the agent's own code that it stands in, as a traceback shows them."""
        if self._task is not None:
            return shown(own_part(stack_of_task(self._task)))
        return "" if self._thread is None else shown(own_part(stack_of_thread(self._thread)))

    def abandon(self) -> None:
        """Stop the agent, and wait for it no more."""
        self._halt(_LATE)
        self._left.set()

    async def _ends_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.done.wait()
        return self.done.is_set()

    async def _in_task(self, function: Callable[[object], Awaitable[object]], host: object) -> Outcome:
        outcome = Outcome("failed", "it was left behind: it did not even end when it was cancelled")

        async def body() -> None:
            nonlocal outcome
            try:
                outcome = self._returned(await function(host))
            except (KeyboardInterrupt, GeneratorExit):  # not the agent's doing
                raise
            except BaseException as error:
                if self._is_cancelled and isinstance(error, asyncio.CancelledError):
                    outcome = Outcome("failed", "it was cancelled: it did not end after Shutdown")
                else:
                    outcome = self._failed(error)

        # A task of its own: an agent that cancels the task that it runs in ends nobody else.
        self._task = asyncio.create_task(body(), name=f"agent {self.name}")
        await self._until_left_or_done(self._task)
        return outcome

    async def _in_thread(self, function: Callable[[object], object], host: object, bridge: Bridge) -> Outcome:
        finished = asyncio.Event()
        outcome = Outcome("failed", "its thread was left behind: it made no host call after Shutdown")

        def body() -> None:
            nonlocal outcome
            try:
                outcome = self._returned(function(host))
            except BaseException as error:
                outcome = self._failed(error)
            finally:
                bridge.leave(finished.set)

        # A daemon: a thread that was left behind must not keep the process.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(body,), name=f"agent {self.name}", daemon=True
        )
        if bridge.is_simulated:
            serving = asyncio.create_task(bridge.serve(self._thread), name=f"agent {self.name}")
            await self._until_left_or_done(serving)
        else:
            self._thread.start()
            await self._until_left_or(finished)
        return outcome

    async def _until_left_or_done(self, task: asyncio.Task[None]) -> None:
        finished = asyncio.Event()
        task.add_done_callback(lambda _: finished.set())
        try:
            await self._until_left_or(finished)
        finally:
            if not task.done():
                task.cancel()
                leave_behind(task)

    async def _until_left_or(self, finished: asyncio.Event) -> None:
        async with anyio.create_task_group() as waits:
            waits.start_soon(_wait_and_cancel, self._left, waits.cancel_scope)
            waits.start_soon(_wait_and_cancel, finished, waits.cancel_scope)

    def _returned(self, value: object) -> Outcome:
        if value is None:
            return COMPLETED
        if isinstance(value, str):
            return Outcome("exited", mask(value))
        if inspect.iscoroutine(value):
            value.close()
            return Outcome("failed", "it returned a coroutine; declare it with `async def`")
        shown = _text_by(repr, value)
        return Outcome("failed", mask(f"it returned {shown}; an agent returns None or a string"))

    def _failed(self, error: BaseException) -> Outcome:
        stops = [each for each in _leaves(error) if isinstance(each, AgentStopped)]
        if stops and len(stops) == len(_leaves(error)):
            error = stops[0]  # a task group whose tasks were all stopped is an agent that was stopped
        elif isinstance(error, GuestFailed):
            self._has_failed = True
            self._context.log.error("agent %r failed: %s", self.name, error)
        else:
            self._has_failed = True
            told = (type(error), error, own_traceback(error))
            self._context.log.error("agent %r failed", self.name, exc_info=told)
        return Outcome("failed", mask(_description(error)))

    def _report_stuck(self, why: str, what: str, stack: traceback.StackSummary) -> None:
        # whoever decided its outcome has looked where it stands
        level = logging.ERROR if self._verdict is None else logging.DEBUG
        self._context.log.log(level, "agent %r %s: %s, standing at\n%s", self.name, why, what, shown(stack))


MOST_LEAVES = 5
"""Of the exceptions in a group, how many an outcome's text names."""


def _description(error: BaseException) -> str:
    text = _text_by(str, error)
    if isinstance(error, GuestFailed):
        return text
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    leaves = _leaves(error)
    if leaves != [error]:
        more = ["…"] if len(leaves) > MOST_LEAVES else []
        said += ": " + "; ".join([_description(each) for each in leaves[:MOST_LEAVES]] + more)
    return said


def _leaves(error: BaseException) -> list[BaseException]:
    """The exceptions of a group, of the groups in it too; else the one that it is."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return [leaf for each in inner for leaf in _leaves(each)]


def _text_by(to_text: Callable[[object], str], value: object) -> str:
    """What an agent's object says of itself, if it can."""
    try:
        return to_text(value)
    except BaseException as error:
        return f"({to_text.__name__}() of it raised {type(error).__name__})"


async def _wait_and_cancel(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _is_async(function: object) -> bool:
    by_class: Any = vars(type(function)).get("__call__")  # an object with `async def __call__`
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(by_class)
