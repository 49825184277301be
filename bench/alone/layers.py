"""Where the time of a call over stdio goes: each layer on top of those below it, up to the whole.

.venv/bin/python -m bench.alone.layers
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import toolpost
from bench.alone.table import Table, micros
from bench.cells import serving
from bench.clients.toolpost import config
from toolpost.host.handle import tool_call
from toolpost.mcp.dispatcher import WireDispatcher
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.jsonrpc import decode, encode
from toolpost.mcp.line import LineDispatcher
from toolpost.mcp.peer import Peer
from toolpost.tooling.port import ToolCall

AT_ONCE = 64
COUNT = 6_400
REPEATS = 3
ARGUMENTS: dict[str, Any] = {"message": "hi"}
_ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "none", "version": "1"},
    },
    "tools/list": {"tools": []},
    "tools/call": {"content": [{"type": "text", "text": "hi"}]},
}
_ANSWER = encode({"jsonrpc": "2.0", "id": 0, "result": _ANSWERS["tools/call"]})


class NoServer:
    """A line that answers in the next turn of the loop. What that costs is in the floor too."""

    def __init__(self) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self._on_line: Callable[[bytes], None] = lambda _: None

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            asyncio.get_running_loop().call_soon(self._answer, line)

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_line = on_line

    def _answer(self, line: bytes) -> None:
        request = decode(line)
        if "id" in request:
            result = _ANSWERS.get(request["method"])
            answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": ""}}
            self._on_line(encode({"jsonrpc": "2.0", "id": request["id"], **answer}))


async def floor() -> None:
    """A future that a callback answers, and the JSON of both sides."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    line = encode({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"arguments": ARGUMENTS}})

    def come() -> None:
        decode(line)
        encode({"jsonrpc": "2.0", "id": 0, "result": _ANSWERS["tools/call"]})
        answer.set_result(decode(_ANSWER))

    loop.call_soon(come)
    await answer


async def cost(call: Callable[[], Awaitable[object]]) -> float:
    """Microseconds of CPU of one, while so many are made at once."""

    async def caller() -> None:
        for _ in range(COUNT // AT_ONCE):
            await call()

    async def once() -> float:
        begun = time.process_time()
        await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
        return (time.process_time() - begun) / COUNT * 1e6

    gc.disable()  # whom it meets is chance
    try:
        await once()
        return median([await once() for _ in range(REPEATS)])
    finally:
        gc.enable()


class _Connected:
    """In place of a connection: it is there."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def aclose(self) -> None:
        """There is nothing to end."""


def _no_task(func: Callable[..., Awaitable[object]], /, *args: object) -> None:
    raise NotImplementedError("no call of this server takes more than one request")


async def without_a_server() -> list[tuple[str, float]]:
    """The layers, from below."""
    costs = [("JSON, a future, a turn of the loop", await cost(floor))]
    peer = Peer(
        "it",
        dispatcher=LineDispatcher(NoServer()),
        timeout=300.0,
        handlers=Handlers(),
        describe_end=lambda: "has gone",
        start_task=_no_task,
    )
    async with peer.session:
        await peer.shake_hands(pinned=None, skip_probe=True)
        await peer.list_tools()
        dispatcher: WireDispatcher = peer._dispatcher  # pyright: ignore[reportPrivateUsage]: layers lie inside
        request = {"name": "echo", "arguments": ARGUMENTS}
        costs.append(("dispatcher", await cost(lambda: dispatcher.send_raw_request("tools/call", request))))
        call: ToolCall = tool_call("echo", ARGUMENTS, None)
        costs.append(("the SDK's session, limit, result", await cost(lambda: peer.call_tool(call))))
        for is_traced, name in ((False, "backend, handle"), (True, "trace")):
            nowhere = {"tooling": {"it": {"kind": "mcp", "transport": "stdio", "command": "none"}}}
            async with toolpost.open_host(nowhere, trace=is_traced) as host:
                it = host.tooling.get("it")
                backend: Any = it._backend  # pyright: ignore[reportPrivateUsage]
                backend._connection = _Connected(peer)
                costs.append((name, await cost(lambda: it.call_tool_blocking("echo", ARGUMENTS))))  # noqa: B023
    return costs


async def with_a_server() -> float:
    """The whole."""
    with serving("stdio") as target:
        async with toolpost.open_host(config(target)) as host:
            it = host.tooling.get("bench")
            await it.call_tool_blocking("echo", ARGUMENTS)
            return await cost(lambda: it.call_tool_blocking("echo", ARGUMENTS))


def tables() -> list[Table]:
    """The one table."""
    whole = asyncio.run(with_a_server())
    costs = [*asyncio.run(without_a_server()), ("pipes to a process, in place of that turn", whole)]
    rows: list[list[str]] = []
    below = 0.0
    for name, total in costs:
        rows.append([name, micros(total - below), micros(total)])
        below = total
    note = f"Microseconds of CPU of one call in place, of {AT_ONCE} at once, without Python's collector."
    return [Table("The layers of a call over stdio", note, ["", "its own", "up to here"], rows)]


if __name__ == "__main__":
    for each in tables():
        print(each.markdown())
