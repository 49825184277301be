"""The floor: JSON-RPC by hand on asyncio, without models, checks, time-outs or cancellation."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, cast

from bench.client import Target

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
_INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Client:
    def __init__(self, mode: str) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._on_update: Callable[[], None] = lambda: None
        self._pipe: _Pipe | None = None
        self._http: _Http | None = None

    async def open(self, target: Target) -> None:
        if target.command:
            self._pipe = _Pipe(self._take)
            await self._pipe.start(target.command)
            await self._request("initialize", _HELLO)
            self._pipe.send(_INITIALIZED)
            return
        self._http = _Http(target.url)
        await self._request("initialize", _HELLO)
        await self._http.post(_INITIALIZED)
        await self._http.listen(self._take)

    async def watch(self, on_update: Callable[[], None]) -> None:
        self._on_update = on_update

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        result = await self._request("tools/call", {"name": tool, "arguments": arguments})
        return result["content"][0]["text"]

    async def close(self) -> None:
        if self._pipe is not None:
            await self._pipe.close()
        if self._http is not None:
            await self._http.close()

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(self._ids)
        body = _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        if self._http is not None:
            return json.loads(await self._http.post(body))["result"]
        assert self._pipe is not None
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._pipe.send(body)
        return (await answer)["result"]

    def _take(self, line: bytes) -> None:
        message = json.loads(line)
        if "method" not in message:
            self._waiting.pop(message["id"]).set_result(message)
        elif message["method"] == "notifications/resources/updated":
            self._on_update()


class _Pipe(asyncio.SubprocessProtocol):
    """A process that speaks in lines. What is sent within one turn of the loop is written at once."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._rest = b""
        self._out: list[bytes] = []
        self._exited = asyncio.Event()

    async def start(self, command: list[str]) -> None:
        loop = asyncio.get_running_loop()
        self._process, _ = await loop.subprocess_exec(lambda: self, *command, stderr=None)
        self._stdin = cast("asyncio.WriteTransport", self._process.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)

    def process_exited(self) -> None:
        self._exited.set()

    def send(self, line: bytes) -> None:
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(line)

    def _flush(self) -> None:
        self._stdin.write(b"\n".join([*self._out, b""]))
        self._out.clear()

    async def close(self) -> None:
        self._stdin.close()
        await self._exited.wait()
        self._process.close()


class _Http:
    """As many connections as there are requests at once, each used again."""

    def __init__(self, url: str) -> None:
        self._where, _, self._path = url.removeprefix("http://").partition("/")
        self._idle: list[_Exchange] = []
        self._session = b""
        self._stream: _Stream | None = None

    async def post(self, body: bytes) -> bytes:
        """The message that answers one."""
        exchange = self._idle.pop() if self._idle else await self._connected(_Exchange())
        head = self._head("POST", b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body))
        answer = await exchange.ask(head + body)
        self._idle.append(exchange)
        if not self._session and (found := answer.header(b"mcp-session-id")):
            self._session = b"Mcp-Session-Id: %b\r\nMCP-Protocol-Version: 2025-11-25\r\n" % found
        return answer.message

    async def listen(self, take: Callable[[bytes], None]) -> None:
        self._stream = stream = await self._connected(_Stream(take))
        stream.transport.write(self._head("GET"))

    async def close(self) -> None:
        exchange = await self._connected(_Exchange())
        await exchange.ask(self._head("DELETE"))
        for each in (exchange, *self._idle, *([self._stream] if self._stream else [])):
            each.transport.close()

    async def _connected(self, protocol: Any) -> Any:
        host, _, port = self._where.partition(":")
        await asyncio.get_running_loop().create_connection(lambda: protocol, host, int(port))
        return protocol

    def _head(self, verb: str, more: bytes = b"") -> bytes:
        first = f"{verb} /{self._path} HTTP/1.1\r\nHost: {self._where}\r\n"
        accept = b"Accept: application/json, text/event-stream\r\n"
        return first.encode() + accept + self._session + more + b"\r\n"


class _Answer:
    """One answer to a POST: a body, or a stream of one event in one chunk."""

    def __init__(self, head: bytes, body: bytes) -> None:
        self._head = head
        self._body = body

    def header(self, name: bytes) -> bytes:
        for line in self._head.split(b"\r\n"):
            if line.lower().startswith(name + b":"):
                return line.partition(b":")[2].strip()
        return b""

    @property
    def message(self) -> bytes:
        _, begins, data = self._body.partition(b"data: ")
        return data.partition(b"\n")[0] if begins and self._body[:1] != b"{" else self._body


class _Exchange(asyncio.Protocol):
    """A connection for one request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self._bytes = b""

    async def ask(self, request: bytes) -> _Answer:
        self._answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        head, ended, body = self._bytes.partition(b"\r\n\r\n")
        if not ended:
            return
        answer = _Answer(head, body)
        length = answer.header(b"content-length")
        if len(body) == int(length) if length else body.endswith(b"\r\n0\r\n\r\n"):
            self._bytes = b""
            self._answer.set_result(answer)


class _Stream(asyncio.Protocol):
    """The session's stream of updates: lines of data, whatever chunks they come in."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                self._take(line[6:])
