"""What one agent has in the house: a name, an inbox, the parent of its tasks, and its end.

    active ──shut_down──▶ closing: `Shutdown` is in the inbox, calls in place still work
      │                      └──stop──▶ stopped: the call under way and every later one raises
      └──────────────────────stop──▶

A handle asks its context before it does anything, and does its waiting inside `working()`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from toolpost.errors import AgentStopped, HostClosed
from toolpost.host.inbox import Inbox, Source
from toolpost.model import Json, JsonObject
from toolpost.secret import get_logger
from toolpost.trace.events import Call
from toolpost.trace.log import Trace

MAIN = "main"
"""The agent that a program is, which opens a host without configured agents."""


class AgentContext:
    """One agent, as the house sees it."""

    def __init__(
        self,
        name: str,
        *,
        inbox: Inbox,
        tasks: TaskGroup,
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
        self._tasks = tasks
        self._trace = trace
        self._working: set[anyio.CancelScope] = set()
        self._stopped = False

    # -- for handles -----------------------------------------------------------------------------

    def check(self) -> None:
        """Raise if this agent has been stopped."""
        if self._stopped:
            raise self.ending()

    @contextmanager
    def working(self) -> Generator[None]:
        """Around everything that waits on behalf of the agent: a stop ends it."""
        self.check()
        with anyio.CancelScope() as scope:
            self._working.add(scope)
            try:
                yield
            finally:
                self._working.discard(scope)
        if scope.cancelled_caught:
            raise self.ending()

    def record(self, op: str, tooling: str, **detail: Json) -> None:
        """Write down a call that is about to take effect."""
        if self._trace is not None:
            self._trace.append(Call(agent=self.name, op=op, detail={"tooling": tooling, **detail}))

    def start(self, func: Callable[..., Coroutine[Any, Any, object]], source: Source, *args: object) -> None:
        """Start the pump of a source. It ends with the source, and with the agent."""

        async def pump() -> None:
            with source.scope:
                await func(self.inbox, source, *args)

        self._tasks.start_soon(pump)

    # -- for the house ---------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Tell the agent to come to an end."""
        self.inbox.put_shutdown()

    def stop(self) -> None:
        """End the call that is under way and every later one, and all sources."""
        self._stopped = True
        self.inbox.put_shutdown()
        for scope in tuple(self._working):
            scope.cancel()

    def ending(self) -> BaseException:
        """What calls raise once the agent is stopped: a program is told, an agent is ended."""
        if self._is_program:
            return HostClosed("the host is closed; open another one")
        return AgentStopped(f"agent {self.name!r} did not end in time after Shutdown")
