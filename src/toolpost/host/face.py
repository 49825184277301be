"""The house as one agent sees it: its toolings, its inbox, its log, its clock.

`Host` is what `async def run(host)` is given, and what `open_host` gives a program. `sync.py` derives the
face for sync agents from it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import anyio

from toolpost.errors import RecvTimeout, UsageError
from toolpost.events import Envelope
from toolpost.host.context import AgentContext
from toolpost.host.handle import Tooling, is_seconds
from toolpost.model import JsonObject

_LEVELS = logging.getLevelNamesMapping()


class Toolings:
    """The toolings that this agent can use, by name."""

    def __init__(self, context: AgentContext, find: Callable[[str], Tooling]) -> None:
        self._context = context
        self._find = find

    def get(self, name: str) -> Tooling:
        """The handle of a tooling. Connects to nothing.

        Raises:
            UnknownTooling: There is none of that name, or this agent was not granted it.
        """
        self._context.check()
        return self._find(name)


class Host:
    """What an agent has of the house."""

    def __init__(self, context: AgentContext, find: Callable[[str], Tooling]) -> None:
        self._context = context
        self.tooling = Toolings(context, find)
        """`tooling.get(name)` gives a handle."""

    @property
    def name(self) -> str:
        """The agent's name in the config; `main` for a program."""
        return self._context.name

    @property
    def params(self) -> JsonObject:
        """The table `params` of the agent's config."""
        return self._context.params

    async def recv(self, timeout: float | None = None) -> Envelope:
        """The next envelope of the inbox, waited for.

        Args:
            timeout: Seconds to wait; None is the tunable `recv_timeout_secs`, `math.inf` for ever.

        Raises:
            RecvTimeout: None came in time. Nothing is lost.
            HostClosed: `Shutdown` has been taken; nothing follows it.
        """
        limit = self._context.recv_timeout if timeout is None else timeout
        try:
            self._context.check()
            if not is_seconds(limit):
                raise UsageError(f"timeout must be a number of seconds, 0 or more, not {timeout!r}")
            if not self._context.must_yield() and (waits := self._context.inbox.take_nowait()) is not None:
                return waits
        except BaseException as error:
            await self._context.failed(error)
            raise
        async with self._context.working("recv"):
            with anyio.move_on_after(None if limit == math.inf else limit):
                return await self._context.inbox.take()
            if (envelope := self._context.inbox.take_nowait()) is not None:  # it came with the last tick
                return envelope
            self._context.starve(limit)
            raise RecvTimeout(f"agent {self.name!r}: no envelope arrived within {limit:g} s")

    def try_recv(self) -> Envelope | None:
        """The next envelope if one waits, else None."""
        self._context.check()
        return self._context.inbox.take_nowait()

    def log(self, message: str, level: str = "info") -> None:
        """Write to the log, as logger `toolpost.agent.<name>`.

        Args:
            message: What to write; secrets of the config are masked.
            level: `debug`, `info`, `warning` or `error`.
        """
        self._context.check()
        number = _LEVELS.get(level.upper()) if isinstance(level, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]: users' calls
        if not number:  # `notset` is 0: a record of that level would be written nowhere
            raise UsageError(f"unknown log level {level!r}; use debug, info, warning or error")
        self._context.log.log(number, "%s", message)

    def now(self) -> float:
        """Seconds since the epoch, never going back: the clock that time-outs and `sleep` use."""
        return self._context.now()

    async def sleep(self, seconds: float) -> None:
        """Wait. Shutdown does not end it; the end of the grace after it does.

        Raises:
            UsageError: `seconds` is no number, or less than 0.
        """
        async with self._context.working("sleep"):
            if not is_seconds(seconds):
                raise UsageError(f"sleep takes a number of seconds, 0 or more, not {seconds!r}")
            await anyio.sleep(seconds)

    def _put_back(self, envelope: Envelope | None) -> None:
        """A thread that took an envelope was interrupted before it had it."""
        if envelope is not None:
            self._context.inbox.put_back(envelope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of agent {self.name!r}>"
