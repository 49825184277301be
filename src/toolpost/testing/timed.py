"""Agents that are given as functions, run to their ends within a limit of real time, as fixtures do it.

Two ways: on the loop that runs already; or on a loop of its own in a thread, which is watched. The second
one also ends an agent that blocks its loop, and its time may be simulated.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import AbstractContextManager, nullcontext

from toolpost.config import Config
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.testing.watched import Watched
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
        self.is_simulated = seed is not None
        self._agents = agents
        self._on_trace = on_trace
        self._watched = Watched(config, limit=limit, seed=seed, around=self._tell_trace)
        self._over: Future[None] = Future()
        """Of a run in a thread."""

    async def on_this_loop(self) -> dict[str, Outcome]:
        """The outcomes; where `lateness` says something, they are not the agents' own."""
        await self._watched.run_here(self._agents)
        self._watched.break_left_behind()
        return self._watched.outcomes

    def in_thread(self) -> dict[str, Outcome]:
        """As `on_this_loop`. This thread only waits, and may be interrupted."""
        try:
            self._start()
            self._over.result()
        except KeyboardInterrupt:
            self._watched.interrupt()
            wait([self._over], INTERRUPTED_SECS)
            raise
        return self._watched.outcomes

    async def aside(self) -> dict[str, Outcome]:
        """As `in_thread`, while the loop that runs here goes on."""
        self._start()
        try:
            await asyncio.shield(asyncio.wrap_future(self._over))
        except asyncio.CancelledError:
            self._watched.interrupt()
            raise
        return self._watched.outcomes

    def lateness(self) -> str | None:
        """Why agents were ended that did not come to it themselves, and where they stood; None if all did."""
        if self._watched.ended is None:
            return None
        return "\n".join(self._watched.ended.lines(limit_name="timeout of toolpost_host"))

    def _tell_trace(self, core: Core) -> AbstractContextManager[None]:
        assert core.trace is not None, "tests are recorded"
        self._on_trace(core.trace)
        return nullcontext()

    def _start(self) -> None:
        context = contextvars.copy_context()
        # A daemon: an agent that nothing can end must not keep the process.
        threading.Thread(target=lambda: context.run(self._run), name="toolpost agents", daemon=True).start()

    def _run(self) -> None:
        try:
            self._watched.run(lambda: self._agents, on_stuck=self._settle)
            self._watched.break_left_behind()
        except BaseException as error:
            self._settle(error)
        else:
            self._settle()

    def _settle(self, error: BaseException | None = None) -> None:
        try:
            if error is not None:
                self._over.set_exception(error)
            else:
                self._over.set_result(None)
        except InvalidStateError:  # it was given up, and came to an end after all
            pass
