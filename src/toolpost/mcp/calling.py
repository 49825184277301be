"""A tool call under way: what its answer, or the lack of one, means. Brings the SDK's error with it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH

from toolpost.mcp import results
from toolpost.mcp.clock import Clock, Limits
from toolpost.mcp.faults import NotSent
from toolpost.mcp.promise import Onlooker, Promise
from toolpost.model import JsonObject, ToolResult
from toolpost.tooling.port import StartTask, ToolCall

Unsent = Callable[[ToolCall, float], Coroutine[Any, Any, ToolResult]]
"""Makes a call on another connection, since it has not been written on this one; told when it was begun."""


class Caller(Protocol):
    """What a call needs of the session that it is made in."""

    limits: Limits
    start_task: StartTask

    def onlooker_of(self, call: ToolCall) -> Onlooker | None:
        """Who is told of the progress of a call."""
        ...

    @property
    def knows_outputs(self) -> bool:
        """Whether the output schemas are known."""
        ...

    def check_output(self, raw: JsonObject, tool: str) -> None:
        """Raise `ServerError` where a result does not fit its tool's output schema."""
        ...

    async def checked(self, result: ToolResult, raw: JsonObject) -> ToolResult:
        """A result that fits its tool's output schema, which is asked for where it is not known."""
        ...

    async def go_on(self, call: ToolCall, came: JsonObject) -> ToolResult:
        """The rest of a call whose first answer asks for input."""
        ...

    async def call_anew(self, call: ToolCall) -> ToolResult:
        """A call that was refused before it was executed."""
        ...

    def translate(self, error: BaseException, what: str) -> Exception | None:
        """An error of the session as one of toolpost's."""
        ...


class Calling(Promise[ToolResult]):
    """The outcome of a call. Most take one request; the peer sees to those that take more."""

    __slots__ = ("_call", "_peer", "_unsent")

    def __init__(self, peer: Caller, call: ToolCall, clock: Clock, unsent: Unsent | None) -> None:
        super().__init__(peer.limits, clock, peer.onlooker_of(call))
        self._peer = peer
        self._call = call
        self._unsent = unsent

    def finish(self, came: JsonObject) -> None:
        peer, call = self._peer, self._call
        whole = results.whole(came)
        if whole is None:  # the server asks for input first
            self.hand_over(peer.start_task, peer.go_on, call, came)
            return
        result = results.tool_result(whole, call)
        if result.is_error:
            self.set_result(result)
        elif not peer.knows_outputs:
            self.hand_over(peer.start_task, peer.checked, result, whole)
        else:
            peer.check_output(whole, call.name)
            self.set_result(result)

    def fail(self, error: BaseException) -> None:
        peer, call = self._peer, self._call
        if isinstance(error, MCPError) and error.code == HEADER_MISMATCH:
            self.hand_over(peer.start_task, peer.call_anew, call)
            return
        told = peer.translate(error, f"call_tool {call.name!r}") or error
        if isinstance(told, NotSent) and self._unsent is not None:
            self.hand_over(peer.start_task, self._unsent, call, self.clock.started)
        else:
            self.set_exception(told)
