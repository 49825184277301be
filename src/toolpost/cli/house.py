"""A host for one question: opened by `tools`, `call` and `check`, and closed right after.

Such a command dials twice at most: somebody waits in front of it, and the many dials of the default are
meant for agents that have time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from toolpost.cli.session import Session
from toolpost.cli.terminal import Talk
from toolpost.config import Tunables
from toolpost.host.core import Core, Seat
from toolpost.host.handle import Tooling
from toolpost.model import JsonObject
from toolpost.trace.events import State, TraceEvent


class House:
    """An open host, as a command needs it."""

    def __init__(self, core: Core, seat: Seat) -> None:
        self._core = core
        self._seat = seat

    def tooling(self, name: str) -> Tooling:
        """The handle of a tooling that is in the config."""
        return self._seat.find(name)

    async def describe(self, name: str) -> JsonObject:
        """What the server says of itself; nothing where there is no server. Connects."""
        return await self._core.describe(name) or {}


@asynccontextmanager
async def open_house(session: Session) -> AsyncGenerator[House]:
    """A host on the session's config that shows what it waits for. Leaving the block ends every server."""
    config = session.config()
    config = dataclasses.replace(config, tunables=two_dials(config.tunables))
    core = Core(config, trace=True, extras={})
    await core.open()
    try:
        assert core.trace is not None
        core.trace.tap(_Progress(session.talk))
        yield House(core, await core.open_main())
    finally:
        session.talk.progress("")
        await core.close()


def two_dials(tunables: Tunables) -> Tunables:
    """The tunables with a cap that the second wait reaches, so that a second dial is the last."""
    second_wait = 2 * tunables.tooling_connect_backoff_start_ms / 1000
    cap = min(tunables.tooling_connect_backoff_cap_secs, second_wait)
    return msgspec.structs.replace(tunables, tooling_connect_backoff_cap_secs=cap)


class _Progress:
    """A tap on the trace: which connections are being made, as the line of progress."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._dialing: dict[str, None] = {}

    def __call__(self, event: TraceEvent) -> None:
        if not isinstance(event, State):
            return
        if event.state == "dialing":
            self._dialing[event.tooling] = None
        else:
            self._dialing.pop(event.tooling, None)
        names = ", ".join(map(repr, self._dialing))
        self._talk.progress(f"connecting to {names} …" if names else "")
