"""Values of toolpost as the component binding takes them: records with kebab-case fields, JSON as text."""

from __future__ import annotations

import json
from typing import Any, assert_never

from wasmtime.component import Record, Variant

from toolpost.events import Envelope, Error, Event, ResourceListUpdated, ResourceUpdated, Shutdown
from toolpost.model import Json, ResourceContent, ResourceInfo, Tool, ToolResult


def text(value: str) -> str:
    """A string that a component can be given: without halves of surrogate pairs, which JSON may carry."""
    if value.isascii():
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def optional(value: str | None) -> str | None:
    """As `text`, of what may be absent."""
    return None if value is None else text(value)


def json_text(value: Json) -> str:
    """A JSON value as compact text, all of it ASCII."""
    return json.dumps(value, separators=(",", ":"))


def _optional_json(value: Json) -> str | None:
    return None if value is None else json_text(value)


def tool(each: Tool) -> Record:
    """The record `tool`."""
    return _record(
        name=text(each.name),
        description=optional(each.description),
        input_schema=json_text(each.input_schema),
        output_schema=_optional_json(each.output_schema),
        title=optional(each.title),
        annotations=_optional_json(each.annotations),
    )


def tool_result(result: ToolResult) -> Record:
    """The record `tool-result`."""
    return _record(
        name=text(result.name),
        arguments=text(result.arguments),
        value=text(result.value),
        content=json_text(result.content),
        structured_content=_optional_json(result.structured_content),
        is_error=result.is_error,
    )


def resource_info(info: ResourceInfo) -> Record:
    """The record `resource-info`."""
    return _record(
        uri=text(info.uri),
        name=text(info.name),
        description=optional(info.description),
        mime_type=optional(info.mime_type),
    )


def resource_content(content: ResourceContent) -> Record:
    """The record `resource-content`."""
    return _record(
        uri=text(content.uri),
        mime_type=optional(content.mime_type),
        content=text(content.content),
        encoding=content.encoding,
        parts=json_text(content.parts),
    )


def envelope(each: Envelope) -> Record:
    """The record `event-envelope`."""
    return _record(id=each.id, event=_event(each.event))


def _event(event: Event) -> Variant:
    match event:
        case ToolResult():
            return Variant(event.kind, tool_result(event))
        case Error():
            return Variant(event.kind, text(event.text))
        case ResourceListUpdated():
            return Variant(event.kind, [resource_info(each) for each in event.resources])
        case ResourceUpdated():
            return Variant(event.kind, resource_content(event))
        case Shutdown():
            return Variant(event.kind)
        case _:
            assert_never(event)


def _record(**fields: Any) -> Record:
    record = Record()
    vars(record).update({name.replace("_", "-"): value for name, value in fields.items()})
    return record
