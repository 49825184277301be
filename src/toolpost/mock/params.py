"""The keys of `kind = "mock"`, and what must hold between them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from toolpost.expect.event import parse_event
from toolpost.expect.pattern import PatternError, parse, show_path
from toolpost.model import Encoding, Json, JsonObject, ResourceInfo, Tool

_AFTER = Annotated[
    Json,
    Meta(
        description='What must have been seen in the run before: "start" (nothing), or a pattern of an event.'
    ),
]
_ERROR = Annotated[str | None, Meta(description="Fail with this text instead.")]
_PENDING = Annotated[bool, Meta(description="Never answer.")]
START = "start"


class ToolTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool that `list_tools` gives."""

    name: Annotated[str, Meta(description="What it is called by.")]
    description: Annotated[str | None, Meta(description="What it does.")] = None
    input_schema: Annotated[JsonObject, Meta(description="JSON Schema of its arguments.")] = {}
    output_schema: Annotated[
        JsonObject | None, Meta(description="JSON Schema of its structured content.")
    ] = None
    title: Annotated[str | None, Meta(description="Its name for people.")] = None
    annotations: Annotated[JsonObject | None, Meta(description="Hints, as MCP JSON.")] = None

    def tool(self) -> Tool:
        """As `list_tools` gives it."""
        return Tool(
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            title=self.title,
            annotations=self.annotations,
        )


class ResourceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One resource that a list names."""

    uri: Annotated[str, Meta(description="What it is read by.")]
    name: Annotated[str, Meta(description="Its name.")]
    description: Annotated[str | None, Meta(description="What it is.")] = None
    mime_type: Annotated[str | None, Meta(description="Its media type, such as text/plain.")] = None

    def info(self) -> ResourceInfo:
        """As `list_resources` gives it."""
        return ResourceInfo(
            uri=self.uri, name=self.name, description=self.description, mime_type=self.mime_type
        )


class CallStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the next tool call gets."""

    name: Annotated[str, Meta(description="The tool that must be called.")]
    arguments: Annotated[Json, Meta(description="A pattern that the call's arguments must match.")] = None
    result: Annotated[str | None, Meta(description="The text that it answers.")] = None
    content: Annotated[list[JsonObject] | None, Meta(description="Its content blocks, as MCP JSON.")] = None
    structured_content: Annotated[Json, Meta(description="Its structured content.")] = None
    is_error: Annotated[bool, Meta(description="The tool reports a failure of its own.")] = False
    error: _ERROR = None
    pending: _PENDING = False
    after: _AFTER = START


class ListStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of the list of resources."""

    resources: Annotated[list[ResourceTable] | None, Meta(description="The whole new list.")] = None
    error: _ERROR = None
    pending: _PENDING = False
    after: _AFTER = START


class ContentStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change of a resource's content."""

    uri: Annotated[str, Meta(description="Which resource changes.")]
    content: Annotated[str | None, Meta(description="Its new content.")] = None
    encoding: Annotated[Encoding, Meta(description="Whether `content` is text or base64.")] = "text"
    error: _ERROR = None
    pending: _PENDING = False
    after: _AFTER = START


class MockParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tooling of kind `mock`."""

    tools: Annotated[list[ToolTable], Meta(description="The tools that it lists.")] = []
    tool_calls: Annotated[
        list[CallStep], Meta(description="What tool calls get, in the order in which they are made.")
    ] = []
    initial_resource_list: Annotated[
        list[ResourceTable], Meta(description="The resources that it lists at first.")
    ] = []
    initial_resource_contents: Annotated[
        dict[str, str], Meta(description="What reading gives at first, by URI.")
    ] = {}
    resource_list_updates: Annotated[
        list[ListStep], Meta(description="Changes of the list, replayed by each subscription to it.")
    ] = []
    resource_content_updates: Annotated[
        list[ContentStep], Meta(description="Changes of contents, replayed by each subscription to that URI.")
    ] = []
    delay_ms: Annotated[
        float, Meta(ge=0, description="How long every step waits before it fires, in milliseconds.")
    ] = 10.0


_ANSWERS: dict[str, tuple[type[msgspec.Struct], tuple[str, ...]]] = {
    "tool_calls": (CallStep, ("result", "content", "structured_content")),
    "resource_list_updates": (ListStep, ("resources",)),
    "resource_content_updates": (ContentStep, ("content",)),
}
"""By list of steps: what a step is, and the keys that say what it brings."""


def check(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What single keys cannot show: gates and patterns, and what a step brings."""
    for steps, (struct, answers) in _ANSWERS.items():
        listed: Any = table.get(steps)
        for index, step in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else []):
            # a step with an unknown key has been told of: what it lacks is likely to be a misspelling
            if isinstance(step, dict) and set(cast("JsonObject", step)) <= set(struct.__struct_fields__):
                for key, problem in _check_step(cast("JsonObject", step), answers):
                    yield f"{steps}[{index}]" + (f".{key}" if key else ""), problem


def _check_step(step: JsonObject, answers: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    given = [key for key in answers if step.get(key) is not None]
    instead = [key for key in ("error", "pending") if step.get(key)]
    if len(instead) == 2:
        yield "", "error and pending exclude each other; keep one"
    elif instead and given:
        yield "", f"{instead[0]} and {given[0]} exclude each other; keep one"
    elif not instead and not given:
        yield "", f"brings nothing; expected {', '.join(answers)}, error or pending"
    if (problem := after_problem(step.get("after", START))) is not None:
        yield problem
    if step.get("arguments") is not None:
        try:
            parse(step["arguments"], ("arguments",))
        except PatternError as error:
            yield show_path(error.path), error.problem
    if step.get("encoding") == "base64" and isinstance(step.get("content"), str):
        try:
            base64.b64decode(step["content"], validate=True)
        except binascii.Error as error:
            yield "content", f"is not base64: {error}"


def after_problem(after: Json) -> tuple[str, str] | None:
    """What is wrong with a gate, and where; None if nothing is."""
    if after == START:
        return None
    if not isinstance(after, dict):
        return "after", f'expected "start" or a pattern such as {{ kind = "call" }}, found {after!r}'
    try:
        parse_event(cast("JsonObject", after), ("after",), may_name_agent=True)
    except PatternError as error:
        return show_path(error.path), error.problem
    return None
