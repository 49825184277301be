"""Kind `mock`: the port's operations on a script.

A tool call takes its step inside the agent's call; then come its gate, the delay, and the answer. Each
subscription replays the steps that are for it, from the first; the tooling's state changes when a step's
envelope enters the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar, cast

import anyio
import anyio.lowlevel

from toolpost.errors import ResourceNotFound, ScriptError, ServerError, ToolpostError
from toolpost.events import Error, ResourceListUpdated, ResourceUpdated
from toolpost.expect.event import EventPattern, parse_event
from toolpost.mock.gates import Gates
from toolpost.mock.params import START, CallStep, ContentStep, ListStep, MockParams
from toolpost.mock.script import Script, Taken, answer, content_of
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool, ToolResult
from toolpost.secret import get_logger
from toolpost.tooling.port import Change, Changes, Site, ToolCall

SCRIPTED_ERROR = -32000
"""The code of an error that a step scripts: the first of those that JSON-RPC leaves to servers."""
NOT_FOUND = -32002

_log = get_logger("toolpost.mock")
S = TypeVar("S", ListStep, ContentStep)


@dataclass(slots=True)
class RecordedCall:
    """A tool call that a mock was asked for."""

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
        self._script = Script(site.name, params.tool_calls)
        self._resources = [each.info() for each in params.initial_resource_list]
        self._contents = {
            uri: ResourceContent(uri=uri, mime_type=self._mime_type(uri), content=text)
            for uri, text in params.initial_resource_contents.items()
        }
        steps = [*params.tool_calls, *params.resource_list_updates, *params.resource_content_updates]
        self._gate_of = {id(step): _gate(step.after) for step in steps}
        self._gates = Gates(site.name, filter(None, self._gate_of.values()), site.trace)
        self._waiting: dict[object, CallStep | ListStep | ContentStep] = {}
        self.calls: list[RecordedCall] = []
        """Every tool call that was made, in order."""
        self._warn_of_unlisted()

    # -- what tests look at ------------------------------------------------------------------------

    @property
    def remaining(self) -> list[CallStep]:
        """The steps of `tool_calls` that no call has taken."""
        return self._script.remaining

    @property
    def waiting(self) -> list[CallStep | ListStep | ContentStep]:
        """The steps that have been reached and wait for their gate."""
        return list(self._waiting.values())

    # -- the port ----------------------------------------------------------------------------------

    async def list_tools(self) -> list[Tool]:
        await anyio.lowlevel.checkpoint()
        return [
            Tool(
                name=each.name,
                description=each.description,
                input_schema=each.input_schema,
                output_schema=each.output_schema,
                title=each.title,
                annotations=each.annotations,
            )
            for each in self._params.tools
        ]

    def call_tool(self, call: ToolCall) -> Awaitable[ToolResult]:
        recorded = RecordedCall(call.agent, call.name, call.arguments)
        self.calls.append(recorded)
        try:
            taken = self._script.take(call)
        except ScriptError as error:
            return self._recorded(recorded, _raising(error))
        return self._recorded(recorded, self._play(taken, call))

    async def list_resources(self) -> list[ResourceInfo]:
        await anyio.lowlevel.checkpoint()
        return list(self._resources)

    async def read_resource(self, uri: str) -> ResourceContent:
        await anyio.lowlevel.checkpoint()
        if uri not in self._contents:
            known = ", ".join(repr(each) for each in sorted(self._contents)) or "none"
            raise ResourceNotFound(
                f"tooling {self._name!r}: read_resource {uri!r}: no content; this mock has some for: {known}",
                code=NOT_FOUND,
            )
        return self._contents[uri]

    def subscribe_resource_list(self) -> Changes:
        return self._replay(self._params.resource_list_updates, self._list_change, self._apply_list)

    def subscribe_resource(self, uri: str) -> Changes:
        steps = [step for step in self._params.resource_content_updates if step.uri == uri]
        return self._replay(steps, self._content_change, self._apply_content)

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()

    # -- tool calls --------------------------------------------------------------------------------

    async def _play(self, taken: Taken, call: ToolCall) -> ToolResult:
        step = taken.step
        await self._reach(step)
        if step.error is not None:
            raise ServerError(
                f"tooling {self._name!r}: call_tool {call.name!r}: {step.error}", code=SCRIPTED_ERROR
            )
        return answer(step, call)

    async def _recorded(self, recorded: RecordedCall, outcome: Awaitable[ToolResult]) -> ToolResult:
        try:
            recorded.result = await outcome
        except ToolpostError as error:
            recorded.error = str(error)
            raise
        return recorded.result

    # -- subscriptions -----------------------------------------------------------------------------

    def _replay(
        self, steps: Sequence[S], change_of: Callable[[S], Change], apply: Callable[[S], None]
    ) -> AbstractAsyncContextManager[AsyncIterator[Change]]:
        async def changes() -> AsyncGenerator[Change]:
            for step in steps:
                await self._reach(step)
                yield change_of(step)
                # The pump has put the envelope into the inbox and asks for the next: nothing came between.
                if step.error is None:
                    apply(step)
            await anyio.sleep_forever()  # no more steps: open and silent

        @asynccontextmanager
        async def subscription() -> AsyncGenerator[AsyncIterator[Change]]:
            async with aclosing(changes()) as stream:
                yield stream

        return subscription()

    async def _reach(self, step: CallStep | ListStep | ContentStep) -> None:
        """Wait as a step does before it fires: for its gate, then the delay; for ever if it is pending."""
        here = object()
        self._waiting[here] = step
        try:
            await self._gates.wait(self._gate_of[id(step)])
        finally:
            del self._waiting[here]
        await anyio.sleep(self._delay)
        if step.pending:
            await anyio.sleep_forever()

    def _list_change(self, step: ListStep) -> Change:
        if step.error is not None:
            return Error(f"tooling {self._name!r}: subscribe_resource_list: {step.error}")
        return ResourceListUpdated([each.info() for each in step.resources or ()])

    def _apply_list(self, step: ListStep) -> None:
        self._resources = [each.info() for each in step.resources or ()]

    def _content_change(self, step: ContentStep) -> Change:
        if step.error is not None:
            return Error(f"tooling {self._name!r}: subscribe_resource {step.uri!r}: {step.error}")
        content = content_of(step, self._mime_type(step.uri))
        return ResourceUpdated(
            uri=content.uri, mime_type=content.mime_type, content=content.content, encoding=content.encoding
        )

    def _apply_content(self, step: ContentStep) -> None:
        self._contents[step.uri] = content_of(step, self._mime_type(step.uri))

    # -- inside ------------------------------------------------------------------------------------

    def _mime_type(self, uri: str) -> str | None:
        """As the current list has it."""
        return next((each.mime_type for each in self._resources if each.uri == uri), None)

    def _warn_of_unlisted(self) -> None:
        listed = {each.uri for each in self._params.initial_resource_list}
        for step in self._params.resource_list_updates:
            listed.update(each.uri for each in step.resources or ())
        for index, step in enumerate(self._params.resource_content_updates):
            if step.uri not in listed:
                _log.warning(
                    "tooling %r: resource_content_updates[%d]: no list ever names %r",
                    self._name,
                    index,
                    step.uri,
                )


def _gate(after: Json) -> EventPattern | None:
    """What a step waits for; None is nothing."""
    return None if after == START else parse_event(cast("JsonObject", after), may_name_agent=True)


async def _raising(error: ScriptError) -> ToolResult:
    await anyio.lowlevel.checkpoint()
    raise error
