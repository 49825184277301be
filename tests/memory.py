"""Kind `memory`: a tool server in memory, and the test's hands on it.

A user's own kind in every respect: it stands on the public names alone and is registered as anyone would
register theirs. `Memory` is the far end. It offers four tools:

    echo     answers at once with its argument `message`
    hold     waits until the test answers, fails or cancels it: `memory.held`
    fail     is refused with a `ServerError`
    break    raises what no backend should

and resources, whose changes it tells its subscribers. What else can go wrong is an attribute to set.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel

import toolpost
from toolpost import CHANGED

KIND = "memory"


class Held:
    """A tool call that has reached the far end and waits for the test."""

    def __init__(self, call: toolpost.ToolCall) -> None:
        self.call = call
        self.outcome: asyncio.Future[toolpost.ToolResult] = asyncio.get_running_loop().create_future()
        self.was_cancelled = False
        """The caller has taken it back, and the far end knows."""
        self.cancelled_itself = False

    @property
    def is_waiting(self) -> bool:
        return not (self.outcome.done() or self.was_cancelled)

    def note_end(self, task: asyncio.Task[toolpost.ToolResult]) -> None:
        self.was_cancelled = task.cancelled() and not self.cancelled_itself

    def answer(self, value: str = "answer") -> None:
        if self.is_waiting:
            self.outcome.set_result(result(self.call, value))

    def fail(self, error: BaseException) -> None:
        if self.is_waiting:
            self.outcome.set_exception(error)

    def cancel_itself(self) -> None:
        """The backend's own doing, which nobody asked for."""
        self.cancelled_itself = self.outcome.cancel()


class Subscription:
    """One open subscription, as the far end keeps it."""

    def __init__(self, uri: str | None) -> None:
        self.uri = uri
        self._changes: deque[toolpost.Change] = deque()
        self._end: BaseException | None = None
        self._news = anyio.Event()

    def change(self) -> None:
        """Level-triggered: changes that nobody has seen yet fold into one."""
        if CHANGED not in self._changes:
            self._changes.append(CHANGED)
        self._news.set()

    def publish(self, value: toolpost.Change) -> None:
        """A finished value, delivered as it is: none folds into another."""
        self._changes.append(value)
        self._news.set()

    def end(self, error: BaseException | None = None) -> None:
        """No more changes; or, with an error, the stream breaks."""
        self._end = error or StopAsyncIteration()
        self._news.set()

    async def changes(self) -> AsyncGenerator[toolpost.Change]:
        while True:
            while self._changes:
                yield self._changes.popleft()
            if isinstance(self._end, StopAsyncIteration):
                return
            if self._end is not None:
                raise self._end
            self._news = anyio.Event()
            await self._news.wait()


class Memory:
    """The far end."""

    drives_calls = False
    """Calls are futures: under way without anybody who awaits them."""

    def __init__(self) -> None:
        self.resources = {"memo:a": "a0", "memo:b": "b0"}
        self.calls: list[toolpost.ToolCall] = []
        """Every tool call that reached it, in order."""
        self.held: list[Held] = []
        """The calls of tool `hold`, answered or not, in order."""
        self.subscriptions: list[Subscription] = []
        self.refusals: dict[str | None, Exception] = {}
        """By URI (None: the list): why a subscription to it is refused."""
        self.reads_go_on = anyio.Event()
        self.reads_go_on.set()
        self.read_failure: Exception | None = None
        self.on_call: Callable[[toolpost.ToolCall], Any] | None = None
        """Takes the place of `call_tool`, synchronous part included."""
        self.on_close: Callable[[], Awaitable[None]] | None = None
        self.on_build: Callable[[], None] | None = None
        self.under_way = 0
        """Operations that have begun and not ended."""
        self.built = 0
        self.closed = 0
        self.site: toolpost.Site | None = None
        self.log: list[str] = []
        """What reached it, in words, for tests of order."""
        self._arrived = anyio.Event()

    # -- the test's hands --------------------------------------------------------------------------

    def change(self, uri: str, text: str) -> None:
        """A resource's content changes, or comes to be."""
        is_new = uri not in self.resources
        self.resources[uri] = text
        self._tell(uri)
        if is_new:
            self._tell(None)

    def remove(self, uri: str) -> None:
        """A resource goes: its subscribers and those of the list are told."""
        del self.resources[uri]
        self._tell(uri)
        self._tell(None)

    def lose_connection(self) -> None:
        """Calls under way fail; subscriptions refresh, since they may have missed something."""
        for held in self.held:
            held.fail(toolpost.ConnectionLost("tooling 'memo': the connection was lost"))
        for subscription in self.subscriptions:
            subscription.change()

    def hold_reads(self) -> None:
        """From now on reading waits."""
        self.reads_go_on = anyio.Event()

    def release_reads(self) -> None:
        self.reads_go_on.set()

    async def wait_held(self, count: int = 1) -> list[Held]:
        """The calls that wait, once there are `count` of them."""
        while len(waiting := [held for held in self.held if held.is_waiting]) < count:
            await self._next_arrival()
        return waiting

    async def wait_subscribed(self, count: int = 1) -> list[Subscription]:
        while len(self.subscriptions) < count:
            await self._next_arrival()
        return self.subscriptions

    async def _next_arrival(self) -> None:
        self._arrived = anyio.Event()
        await self._arrived.wait()

    def _tell(self, uri: str | None) -> None:
        for subscription in self.subscriptions:
            if subscription.uri == uri:
                subscription.change()

    # -- what it does ------------------------------------------------------------------------------

    def call(self, call: toolpost.ToolCall) -> Any:
        self.calls.append(call)
        self.log.append(f"call {call.name}")
        if self.on_call is not None:
            return self.on_call(call)
        if call.name == "hold":
            held = Held(call)
            self.held.append(held)
            self._arrived.set()
            return self._driven(self._outcome(held), held)
        return self._driven(self._answer(call))

    def _driven(self, outcome: Coroutine[Any, Any, toolpost.ToolResult], held: Held | None = None) -> Any:
        if not self.drives_calls:
            return outcome
        task = asyncio.ensure_future(outcome)
        if held is not None:  # cancelled before its first turn, the task never begins
            task.add_done_callback(held.note_end)
        return task

    async def _outcome(self, held: Held) -> toolpost.ToolResult:
        with self._working():
            try:
                return await held.outcome
            except asyncio.CancelledError:
                if not held.cancelled_itself:
                    held.was_cancelled = True
                    self.log.append(f"cancelled {held.call.name}")
                raise

    async def _answer(self, call: toolpost.ToolCall) -> toolpost.ToolResult:
        with self._working():
            match call.name:
                case "echo":
                    return result(call, str(call.arguments.get("message", "")))
                case "break":
                    raise LookupError("the far end is out of order")
                case "fail":
                    raise toolpost.ServerError(
                        "tooling 'memo': call_tool 'fail': refused", code=-32602, data={"why": "to see"}
                    )
                case _:
                    raise toolpost.ServerError(
                        f"tooling 'memo': call_tool {call.name!r}: unknown tool", code=-32602
                    )

    def list(self) -> list[toolpost.ResourceInfo]:
        return [toolpost.ResourceInfo(uri=uri, name=uri) for uri in self.resources]

    async def read(self, uri: str | None) -> Any:
        """The content of a resource; None reads the list."""
        with self._working():
            await anyio.lowlevel.checkpoint()
            await self.reads_go_on.wait()
            if self.read_failure is not None:
                raise self.read_failure.with_traceback(None)  # raised often: it must not gather frames
            if uri is None:
                return self.list()
            if uri not in self.resources:
                raise toolpost.ResourceNotFound(f"tooling 'memo': no resource {uri!r}", code=-32002)
            return toolpost.ResourceContent(uri=uri, mime_type="text/plain", content=self.resources[uri])

    @asynccontextmanager
    async def subscribe(self, uri: str | None) -> AsyncGenerator[AsyncIterator[toolpost.Change]]:
        with self._working():
            await anyio.lowlevel.checkpoint()
            if uri in self.refusals:
                raise self.refusals[uri].with_traceback(None)
            subscription = Subscription(uri)
            self.subscriptions.append(subscription)
            self._arrived.set()
            try:
                yield subscription.changes()
            finally:
                self.subscriptions.remove(subscription)
                self.log.append(f"unsubscribed {uri}")

    def _working(self) -> _Working:
        return _Working(self)


class _Working:
    """Counts what is under way."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __enter__(self) -> None:
        self._memory.under_way += 1

    def __exit__(self, *_: object) -> None:
        self._memory.under_way -= 1


class MemoryBackend:
    """One tooling of kind `memory`: the port on one side, the far end on the other."""

    kind = KIND

    def __init__(self, memory: Memory, site: toolpost.Site) -> None:
        self._memory = memory
        memory.site = site
        memory.built += 1
        if memory.on_build is not None:
            memory.on_build()

    async def list_tools(self) -> list[toolpost.Tool]:
        return [
            toolpost.Tool(name=name, input_schema={"type": "object"})
            for name in ("echo", "hold", "fail", "break")
        ]

    def call_tool(self, call: toolpost.ToolCall) -> Awaitable[toolpost.ToolResult]:
        return self._memory.call(call)

    async def list_resources(self) -> list[toolpost.ResourceInfo]:
        return await self._memory.read(None)

    async def read_resource(self, uri: str) -> toolpost.ResourceContent:
        return await self._memory.read(uri)

    def subscribe_resource_list(self) -> toolpost.Changes:
        return self._memory.subscribe(None)

    def subscribe_resource(self, uri: str) -> toolpost.Changes:
        return self._memory.subscribe(uri)

    async def aclose(self) -> None:
        self._memory.closed += 1
        self._memory.log.append("aclose")
        if self._memory.on_close is not None:
            await self._memory.on_close()


def result(call: toolpost.ToolCall, value: str) -> toolpost.ToolResult:
    """An answer as an MCP server would give it."""
    return toolpost.ToolResult(
        name=call.name, arguments=call.text, value=value, content=[{"type": "text", "text": value}]
    )


def config(*memories: Memory, tunables: dict[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    """A configuration shaped like the TOML: toolings `memo`, `memo2`, … at these far ends."""
    names = ["memo", *(f"memo{number}" for number in range(2, len(memories) + 1))]
    toolings = {name: {"kind": KIND, "far_end": memory} for name, memory in zip(names, memories, strict=True)}
    return {"tooling": toolings, "tunables": tunables or {}, **tables}


def build(params: dict[str, Any], site: toolpost.Site) -> MemoryBackend:
    """The factory."""
    return MemoryBackend(params["far_end"], site)


toolpost.register_tooling(KIND, build)
