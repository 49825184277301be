"""A host for one question: opened by `tools`, `call`, `read` and their like, and closed right after.

Such a command dials twice at most: somebody waits in front of it, and the many dials of the default are
meant for agents that have time. `watch` has time too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import msgspec

from toolpost.cli.session import Session
from toolpost.cli.terminal import Talk
from toolpost.config import Tunables
from toolpost.events import Envelope
from toolpost.host.core import Core, Seat
from toolpost.host.face import Host
from toolpost.host.handle import Tooling
from toolpost.model import JsonObject
from toolpost.tooling.port import Progress
from toolpost.trace.events import State


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

    async def recv(self) -> Envelope:
        """The next envelope, however long it takes."""
        return await Host(self._seat.context, self._seat.find).recv(math.inf)


@asynccontextmanager
async def open_house(
    session: Session,
    *,
    is_patient: bool = False,
    shows_dials: bool = True,
    on_state: Callable[[State], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> AsyncGenerator[House]:
    """A host on the session's config that shows what it waits for. Leaving the block ends every server.

    Args:
        session: Whose config it is.
        is_patient: Dial as often as the config's tunables say, not twice at most.
        shows_dials: Show which connections are being made, on a terminal.
        on_state: Told of each change of a connection's state.
        on_progress: Told of the progress that tool calls report.
    """
    config = session.config()
    if not is_patient:
        config = dataclasses.replace(config, tunables=two_dials(config.tunables))
    dialing = _Dialing(session.talk) if shows_dials else None

    def told(event: State) -> None:
        for each in (dialing, on_state):
            if each is not None:
                each(event)

    # a trace is kept whole in memory: not where nobody knows how long it will become
    core = Core(config, trace=not is_patient, extras={}, on_state=told, on_progress=on_progress)
    await core.open()
    try:
        yield House(core, await core.open_main())
    finally:
        session.talk.progress("")
        await core.close()


def two_dials(tunables: Tunables) -> Tunables:
    """The tunables with a cap that the second wait reaches, so that a second dial is the last."""
    second_wait = 2 * tunables.tooling_connect_backoff_start_ms / 1000
    cap = min(tunables.tooling_connect_backoff_cap_secs, second_wait)
    return msgspec.structs.replace(tunables, tooling_connect_backoff_cap_secs=cap)


class _Dialing:
    """Which connections are being made, as the line of progress."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._dialing: dict[str, None] = {}

    def __call__(self, event: State) -> None:
        if event.state == "dialing":
            self._dialing[event.tooling] = None
        else:
            self._dialing.pop(event.tooling, None)
        names = ", ".join(map(repr, self._dialing))
        self._talk.progress(f"connecting to {names} …" if names else "")
