"""The dispatcher over lines of bytes: a message each. Brings the SDK with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Protocol

from mcp.shared.dispatcher import CallOptions
from mcp_types import RequestId

from toolpost.mcp.dispatcher import LineClosed, Pending, WireDispatcher, cancelled
from toolpost.mcp.jsonrpc import encode
from toolpost.model import JsonObject

_HEADER = re.compile(rb"Content-Length: *\d+$", re.IGNORECASE)
"""How a server begins that frames messages as language servers do."""


MAX_JOINED_BYTES = 64 * 1024
"""So much is written at once: a pipe does not hold more."""


class Line(Protocol):
    """What carries the bytes."""

    @property
    def writable(self) -> asyncio.Event:
        """Set while writing does not pile up."""
        ...

    def write(self, data: bytes) -> None:
        """Write without waiting; raises `BrokenPipeError` when the line is down."""
        ...

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Call `on_line` for each line that comes, `on_end` once at the end."""
        ...


class LineDispatcher(WireDispatcher):
    """A dispatcher over a `Line`."""

    kind = "stdio"
    in_order = True
    _source = "stdout"

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line
        self._turn = asyncio.Lock()
        """Held by the request that waits for the line at the head of the queue."""
        self._waiting = 0
        """How many requests are in that queue."""
        self._joined: list[bytes] = []
        """What goes out with the next turn of the loop, in one write: each costs as much as a whole call."""
        self._joined_requests: list[Pending] = []
        """The requests among that."""
        self._joined_bytes = 0

    def _listen(self) -> None:
        self._line.listen(self._take, self._end)

    def _skip(self, line: bytes) -> None:
        super()._skip(line)
        if not self._has_heard and _HEADER.match(line):
            self._fault = "puts Content-Length headers before its messages; over stdio each is one line"
            self._end()

    async def _send_request(self, message: JsonObject, pending: Pending, opts: CallOptions) -> None:
        if self._waiting or not self._line.writable.is_set():
            self._waiting += 1
            try:
                async with self._turn:  # nobody overtakes those who wait
                    await self._wait_writable()
                    return self._write_request(message, pending)
            finally:
                self._waiting -= 1
        return self._write_request(message, pending)

    async def _send_notification(self, message: JsonObject, opts: CallOptions) -> None:
        self._write(message)
        await self._line.writable.wait()

    async def _send_answer(self, message: JsonObject) -> None:
        await self._wait_writable()  # a server that asks and does not read is not written to for ever
        self._write(message)

    def _refuse_nowait(self, message: JsonObject) -> None:
        if self._line.writable.is_set():  # if not, nothing piles up for it
            self._write(message)

    def _give_up(self, wire_id: RequestId, opts: CallOptions) -> None:
        # MCP 2025-11-25, basic/utilities/cancellation; `initialize` must not be cancelled.
        if opts.get("cancel_on_abandon", True):
            self._write(cancelled(wire_id))

    async def _wait_writable(self) -> None:
        while not self._line.writable.is_set() and not self.ended.is_set():
            await self._line.writable.wait()

    def _write_request(self, message: JsonObject, pending: Pending) -> None:
        if self.ended.is_set():
            raise LineClosed(written=False, reason=self._fault)
        data = encode(message) + b"\n"
        if self._joined or len(self._pending) > 1:  # one that is alone is not kept waiting
            self._joined_requests.append(pending)
            self._join(data)
        elif self._write_now(data):
            pending.written = True
        else:
            raise LineClosed(written=False, reason=self._fault)

    def _write(self, message: JsonObject) -> None:
        """Write what has no answer; dropped where the line is down."""
        if self.ended.is_set():
            return
        data = encode(message) + b"\n"
        if self._joined:  # nothing overtakes
            self._join(data)
        else:
            self._write_now(data)

    def _join(self, data: bytes) -> None:
        if not self._joined:
            asyncio.get_running_loop().call_soon(self._flush)
        self._joined.append(data)
        self._joined_bytes += len(data)
        if self._joined_bytes > MAX_JOINED_BYTES:
            self._flush()

    def _flush(self) -> None:
        joined, requests = self._joined, self._joined_requests
        if not joined:
            return
        self._joined, self._joined_requests, self._joined_bytes = [], [], 0
        is_written = self._write_now(b"".join(joined))
        for pending in requests:
            pending.written = is_written
            if not is_written and not pending.answer.done():
                pending.answer.set_exception(LineClosed(written=False, reason=self._fault))

    def _write_now(self, data: bytes) -> bool:
        """Write; False where the line is down."""
        try:
            self._line.write(data)
        except BrokenPipeError:
            self.is_broken = True
            return False
        return True

    def _end(self) -> None:
        if not self.ended.is_set():
            self._flush()
        super()._end()
