"""An MCP server over streamable HTTP in the test's own loop, whose answers a test replaces one by one.

Left alone it is an honest server of 2025-11-25: a session, JSON answers, a GET stream, DELETE. What it was
asked stands in `seen`. A test puts its fault under the name of a JSON-RPC method, of a verb, or under
"answer" for what answers requests of the server:

    async with odd_http() as server:
        server.on["tools/call"] = once(status(500, "oops"))
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from aiohttp import web

Message: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[web.Request, Message], Awaitable[web.StreamResponse]]
MAX_BODY_BYTES = 64 << 20
VERSION = "2025-11-25"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request that came."""

    verb: str
    path: str
    headers: Mapping[str, str]
    message: Message
    peer: object
    """The address that the connection came from: the same for requests on one connection."""

    @property
    def name(self) -> str:
        """The JSON-RPC method, else the verb."""
        return self.message.get("method", "answer") if self.verb == "POST" else self.verb


class OddHttp:
    """A server at work."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.seen: list[Seen] = []
        self.on: dict[str, Answer] = {}
        self.sessions: set[str] = set()
        self.streams: list[web.StreamResponse] = []
        """The GET streams that are open."""
        self.opened = 0
        self.port = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http{'' if self._tls is None else 's'}://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        """Listen, on the port of the time before if there was one."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Go away: connections break, sessions are forgotten."""
        self.end_streams()
        self.sessions.clear()
        assert self._runner is not None
        await self._runner.cleanup()

    def end_streams(self) -> None:
        """End what is open, as a server may at any time."""
        self._closing.set()
        self._closing = asyncio.Event()
        self.streams.clear()

    def asked(self, name: str) -> list[Seen]:
        """The requests of one name that came."""
        return [each for each in self.seen if each.name == name]

    async def push(self, message: Message, *, id: str | None = None) -> None:
        """Send a message on every GET stream."""
        for stream in self.streams:
            await stream.write(event(message, id=id))

    async def updated(self, uri: str, *, id: str | None = None) -> None:
        """Tell of a changed resource."""
        await self.push(notification("notifications/resources/updated", uri=uri), id=id)

    # -- honest answers ----------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message: Message = json.loads(body) if body else {}
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        seen = Seen(
            verb=request.method, path=request.path, headers=request.headers, message=message, peer=peer
        )
        self.seen.append(seen)
        answer = self.on.get(seen.name) or self._honest(request, seen)
        return await answer(request, message)

    def _honest(self, request: web.Request, seen: Seen) -> Answer:
        if seen.name == "initialize":
            return self.initialize
        if seen.name != "server/discover" and request.headers.get("Mcp-Session-Id") not in self.sessions:
            return status(404, "session not found")
        match seen.name:
            case "GET":
                return self.open_stream
            case "DELETE":
                return self._delete
            case "server/discover":
                return status(400, "no session")
            case _ if "id" not in seen.message or "method" not in seen.message:
                return status(202)
            case _:
                return self.answer

    async def initialize(self, request: web.Request, message: Message) -> web.StreamResponse:
        """The honest answer to the handshake."""
        self.opened += 1
        session = f"session-{self.opened}"
        self.sessions.add(session)
        result = {
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}, "resources": {"subscribe": True, "listChanged": True}},
            "serverInfo": {"name": "odd-http", "version": "1"},
        }
        return web.json_response(answer_to(message, result), headers={"Mcp-Session-Id": session})

    async def _delete(self, request: web.Request, message: Message) -> web.StreamResponse:
        self.sessions.discard(request.headers.get("Mcp-Session-Id", ""))
        return web.Response()

    async def answer(self, request: web.Request, message: Message) -> web.StreamResponse:
        """The honest answer to a request, as JSON."""
        return web.json_response(honest(message))

    async def open_stream(self, request: web.Request, message: Message) -> web.StreamResponse:
        """The honest GET stream: open until the server goes away."""
        stream = await stream_to(request)
        self.streams.append(stream)
        await self._closing.wait()
        return stream

    async def hang(self, request: web.Request, message: Message) -> web.StreamResponse:
        """Nothing, until the server goes away."""
        await self._closing.wait()
        return web.Response()


@asynccontextmanager
async def odd_http(tls: ssl.SSLContext | None = None) -> AsyncGenerator[OddHttp]:
    """A running server."""
    server = OddHttp(tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


# -- messages --------------------------------------------------------------------------------------


def honest(message: Message) -> Message:
    """What an honest server answers."""
    params = message.get("params", {})
    match message["method"]:
        case "tools/list":
            return answer_to(message, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            return answer_to(message, text(params["arguments"].get("text", "")))
        case "resources/list":
            return answer_to(message, {"resources": [{"uri": "odd://a", "name": "a"}]})
        case "resources/read":
            return answer_to(message, {"contents": [{"uri": params["uri"], "text": params["uri"]}]})
        case "ping" | "resources/subscribe" | "resources/unsubscribe":
            return answer_to(message, {})
        case _:
            return error_to(message, -32601, "method not found")


def text(value: str) -> Message:
    """A tool's result."""
    return {"content": [{"type": "text", "text": value}]}


def answer_to(message: Message, result: Message) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def error_to(message: Message, code: int, said: str) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": said}}


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def event(message: Message | str, *, id: str | None = None, retry: int | None = None) -> bytes:
    """An event as it goes over the wire."""
    data = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    lines = [f"id: {id}"] * (id is not None) + [f"retry: {retry}"] * (retry is not None) + [f"data: {data}"]
    return ("\n".join(lines) + "\n\n").encode()


# -- answers ---------------------------------------------------------------------------------------


def status(code: int, body: str = "", **headers: str) -> Answer:
    """A status; `_` in the names of headers stands for `-`."""

    async def answer(request: web.Request, message: Message) -> web.StreamResponse:
        return web.Response(
            status=code, text=body, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


def body(data: Callable[[Message], bytes], content_type: str, **headers: str) -> Answer:
    """A body that is made of the message."""

    async def answer(request: web.Request, message: Message) -> web.StreamResponse:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return web.Response(body=data(message), headers={"Content-Type": content_type, **named})

    return answer


def raw(data: Callable[[Message], bytes]) -> Answer:
    """These bytes in place of an HTTP answer, then the end of the connection."""

    async def answer(request: web.Request, message: Message) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(data(message))
        request.transport.close()
        return web.Response()

    return answer


async def stream_to(request: web.Request, content_type: str = "text/event-stream") -> web.StreamResponse:
    """A stream of events, begun."""
    stream = web.StreamResponse(headers={"Content-Type": content_type})
    await stream.prepare(request)
    return stream


def stream(*pieces: Callable[[Message], bytes] | bytes, abort: bool = False) -> Answer:
    """A stream of these pieces, each sent by itself, and its end; `abort` breaks the connection instead."""

    async def answer(request: web.Request, message: Message) -> web.StreamResponse:
        response = await stream_to(request)
        for piece in pieces:
            await response.write(piece if isinstance(piece, bytes) else piece(message))
            await asyncio.sleep(0)
        if abort and request.transport is not None:
            request.transport.abort()
        return response

    return answer


async def reset(request: web.Request, message: Message) -> web.StreamResponse:
    """No answer: the connection breaks."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def first(*faults: Answer, then: Answer) -> Answer:
    """These answers one after the other, then the last for ever."""
    waiting = list(faults)

    async def answer(request: web.Request, message: Message) -> web.StreamResponse:
        return await (waiting.pop(0) if waiting else then)(request, message)

    return answer
