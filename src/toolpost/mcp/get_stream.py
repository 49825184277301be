"""The stream on which a server speaks without being asked: a GET, kept open (until 2025-11-25).

    opening ──200, a stream──▶ open ──ended, broken──▶ waiting ──▶ opening
       └──refused at first──▶ none: the server offers no stream
       └──refused later──▶ is the session still there? (a ping) ──▶ none, or the wire is lost

A server need not have one, and may close it when it likes. How long we wait for the next grows while streams
bring nothing, and never below what the server asks for.
"""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import anyio
from mcp.shared.exceptions import MCPError

from toolpost.mcp.endpoint import BadEndpoint, Broken, Unreachable
from toolpost.mcp.http import HttpDispatcher, Stream, media_type
from toolpost.mcp.sse import EventTooLarge
from toolpost.secret import get_logger

FIRST_PAUSE_SECS = 0.2
"""Before a stream is opened again; doubles while streams bring nothing and end soon."""
PAUSE_CAP_SECS = 30.0
STABLE_SECS = 10.0
"""A stream that lasted so long was a good one."""
CHECK_SECS = 10.0
"""How long the server may take to say that the session is there."""

_log = get_logger("toolpost.mcp")


class GetStream:
    """Keeps the stream open for as long as its task runs."""

    def __init__(self, wire: HttpDispatcher) -> None:
        self._wire = wire
        self._stream = Stream(wire.take_event)
        self.settled = asyncio.Event()
        """Set when the server has opened the stream, or has not."""
        self._was_open = False
        self.is_late = False
        """Whether the handshake went on without it: what came before it opens is lost."""

    async def run(self) -> None:
        """Returns when there is no stream to be had, or the wire is down."""
        try:
            await self._keep_open()
        except Unreachable as error:
            self._wire.lose(str(error))
        except Exception:
            _log.exception("the stream of the server's own messages raised")
        finally:
            self.settled.set()

    async def _keep_open(self) -> None:
        pause = FIRST_PAUSE_SECS
        while True:
            opened, news = anyio.current_time(), self._stream.news
            if not await self._follow():
                return
            if self._stream.news > news or anyio.current_time() - opened > STABLE_SECS:
                pause = FIRST_PAUSE_SECS
            await anyio.sleep(max(pause, self._stream.retry_secs(0)))
            pause = min(pause * 2, PAUSE_CAP_SECS)

    async def _follow(self) -> bool:
        """One connection, to its end; False if another is not worth trying."""
        more = {"Accept": "text/event-stream"}
        if self._stream.last_id is not None:
            more["Last-Event-ID"] = self._stream.last_id
        try:
            response = await self._wire.endpoint.send("GET", self._wire.headers(more))
            try:
                return await self._read(response)
            finally:
                response.close()
        except Broken as error:
            _log.debug("the stream of the server's own messages: the server %s", error)
            return True
        except BadEndpoint as error:
            _log.warning("there is no stream of the server's own messages: the server %s", error)
            return False
        except EventTooLarge:
            _log.warning("the server sent an event that is too long; the stream is opened again")
            return True

    async def _read(self, response: aiohttp.ClientResponse) -> bool:
        if response.status == 200 and media_type(response) == "text/event-stream":
            if (self._was_open or self.is_late) and self._stream.last_id is None:
                self._wire.on_gap()  # nothing to go on from: what came in between is lost
            self._was_open = True
            self.settled.set()
            await self._stream.read(response)
            return True
        if response.status >= 500 or response.status == 429:
            return True
        is_odd = self._was_open or response.status in (401, 403)
        level = logging.WARNING if is_odd else logging.DEBUG
        _log.log(level, "there is no stream of the server's own messages: HTTP %d", response.status)
        if self._was_open:
            await self._check_session()
        return False

    async def _check_session(self) -> None:
        """A stream that there was is refused: is the session gone? An answer to a POST says so."""
        try:
            with anyio.move_on_after(CHECK_SECS):
                await self._wire.send_raw_request("ping", None)
        except MCPError as error:
            _log.debug("the server answered a ping: %s", error)
