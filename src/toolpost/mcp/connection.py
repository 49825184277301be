"""The one connection of an `mcp` tooling: dialed when first used, shared, dialed again when it is gone.

    idle ──first use──▶ dialing ──hands shaken──▶ ready ──server gone──▶  lost ──next use──▶ dialing
      ▲                    │                        │
      └──last waiter left,─┘                        └──close──▶ closed
         or given up

- Only `Connection` moves between states; each change is logged and traced.
- Each dial, and the connection that comes of it, is one *link*: one task that opens the session and leaves
  it again, since the SDK wants both done in the same task. Everybody else only waits for it.
- A failure is told to all who wait, and not remembered: the next use dials anew.

Over HTTP there is no process: the connection is lost when the server cannot be reached, or no longer knows
the session.

This file imports no SDK: the server process is started first, and the SDK is imported while it boots.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio

from toolpost.errors import ConnectFailed, HostClosed
from toolpost.mcp.environment import server_environment
from toolpost.mcp.faults import Busy, DiedOnProbe, FinalFailure, about
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.in_thread import in_thread
from toolpost.mcp.params import McpParams
from toolpost.mcp.process import Spawned
from toolpost.secret import get_logger
from toolpost.tooling.port import Site

if TYPE_CHECKING:
    from toolpost.mcp.peer import Peer

State: TypeAlias = Literal["idle", "dialing", "ready", "lost", "closed"]

_log = get_logger("toolpost.mcp")


class _Link:
    """One dial and what comes of it."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.waiting = 0
        self.settled = anyio.Event()
        self.peer: Peer | None = None
        self.error: str | None = None
        self.attempts: int | None = None
        self.died_on_probe = False
        """A server that leaves over `server/discover` is asked once in a dial, not with each attempt."""
        self.over = anyio.Event()
        """Set when its task has cleaned up."""


class Connection:
    """The way to one server."""

    def __init__(self, params: McpParams, site: Site, on_peer: Callable[[Peer], None]) -> None:
        self._params = params
        self._site = site
        self._tunables = site.tunables
        self._handlers: Handlers = site.extras or Handlers()
        self._on_peer = on_peer
        self._link: _Link | None = None
        self._links: set[_Link] = set()
        self._legacy = False
        """Learnt: this server is of an era without `server/discover`, so it is not asked again."""
        self.state: State = "idle"

    async def ready(self) -> Peer:
        """The live session; dials where there is none.

        Raises:
            ConnectFailed: No dial succeeded.
            HostClosed: The host is ending.
        """
        link = self._link
        if link is not None and link.peer is not None and link.peer.ended.is_set():
            self._detach(link, "lost")  # its task has not had its turn yet
            link = None
        if link is None:
            link = self._dial()
        if link.peer is None or link.waiting:  # nobody overtakes those who have waited for it
            await self._wait_for(link)
            if link.error is not None:
                raise ConnectFailed(link.error, attempts=link.attempts)
            if link.peer is None:
                raise HostClosed(f"tooling {self._site.name!r}: the host is closed")
        return link.peer

    @property
    def peer(self) -> Peer | None:
        """The live session; None where `ready` would have to wait for it, or it takes no more requests."""
        link = self._link
        if link is None or (peer := link.peer) is None or link.waiting:
            return None
        return None if peer.is_broken or peer.ended.is_set() else peer

    async def aclose(self) -> None:
        """End the connection and its process."""
        self._move("closed")
        for link in tuple(self._links):
            link.scope.cancel()
        for link in tuple(self._links):
            await link.over.wait()

    # -- dialing -----------------------------------------------------------------------------------

    def _dial(self) -> _Link:
        if self.state == "closed":
            raise HostClosed(f"tooling {self._site.name!r}: the host is closed")
        link = _Link()
        self._site.start_task(self._run, link)
        self._link = link
        self._links.add(link)
        self._move("dialing")
        return link

    async def _wait_for(self, link: _Link) -> None:
        link.waiting += 1
        try:
            await link.settled.wait()
        finally:
            link.waiting -= 1
            if link.waiting == 0 and not link.settled.is_set():  # nobody wants it any more
                link.scope.cancel()
                self._detach(link, "idle")

    async def _run(self, link: _Link) -> None:
        """The life of a link."""
        try:
            with link.scope:
                await self._dial_and_serve(link)
        except ConnectFailed as error:
            link.error, link.attempts = str(error), error.attempts
            _log.info("%s", error)
        except Exception as error:
            link.error = about(self._site.name, type(error).__name__, error)
            raise
        finally:
            self._detach(link, "lost" if link.peer is not None else "idle")
            self._links.discard(link)
            link.settled.set()
            link.over.set()

    async def _dial_and_serve(self, link: _Link) -> None:
        """Dial with a wait that doubles; give up where the next wait would reach the cap."""
        name, tunables = self._site.name, self._tunables
        wait = tunables.tooling_connect_backoff_start_ms / 1000
        for attempt in itertools.count(1):
            try:
                await self._attempt(link)
                return
            except FinalFailure as error:
                raise ConnectFailed(about(name, "cannot connect", error)) from None
            except ConnectFailed as error:
                if wait >= tunables.tooling_connect_backoff_cap_secs:
                    what = f"cannot connect, given up after {attempt} attempts"
                    raise ConnectFailed(about(name, what, error), attempts=attempt) from None
                pause = _pause(error, wait, tunables.tooling_connect_backoff_cap_secs)
                _log.warning("tooling %r: attempt %d failed, next in %g s: %s", name, attempt, pause, error)
            await anyio.sleep(pause)
            wait *= 2

    async def _attempt(self, link: _Link) -> None:
        """One dial; returns when the connection that came of it has ended."""
        try:
            await self._connect_and_serve(link, skip_probe=self._legacy or link.died_on_probe)
        except DiedOnProbe:
            # An old server may leave over a request that it does not know. A fresh process is spoken to as
            # such servers expect. MCP 2026-07-28, basic/transports/stdio, "Backward compatibility".
            link.died_on_probe = True
            await self._connect_and_serve(link, skip_probe=True)

    async def _connect_and_serve(self, link: _Link, *, skip_probe: bool) -> None:
        async with self._open_peer(skip_probe=skip_probe) as peer:
            if self._link is not link:  # the last who waited left in the turn in which the answer came
                return
            link.peer = peer
            self._legacy = not peer.is_modern
            self._move("ready")
            _log.info("tooling %r: connected to %s", self._site.name, peer.describe())
            link.settled.set()
            await peer.ended.wait()
            self._detach(link, "lost")

    @asynccontextmanager
    async def _open_peer(self, *, skip_probe: bool) -> AsyncGenerator[Peer]:
        """A session that has shaken hands, and over stdio its process; all ends with the block."""
        is_http = self._params.transport == "http"
        spawned = Spawned(self._site.name)
        limit = self._tunables.tooling_connect_timeout_secs
        try:
            with anyio.fail_after(limit) as dial:
                opening = await (self._over_http() if is_http else self._over_stdio(spawned))
            async with opening(
                name=self._site.name,
                params=self._params,
                tunables=self._tunables,
                handlers=self._handlers,
                deadline=dial.deadline,
                skip_probe=skip_probe,
                start_task=self._site.start_task,
                prepare=self._on_peer,
            ) as peer:
                yield peer
        except TimeoutError:
            raise ConnectFailed(f"the server was not ready within {limit:g} s") from None
        finally:
            await spawned.end()

    async def _over_stdio(self, spawned: Spawned) -> Callable[..., AbstractAsyncContextManager[Peer]]:
        params = self._params
        command = [str(params.command), *(params.args or ())]
        await spawned.start(command, env=server_environment(params), cwd=params.cwd)
        # A thread: the import takes half a second, and the server boots meanwhile.
        module = await in_thread(lambda: importlib.import_module("toolpost.mcp.session"))
        return partial(module.open_peer, spawned)

    async def _over_http(self) -> Callable[..., AbstractAsyncContextManager[Peer]]:
        module = await in_thread(lambda: importlib.import_module("toolpost.mcp.http_session"))
        return module.open_http_peer

    # -- states ------------------------------------------------------------------------------------

    def _detach(self, link: _Link, state: State) -> None:
        """This link serves no longer; the next use dials."""
        if self._link is link:
            self._link = None
            self._move(state)

    def _move(self, state: State) -> None:
        if state == self.state or self.state == "closed":
            return
        _log.debug("tooling %r: %s -> %s", self._site.name, self.state, state)
        self.state = state
        self._site.on_state(state)


def _pause(error: ConnectFailed, wait: float, cap: float) -> float:
    """How long until the next attempt: at least as long as a server asks for, within the cap."""
    return max(wait, min(error.retry_after, cap)) if isinstance(error, Busy) else wait
