"""The soak's server over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from tests.soak.server import COMPLETE, Follower, Message, Server

MAX_LINE_BYTES = 1 << 24


async def serve(server: Server) -> None:
    """Answer until stdin ends."""
    lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    client = Follower(_write)
    if not server.is_modern:
        server.followers[client] = None
    tasks = {asyncio.create_task(server.watch())}

    async def take(message: Message) -> None:
        if message.get("method") == "notifications/cancelled":
            _forget_stream(server, message["params"]["requestId"])
        asker = _stream(server, message) if message.get("method") == "subscriptions/listen" else client
        if (answer := await server.answer(message, asker)) is not None:
            _write(answer)

    while line := await lines.readline():
        task = asyncio.create_task(take(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def _stream(server: Server, request: Message) -> Follower:
    """A stream of its own on the one line: ended by an answer to the request that opened it."""

    def hang_up() -> None:
        del server.followers[stream]
        _write({"jsonrpc": "2.0", "id": request["id"], "result": COMPLETE})

    stream = Follower(_write, stream=request["id"], hang_up=hang_up)
    return stream


def _forget_stream(server: Server, request_id: object) -> None:
    for each in [each for each in server.followers if each.stream == request_id]:
        del server.followers[each]


def _write(message: Message) -> None:
    """Write whole; the pipe's reader is waited for."""
    view = memoryview(json.dumps(message).encode() + b"\n")
    while view:
        view = view[os.write(1, view) :]
