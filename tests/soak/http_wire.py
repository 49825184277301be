"""The soak's server over streamable HTTP: one session for each client until 2025-11-25, none after it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import uuid

from aiohttp import web

from tests.soak.server import Follower, Message, Server

MAX_BODY_BYTES = 1 << 24
SHUTDOWN_SECS = 0.2
SESSION_HEADER = "Mcp-Session-Id"


async def serve(server: Server, port: int, *, answers_in_streams: bool) -> None:
    """Answer until SIGTERM, or until whoever has started this is gone."""
    wire = _Wire(server, answers_in_streams=answers_in_streams)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post("/mcp", wire.post)
    app.router.add_get("/mcp", wire.get)
    app.router.add_delete("/mcp", wire.delete)
    runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_SECS, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    watching = asyncio.create_task(server.watch())
    await stop.wait()
    watching.cancel()
    for follower in tuple(server.followers):
        follower.hang_up()
    await runner.cleanup()


def _leave_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


class _Stream:
    """Events on their way to one client."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue()

    def send(self, message: Message) -> None:
        self._waiting.put_nowait(message)

    def hang_up(self) -> None:
        self._waiting.put_nowait(None)

    async def run(self, request: web.Request) -> web.StreamResponse:
        """Send what comes, until it is hung up on either side."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while (message := await self._waiting.get()) is not None:
            await response.write(f"data: {json.dumps(message)}\n\n".encode())
        return response


class _Session:
    """A client until 2025-11-25. What it is told while it has no stream open is lost."""

    def __init__(self) -> None:
        self.stream: _Stream | None = None
        self.follower = Follower(self._send, hang_up=self._hang_up)

    def _send(self, message: Message) -> None:
        if self.stream is not None:
            self.stream.send(message)

    def _hang_up(self) -> None:
        if self.stream is not None:
            self.stream.hang_up()


class _Wire:
    def __init__(self, server: Server, *, answers_in_streams: bool) -> None:
        self._server = server
        self._answers_in_streams = answers_in_streams
        self._sessions: dict[str, _Session] = {}
        self._nobody = Follower(lambda _: None)

    async def post(self, request: web.Request) -> web.StreamResponse:
        message: Message = json.loads(await request.read())
        method = message.get("method")
        if method == "subscriptions/listen":
            return await self._listen(request, message)
        if self._server.is_modern or method == "server/discover":
            return await self._answered(request, message, self._nobody, {})
        if method == "initialize":
            name, session = uuid.uuid4().hex, _Session()
            self._sessions[name] = session
            self._server.followers[session.follower] = None
            return await self._answered(request, message, session.follower, {SESSION_HEADER: name})
        session = self._session(request)
        return await self._answered(request, message, session.follower, {})

    async def get(self, request: web.Request) -> web.StreamResponse:
        """The stream of a session."""
        if self._server.is_modern:
            return web.Response(status=405)
        await self._server.dawdle()
        session = self._session(request)
        session.stream = stream = _Stream()
        try:
            return await stream.run(request)
        finally:
            if session.stream is stream:
                session.stream = None

    async def delete(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        del self._sessions[request.headers[SESSION_HEADER]]
        self._server.followers.pop(session.follower, None)
        session.follower.hang_up()
        return web.Response()

    def _session(self, request: web.Request) -> _Session:
        session = self._sessions.get(request.headers.get(SESSION_HEADER, ""))
        if session is None:
            raise web.HTTPNotFound(text="session not found")
        return session

    async def _answered(
        self, request: web.Request, message: Message, client: Follower, headers: dict[str, str]
    ) -> web.StreamResponse:
        answer = await self._server.answer(message, client)
        if answer is None:
            return web.Response(status=202)
        if not self._answers_in_streams or headers:
            return web.json_response(answer, headers=headers)
        stream = _Stream()
        stream.send(answer)
        stream.hang_up()
        return await stream.run(request)

    async def _listen(self, request: web.Request, message: Message) -> web.StreamResponse:
        stream = _Stream()
        follower = Follower(stream.send, stream=message["id"], hang_up=stream.hang_up)
        await self._server.answer(message, follower)
        try:
            return await stream.run(request)
        finally:
            self._server.followers.pop(follower, None)
