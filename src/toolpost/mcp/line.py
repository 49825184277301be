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
                    return self._write_or_raise(message)
            finally:
                self._waiting -= 1
        return self._write_or_raise(message)

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

    def _write_or_raise(self, message: JsonObject) -> None:
        if not self._write(message):
            raise LineClosed(written=False, reason=self._fault)

    def _write(self, message: JsonObject) -> bool:
        """Write a message; False where the line is down."""
        if self.ended.is_set():
            return False
        try:
            self._line.write(encode(message) + b"\n")
        except BrokenPipeError:
            return False
        return True
