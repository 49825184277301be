"""What one agent has in the house: a name, an inbox, the parent of its tasks, and its end.

    active ──shut_down──▶ closing: `Shutdown` is in the inbox, calls in place still work
      │                      └──stop──▶ stopped: the call under way and every later one raises
      └──────────────────────stop──▶

A handle asks its context before it does anything, and does its waiting inside `working()`. Whatever fails in
there lets others run first, so that an agent which tries again and again, or swallows its end, stops nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, TypeVar, cast

import anyio
import anyio.lowlevel

from toolpost.errors import AgentStopped, HostClosed, UsageError
from toolpost.host.cancelling import Tasks, Work, is_cancelled
from toolpost.host.inbox import Inbox, Source
from toolpost.host.order import ACTOR
from toolpost.host.simulation import SimulatedLoop
from toolpost.model import Json, JsonObject
from toolpost.secret import get_logger
from toolpost.trace.events import Call
from toolpost.trace.log import Trace

R = TypeVar("R")

AT_A_STRETCH = 64
"""So many calls that need not wait an agent makes before others have their turn."""

MAIN = "main"
"""The agent that a program is, which opens a host without configured agents."""


class AgentContext:
    """One agent, as the house sees it."""

    def __init__(
        self,
        name: str,
        *,
        inbox: Inbox,
        tasks: Tasks,
        trace: Trace | None,
        params: JsonObject,
        recv_timeout: float,
        now: Callable[[], float],
        is_program: bool = False,
    ) -> None:
        self.name = name
        self.inbox = inbox
        self.params = params
        self.recv_timeout = recv_timeout
        self.now = now
        self.log = get_logger(f"toolpost.agent.{name}")
        self._is_program = is_program
        self._loop = asyncio.get_running_loop()
        self._tasks = tasks
        self._trace = trace
        self.under_way: dict[_Wait, None] = {}
        """The calls that wait."""
        self.starved: list[tuple[float, float]] = []
        """Each `recv` that timed out: when, by the loop's clock, and its limit, both in seconds."""
        self._is_simulated = isinstance(self._loop, SimulatedLoop)
        self._stretch = 0
        """The calls that did not wait, since others had their turn."""
        self._stopped = False
        self._why = ""
        self._has_ended = False

    # -- for handles -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if this agent has been stopped, or is used on another loop than its own."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = self._loop  # on no loop: what does not wait may be called there, if the program sees to it
        if here is not self._loop:
            raise UsageError(
                f"the host of agent {self.name!r} belongs to another event loop:"
                " use it on the loop that it was opened on, or open one here"
            )
        if self._stopped:
            raise self.ending()

    def must_yield(self) -> bool:
        """Whether a call that need not wait lets others run first. In a simulated run each one does."""
        self._stretch += 1
        if self._stretch < AT_A_STRETCH and not self._is_simulated:
            return False
        self._stretch = 0
        return True

    async def failed(self, error: BaseException) -> None:
        """After what has not waited, and raised: others run first."""
        if self._stopped:
            await anyio.lowlevel.checkpoint()
        elif isinstance(error, Exception):
            await anyio.lowlevel.cancel_shielded_checkpoint()

    def working(self, op: str, *of: str) -> _Working:
        """Around everything that waits on behalf of the agent: a stop ends it.

        Args:
            op: The call.
            of: What it is about, for those who are told what the agent waits for: a tooling, a tool.
        """
        return _Working(self, op, of)

    async def outcome(self, coming: Awaitable[R], op: str, *of: str) -> R:
        """What comes of what is under way, as if awaited inside `working`. A future needs no scope for it."""
        if not isinstance(coming, asyncio.Future):
            async with self.working(op, *of):
                return await coming
        if coming.done() and self.must_yield():
            await anyio.lowlevel.checkpoint()
        wait = _Wait(op, of, coming)
        self.under_way[wait] = None
        try:
            return await coming
        except asyncio.CancelledError:
            if self._stopped and not is_cancelled():
                raise self.ending() from None
            raise
        except Exception as error:
            await self.failed(error)
            raise
        finally:
            del self.under_way[wait]

    def coming(self, coming: Awaitable[R], op: str, *of: str) -> Awaitable[R]:
        """The same for a thread, which need not await what is under way: a future that a stop cancels too."""
        if self._is_simulated or not (isinstance(coming, asyncio.Future) and self.is_ours(coming)):
            return self.outcome(coming, op, *of)
        wait = _Wait(op, of, coming)
        self.under_way[wait] = None
        coming.add_done_callback(lambda _: self.under_way.pop(wait, None))
        return coming

    async def refused(self, error: BaseException) -> NoReturn:
        """Raise what a call has raised before it began, once others have run."""
        await self.failed(error)
        raise error

    def starve(self, limit: float) -> None:
        """Note that `recv` has waited for nothing."""
        self.starved.append((self._loop.time(), limit))

    def record(self, op: str, tooling: str, **detail: Json) -> None:
        """Write down a call that is about to take effect."""
        if self._trace is not None:
            for name, value in detail.items():
                if isinstance(value, (dict, list)):
                    detail[name] = _copy(value)  # the backend has the original
            self._trace.append(Call(agent=self.name, op=op, detail={"tooling": tooling, **detail}))

    def start(self, func: Callable[..., Coroutine[Any, Any, object]], source: Source, *args: object) -> None:
        """Start the pump of a source. It ends with the source, and with the agent."""
        source.work = scope = anyio.CancelScope()

        async def pump() -> None:
            ACTOR.set((self.name, source.id))
            with scope:
                await func(self.inbox, source, *args)

        self._tasks.start_soon(pump)

    def is_ours(self, outcome: asyncio.Future[Any]) -> bool:
        """Whether a future is one of this loop. Another's would be delivered there, where nothing is safe."""
        return outcome.get_loop() is self._loop

    def follow(
        self, func: Callable[..., None], source: Source, outcome: asyncio.Future[Any], *args: object
    ) -> None:
        """Call `func` with what comes of a call that is under way as it is, and needs no pump."""
        source.work = outcome
        if isinstance(outcome, asyncio.Task):
            self._tasks.adopt(outcome)
        outcome.add_done_callback(partial(func, self.inbox, source, *args))

    # -- for the house ---------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Tell the agent to come to an end."""
        self.inbox.put_shutdown()

    def stop(self, why: str = "was stopped") -> None:
        """End the call that is under way and every later one, and all sources; they say why."""
        if self._stopped:
            return
        self._stopped = True
        self._why = why
        self.inbox.put_shutdown()
        for each in tuple(self.under_way):
            each.work.cancel()

    def end(self) -> None:
        """The agent has ended: as `stop`, for what it has left running."""
        self._has_ended = not self._stopped
        self.stop()

    @property
    def is_stopped(self) -> bool:
        """Whether every call raises `ending`."""
        return self._stopped

    def ending(self) -> BaseException:
        """What calls raise once the agent is stopped: a program is told, an agent is ended."""
        if self._is_program:
            return HostClosed("the host is closed; open another one")
        if self._has_ended:
            return AgentStopped(f"agent {self.name!r} has ended; its host cannot be used any more")
        return AgentStopped(f"agent {self.name!r} {self._why}")


class _Wait:
    """What an agent waits for."""

    __slots__ = ("_of", "_op", "work")

    def __init__(self, op: str, of: tuple[str, ...], work: Work) -> None:
        self._op = op
        self._of = of
        self.work = work

    def __str__(self) -> str:
        return f"{self._op}({', '.join(map(repr, self._of))})"


class _Working:
    """See `AgentContext.working`."""

    __slots__ = ("_context", "_scope", "_wait")

    def __init__(self, context: AgentContext, op: str, of: tuple[str, ...]) -> None:
        self._context = context
        self._scope = anyio.CancelScope()
        self._wait = _Wait(op, of, self._scope)

    async def __aenter__(self) -> None:
        try:
            self._context.check()
        except BaseException as error:
            await self._context.failed(error)
            raise
        self._scope.__enter__()
        self._context.under_way[self._wait] = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.under_way.pop(self._wait, None)
        if isinstance(error, Exception):
            await anyio.lowlevel.cancel_shielded_checkpoint()
        self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise self._context.ending()


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        copied = cast("JsonObject", value).copy()
        for name, each in copied.items():
            if isinstance(each, (dict, list)):
                copied[name] = _copy(each)
        return copied
    return [_copy(each) if isinstance(each, (dict, list)) else each for each in cast("list[Json]", value)]
