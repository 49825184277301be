"""Agents: how a program becomes one, how it runs, and how it ends.

An async agent is a task on the host's loop. A sync agent has a thread of its own, so it may block; its
host calls cross the bridge. Either way an agent ends in one of three outcomes, and at shutdown in three
steps: `Shutdown` in its inbox, after a grace `AgentStopped` in its next host call, and at last it is
cancelled (a task) or left behind with a report of where it stands (a thread, which nothing can end).
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

import anyio
import msgspec

from toolpost.config import AgentConfig
from toolpost.errors import AgentStopped, ConfigError
from toolpost.host.cancelling import is_cancelled
from toolpost.host.context import AgentContext
from toolpost.model import Json
from toolpost.secret import mask

SHUTDOWN_GRACE_SECS = 5.0
"""From `Shutdown` until an agent's host calls raise `AgentStopped`."""
STOP_GRACE_SECS = 1.0
"""From then until the agent is cancelled, or its thread left behind."""

AgentFunction: TypeAlias = Callable[[Any], Any]
"""`run(host)` or `async def run(host)`. Takes a `SyncHost` or a `Host`; gives None or a string."""


class Outcome(msgspec.Struct, frozen=True):
    """How an agent ended."""

    kind: Literal["completed", "exited", "failed"]
    text: str | None = None
    """The string that it returned, or why it failed."""

    def to_json(self) -> Json:
        """`"completed"`, `{"exited": text}` or `{"failed": text}`."""
        return self.kind if self.text is None else {self.kind: self.text}

    def __str__(self) -> str:
        return self.kind if self.text is None else f"{self.kind}: {self.text}"


COMPLETED = Outcome("completed")


# -- loading ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """An agent that can run: its function, or the error that loading it gave."""

    name: str
    function: AgentFunction | None
    error: BaseException | None = None


def load_agent(config: AgentConfig, folder: Path) -> Agent:
    """The agent of a config's table. A script that raises gives an agent that fails.

    Raises:
        ConfigError: There is no such module or function.
    """
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
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
        self._scope = anyio.CancelScope()
        self._thread: threading.Thread | None = None
        self._left = asyncio.Event()
        """Set when a thread is left behind."""
        self.done = anyio.Event()

    async def run(self, host: object, sync_host: object) -> Outcome:
        """Run the agent to its end. Never raises for what the agent does."""
        outcome = Outcome("failed", "it was cancelled: it did not end after Shutdown")
        try:
            with self._scope:
                if self._agent.error is not None or self._agent.function is None:
                    outcome = self._failed(self._agent.error or TypeError("there is nothing to run"))
                elif _is_async(self._agent.function):
                    outcome = await self._await(self._agent.function, host)
                else:
                    outcome = await self._in_thread(self._agent.function, sync_host)
        finally:
            self.done.set()
        return outcome

    async def end(self, hurry: asyncio.Event) -> None:
        """Bring the agent to its end, gently at first; once `hurry` is set, without its grace."""
        self._context.shut_down()
        async with anyio.create_task_group() as waits:
            waits.start_soon(_wait_and_cancel, hurry, waits.cancel_scope)
            await self._ends_within(SHUTDOWN_GRACE_SECS)
            waits.cancel_scope.cancel()
        if self.done.is_set():
            return
        self._context.stop()
        if await self._ends_within(STOP_GRACE_SECS):
            return
        self._report_stuck()
        if self._thread is None:
            self._scope.cancel()
        else:
            self._left.set()
        await self._ends_within(STOP_GRACE_SECS)

    async def _ends_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.done.wait()
        return self.done.is_set()

    async def _await(self, function: AgentFunction, host: object) -> Outcome:
        try:
            return self._returned(await function(host))
        except (Exception, SystemExit, AgentStopped, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            return self._failed(error)

    async def _in_thread(self, function: AgentFunction, host: object) -> Outcome:
        loop = asyncio.get_running_loop()
        finished = asyncio.Event()
        outcome = Outcome("failed", "its thread was left behind: it made no host call after Shutdown")

        def body() -> None:
            nonlocal outcome
            try:
                ended = self._returned(function(host))
            except BaseException as error:
                ended = self._failed(error)
            outcome = ended
            with suppress(RuntimeError):  # left behind, and the loop has closed since
                loop.call_soon_threadsafe(finished.set)

        # A daemon: a thread that was left behind must not keep the process.
        self._thread = threading.Thread(
            target=contextvars.copy_context().run, args=(body,), name=f"agent {self._agent.name}", daemon=True
        )
        self._thread.start()
        async with anyio.create_task_group() as waits:
            waits.start_soon(_wait_and_cancel, self._left, waits.cancel_scope)
            waits.start_soon(_wait_and_cancel, finished, waits.cancel_scope)
        return outcome

    def _returned(self, value: object) -> Outcome:
        if value is None:
            return COMPLETED
        if isinstance(value, str):
            return Outcome("exited", mask(value))
        if inspect.iscoroutine(value):
            value.close()
            return Outcome("failed", "it returned a coroutine; declare it with `async def`")
        return Outcome("failed", mask(f"it returned {value!r}; an agent returns None or a string"))

    def _failed(self, error: BaseException) -> Outcome:
        if not isinstance(error, AgentStopped):
            self._context.log.error("agent %r failed", self._agent.name, exc_info=error)
        text = str(error)
        return Outcome("failed", mask(f"{type(error).__name__}: {text}" if text else type(error).__name__))

    def _report_stuck(self) -> None:
        where = "it is cancelled"
        if self._thread is not None and self._thread.ident is not None:
            frame = sys._current_frames().get(self._thread.ident)  # pyright: ignore[reportPrivateUsage]: the documented way
            stack = "" if frame is None else "".join(traceback.format_stack(frame))
            where = f"its thread is left behind, standing at\n{stack}"
        self._context.log.error("agent %r did not end after Shutdown: %s", self._agent.name, where)


async def _wait_and_cancel(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


def _is_async(function: AgentFunction) -> bool:
    by_class: Any = vars(type(function)).get("__call__")  # an object with `async def __call__`
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(by_class)
