"""Subscriptions of both protocol eras behind one interface.

However many subscribers a URI has, it costs one subscription on the wire: a *watch*, kept by one task.

    subscribing ──the server agrees──▶ watching ──connection lost, stream ended──▶ subscribing again
        └──it refuses the first time,──▶ failed: every ◀──again and again──┘
           or is gone over it twice      subscriber is told

Until 2025-11-25 a watch is `resources/subscribe` and the notifications that follow; from 2026-07-28 on it
is a stream of `subscriptions/listen`. Either way an update says only that something changed, so a feed
is a flag and not a queue: what comes while nobody looks folds into one.

This file imports no SDK: a watch takes its place in the order of requests before the first dial.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from toolpost.errors import ConnectionLost, HostClosed, RequestTimeout, ToolpostError
from toolpost.mcp.faults import about
from toolpost.mcp.losses import Losses
from toolpost.secret import get_logger
from toolpost.tooling.port import CHANGED, Change, StartTask

if TYPE_CHECKING:
    from toolpost.mcp.peer import Peer

UNSUBSCRIBE_SECS = 2.0
"""How long the server may take to hear that nobody watches any more, before who watches next goes on."""
LOST_ATTEMPTS = 2
"""So often a server may be gone before it has first agreed: it may well be the request's doing."""
OVERTAKEN_SECS = 2.0
"""So long the requests that follow a subscription wait for the server's answer to it, where what is sent
later may arrive sooner."""

_log = get_logger("toolpost.mcp")

Key = str | None
"""A URI; None for the list of resources."""


class Feed(AsyncIterator[Change]):
    """One subscriber's view: has something changed since it last looked?"""

    def __init__(self) -> None:
        self._changed = False
        self._error: ToolpostError | None = None
        self._news = anyio.Event()

    def touch(self) -> None:
        self._changed = True
        self._news.set()

    def fail(self, error: ToolpostError) -> None:
        self._error = error
        self._news.set()

    async def __anext__(self) -> Change:
        await self._news.wait()
        if self._changed:
            self._changed = False
            if self._error is None:
                self._news = anyio.Event()
            return CHANGED
        assert self._error is not None
        raise self._error


class _Watch:
    """One subscription on the wire and its subscribers."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.feeds: set[Feed] = set()
        self.scope = anyio.CancelScope()
        self.written = anyio.Event()
        """Set once the server has been asked, or will not be."""
        self.settled = anyio.Event()
        """Set once the server has agreed, or refused."""
        self.error: ToolpostError | None = None
        self.lost = 0
        """How often the server was gone before it had first agreed."""
        self.over = anyio.Event()
        """Set once the server has heard that nobody watches any more, or cannot hear it."""

    def touch(self) -> None:
        for feed in self.feeds:
            feed.touch()

    def established(self) -> None:
        """The server has agreed. Not to the first request: an update may have been missed meanwhile."""
        if self.settled.is_set() or self.lost:
            self.touch()
        self.settled.set()

    def fail(self, error: ToolpostError) -> None:
        self.error = error
        self.settled.set()
        for feed in self.feeds:
            feed.fail(error)


class Subscriptions:
    """The watches of one tooling, over all its connections."""

    def __init__(
        self,
        name: str,
        ready: Callable[[], Awaitable[Peer]],
        start_task: StartTask,
        *,
        timeout: float,
        losses: Callable[[], Losses],
    ) -> None:
        self._name = name
        self._ready = ready
        self._start_task = start_task
        self._timeout = timeout
        self._losses = losses
        self._watches: dict[Key, _Watch] = {}
        self._leaving: dict[Key, _Watch] = {}
        """The last that nobody wants any more, until the server has heard it."""
        self._unwritten: list[_Watch] = []
        """The watches that the server has not been asked for yet, oldest first."""
        self._behind = 0
        """How many requests wait for those."""

    @asynccontextmanager
    async def subscribe(self, key: Key) -> AsyncGenerator[AsyncIterator[Change]]:
        """Changes of one resource, or of the list.

        Raises:
            Unsupported: The server did not declare that it tells of such changes.
            ServerError: It refused.
            ConnectionLost: It was gone over the request, and again on a fresh connection.

        A feed raises `ConnectionLost` when what it comes from is lost again and again.
        """
        watch = self._watches.get(key)
        if watch is None:
            watch = _Watch(key)
            self._start_task(self._keep, watch, self._leaving.get(key))
            self._watches[key] = watch
            self._unwritten.append(watch)
        feed = Feed()
        watch.feeds.add(feed)
        try:
            await watch.settled.wait()
            if watch.error is not None:
                raise watch.error
            yield feed
        finally:
            watch.feeds.discard(feed)
            if not watch.feeds:
                watch.scope.cancel()
                self._drop(watch)
                if not watch.over.is_set():  # one that waits for an earlier one has asked for nothing yet
                    self._leaving.setdefault(key, watch)

    def changed(self, key: Key) -> None:
        """The server says that a resource (or the list, None) changed; eras up to 2025-11-25.

        A URI below a subscribed one counts for it. URIs are opaque: nothing is normalised.
        """
        while True:
            if (watch := self._watches.get(key)) is not None:
                watch.touch()
            if key is None:
                return
            slash = key.rstrip("/").rfind("/")
            if slash < 0:
                return
            above = key[: slash + 1]
            if (watch := self._watches.get(above)) is not None and above != key:
                watch.touch()
            key = above.rstrip("/")

    def missed(self) -> None:
        """Changes may have been missed: every subscriber looks again."""
        for watch in self._watches.values():
            watch.touch()

    @property
    def all_written(self) -> bool:
        """Whether the server has been asked for every watch, and nobody waits for that any more."""
        return not self._unwritten and not self._behind

    async def wait_written(self) -> None:
        """Wait until the server has been asked for every watch that was opened before.

        What an agent calls after it has subscribed must not overtake the subscription. Those who wait here
        go on in the order in which they came.
        """
        if self.all_written:
            return
        self._behind += 1
        try:
            for watch in tuple(self._unwritten):
                await watch.written.wait()
            await anyio.lowlevel.checkpoint()
        finally:
            self._behind -= 1

    # -- inside ------------------------------------------------------------------------------------

    def _written(self, watch: _Watch) -> None:
        if not watch.written.is_set():
            watch.written.set()
            self._unwritten.remove(watch)

    def _drop(self, watch: _Watch) -> None:
        if self._watches.get(watch.key) is watch:
            del self._watches[watch.key]

    async def _keep(self, watch: _Watch, before: _Watch | None) -> None:
        """Hold a watch on whichever connection there is, until nobody wants it any more."""
        losses = self._losses()
        with watch.scope:
            try:
                while True:
                    peer = await self._ready()
                    if before is not None and not peer.in_order:
                        await before.over.wait()  # its end would undo this one, if it came later
                    since = anyio.current_time()
                    await self._hold(peer, watch)
                    if not watch.settled.is_set():
                        watch.lost += 1
                        if watch.lost == LOST_ATTEMPTS:
                            raise ConnectionLost(self._worded(watch, _lost_over_it(peer)))
                    pause = losses.pause(anyio.current_time() - since)
                    if pause is None:
                        last = f"the last time the server {peer.describe_end()}"
                        raise ConnectionLost(self._worded(watch, f"the connection was lost {losses}; {last}"))
                    await anyio.sleep(pause)
            except ToolpostError as error:
                watch.fail(error)
            finally:
                self._written(watch)
                self._drop(watch)
                if self._leaving.get(watch.key) is watch:
                    del self._leaving[watch.key]
                watch.over.set()

    async def _hold(self, peer: Peer, watch: _Watch) -> None:
        """Hold a watch on one connection until that ends, whether or not the server agreed before."""
        peer.check_can_subscribe(watch.key)
        try:
            if peer.is_modern:
                await self._hold_stream(peer, watch)
            else:
                await self._hold_interest(peer, watch)
        except _StreamsEnd:
            raise
        except ConnectionLost as error:  # of this request at least; what comes of it is `_keep`'s business
            _log.debug("%s", error)
        except RequestTimeout as error:
            if not watch.settled.is_set():
                raise
            _log.info("%s; it is asked again", error)  # it has agreed before: it stalls, and does not refuse

    async def _hold_interest(self, peer: Peer, watch: _Watch) -> None:
        self._count_as_written(peer, watch)
        if watch.key is None:
            watch.established()
            await peer.ended.wait()
            return
        try:
            await peer.subscribe(watch.key)
            self._written(watch)
            watch.established()
            await peer.ended.wait()
        except anyio.get_cancelled_exc_class():
            # Also where the server was not heard yet: it may have subscribed us all the same.
            if not peer.ended.is_set():
                with anyio.move_on_after(UNSUBSCRIBE_SECS, shield=True):
                    await self._unsubscribe(peer, watch.key)
            raise

    def _count_as_written(self, peer: Peer, watch: _Watch) -> None:
        """Let the requests go that wait for this one, which is about to be written."""
        loop = asyncio.get_running_loop()
        if peer.in_order:
            loop.call_soon(loop.call_soon, self._written, watch)
        else:  # its answer is waited for, since requests may overtake each other; but not for ever
            loop.call_later(OVERTAKEN_SECS, self._written, watch)

    async def _unsubscribe(self, peer: Peer, uri: str) -> None:
        if peer.in_order:
            await self._end_interest(peer, uri)
            return
        heard = anyio.Event()
        with suppress(HostClosed):  # then the connection ends too
            self._start_task(self._end_interest, peer, uri, heard)
            await heard.wait()

    async def _end_interest(self, peer: Peer, uri: str, heard: anyio.Event | None = None) -> None:
        since = anyio.current_time()
        try:
            await peer.unsubscribe(uri)
        except ToolpostError as error:
            _log.debug("%s", error)
        if heard is not None:
            heard.set()
            if anyio.current_time() - since >= UNSUBSCRIBE_SECS:
                await self._renew(peer, uri)

    async def _renew(self, peer: Peer, uri: str) -> None:
        """Subscribe once more, if anybody has done so since: an end that came late may have undone it."""
        watch = self._watches.get(uri)
        if watch is None or peer.ended.is_set():
            return
        try:
            await peer.subscribe(uri)
        except ToolpostError as error:
            _log.warning("%s; changes may be missed", error)
        watch.touch()

    async def _hold_stream(self, peer: Peer, watch: _Watch) -> None:
        losses = self._losses()
        while not peer.ended.is_set():
            since = anyio.current_time()
            came = await self._follow_stream(peer, watch)
            if peer.ended.is_set():
                return
            pause = losses.pause(anyio.current_time() - since, news=came)
            if pause is None:
                raise _StreamsEnd(self._worded(watch, f"the server ended the stream of changes {losses}"))
            _log.info("tooling %r: the server ended a stream of changes; it is opened again", self._name)
            with anyio.move_on_after(pause):
                await peer.ended.wait()

    async def _follow_stream(self, peer: Peer, watch: _Watch) -> bool:
        """Follow one stream to its end; tells whether anything came."""
        from toolpost.mcp.listening import open_stream  # brings the SDK with it

        came = False
        opening = open_stream(
            peer,
            watch.key,
            worded=lambda problem: self._worded(watch, problem),
            timeout=self._timeout,
        )
        self._count_as_written(peer, watch)
        async with opening as stream:
            self._written(watch)
            watch.established()
            async for _ in stream:
                came = True
                watch.touch()
        return came

    def _worded(self, watch: _Watch, problem: object) -> str:
        key = watch.key
        what = "subscribe_resource_list" if key is None else f"subscribe_resource {key!r}"
        return about(self._name, what, problem)


class _StreamsEnd(ConnectionLost):
    """The server is there, and ends each stream."""


def _lost_over_it(peer: Peer) -> str:
    return f"the connection was lost before the server agreed, twice: the server {peer.describe_end()}"
