"""Kind `mock`: the port's operations on a script.

A tool call takes its step inside the agent's call; then come its gate, the delay, and the answer. Each
subscription replays the steps that are for it, from the first; the tooling's state changes when a step's
envelope enters the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence, Set
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

import anyio
import anyio.lowlevel

from toolpost.errors import RequestTimeout, ScriptError, ServerError, ToolpostError
from toolpost.mock.gates import Gates
from toolpost.mock.params import CallStep, ContentStep, ListStep, MockParams
from toolpost.mock.resources import Resources, unlisted
from toolpost.mock.script import Script, answer
from toolpost.mock.steps import PlacedStep, Step, place_steps
from toolpost.model import JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.secret import get_logger
from toolpost.tooling.port import Change, Changes, Site, ToolCall

SCRIPTED_ERROR = -32000
"""The code of an error that a step scripts: the first of those that JSON-RPC leaves to servers."""

_log = get_logger("toolpost.mock")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call that a mock was asked for, as it stood when you looked."""

    agent: str
    name: str
    arguments: JsonObject
    result: ToolResult | None = None
    error: str | None = None
    """Why it failed. Neither this nor a result: it is still open, or was cancelled."""


class MockBackend:
    """One tooling of kind `mock`."""

    kind = "mock"

    def __init__(self, params: MockParams, site: Site) -> None:
        self._name = site.name
        self._params = params
        self._delay = params.delay_ms / 1000
        self._steps = place_steps(params)
        self._script = Script(site.name, self._steps.calls)
        self._resources = Resources(site.name, params)
        self._gates = Gates(site.name, self._steps.gates(), site.trace)
        self._calls: list[RecordedCall] = []
        self._waiting: dict[object, str] = {}
        """The place of a step, by who waits for it: several subscriptions may wait for one."""
        self._reached: set[str] = set()
        """The places of the steps that a call or a subscription has come to."""
        self._fired: set[str] = set()
        """The places of the steps that subscriptions have come past."""
        for index, uri in unlisted(params):
            _log.warning(
                "tooling %r: resource_content_updates[%d]: no list ever names %r", self._name, index, uri
            )

    # -- what tests look at: copies, so that another thread may look while the loop goes on ----------

    @property
    def calls(self) -> list[RecordedCall]:
        """Every tool call that was made, in order."""
        return list(self._calls)

    @property
    def total(self) -> int:
        """How many steps `tool_calls` has."""
        return len(self._steps.calls)

    @property
    def taken(self) -> int:
        """How many steps of `tool_calls` have been taken."""
        return self._script.taken

    @property
    def remaining(self) -> list[PlacedStep[CallStep]]:
        """The steps of `tool_calls` that no call has taken."""
        return self._script.remaining

    @property
    def waiting(self) -> list[PlacedStep[Step]]:
        """The steps that a call or a subscription waits for and whose gate is closed."""
        return self._closed(set(self._waiting.values()))

    @property
    def held(self) -> list[PlacedStep[Step]]:
        """The steps that have been reached and whose gate is closed, whoever still waits for them.

        An agent's end cancels all that it waited for; this is what explains a run that is over.
        """
        return self._closed(self._reached)

    @property
    def unused(self) -> list[PlacedStep[Step]]:
        """The steps that no call has taken, and those that no subscription has come past."""
        replayed = (*self._steps.lists, *self._steps.contents)
        return [*self.remaining, *(placed for placed in replayed if placed.place not in self._fired)]

    def _closed(self, places: Set[str]) -> list[PlacedStep[Step]]:
        return [
            placed
            for placed in self._steps
            if placed.place in places and placed.gate is not None and not self._gates.is_open(placed.gate)
        ]

    # -- the port ----------------------------------------------------------------------------------

    async def list_tools(self) -> list[Tool]:
        await anyio.lowlevel.checkpoint()
        return [each.tool() for each in self._params.tools]

    def call_tool(self, call: ToolCall) -> Awaitable[ToolResult]:
        index = len(self._calls)
        self._calls.append(RecordedCall(call.agent, call.name, call.arguments))
        try:
            placed = self._script.take(call)
        except ScriptError as error:
            return self._recorded(index, _raising(error))
        return self._recorded(index, self._play(placed, call))

    async def list_resources(self) -> list[ResourceInfo]:
        await anyio.lowlevel.checkpoint()
        return list(self._resources.listed)

    async def read_resource(self, uri: str) -> ResourceContent:
        await anyio.lowlevel.checkpoint()
        return self._resources.read(uri)

    def subscribe_resource_list(self) -> Changes:
        return self._subscription(self._steps.lists)

    def subscribe_resource(self, uri: str) -> Changes:
        return self._subscription([placed for placed in self._steps.contents if placed.step.uri == uri])

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()

    # -- inside ------------------------------------------------------------------------------------

    async def _play(self, placed: PlacedStep[CallStep], call: ToolCall) -> ToolResult:
        what = f"tooling {self._name!r}: call_tool {call.name!r}"
        with anyio.move_on_after(call.timeout) as limit:
            await self._reach(placed)
            if placed.step.pending:
                await anyio.sleep_forever()
        if limit.cancelled_caught:
            raise RequestTimeout(f"{what}: no answer within {call.timeout:g} s")
        if placed.step.error is not None:
            raise ServerError(f"{what}: {placed.step.error}", code=SCRIPTED_ERROR)
        return answer(placed.step, call)

    async def _recorded(self, index: int, outcome: Awaitable[ToolResult]) -> ToolResult:
        try:
            result = await outcome
        except ToolpostError as error:
            self._calls[index] = replace(self._calls[index], error=str(error))
            raise
        self._calls[index] = replace(self._calls[index], result=result)
        return result

    @asynccontextmanager
    async def _subscription(
        self, steps: Sequence[PlacedStep[ListStep | ContentStep]]
    ) -> AsyncGenerator[AsyncIterator[Change]]:
        async with aclosing(self._replay(steps)) as stream:
            yield stream

    async def _replay(self, steps: Sequence[PlacedStep[ListStep | ContentStep]]) -> AsyncGenerator[Change]:
        for placed in steps:
            await self._reach(placed)
            if placed.step.pending:
                self._fired.add(placed.place)  # all that it has to do is done
                break
            yield self._resources.change(placed.step)
            # The pump has put the envelope into the inbox and asks for the next: nothing came between.
            self._fired.add(placed.place)
            self._resources.apply(placed.step)
        await anyio.sleep_forever()  # no more steps: open and silent

    async def _reach(self, placed: PlacedStep[Step]) -> None:
        """Wait as a step does before it fires: for its gate, then the delay."""
        here = object()
        self._waiting[here] = placed.place
        self._reached.add(placed.place)
        try:
            await self._gates.wait(placed.gate)
        finally:
            del self._waiting[here]
        await anyio.sleep(self._delay)


async def _raising(error: ScriptError) -> ToolResult:
    await anyio.lowlevel.checkpoint()
    raise error
