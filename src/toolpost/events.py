"""What arrives in an inbox: a closed union of events, each in an envelope with its source's UUID.

    match envelope.event:
        case ToolResult(name=name, value=value): ...
        case ResourceUpdated(uri=uri, content=content): ...
        case ResourceListUpdated(resources=resources): ...
        case Error(text=text): ...
        case Shutdown(): ...

`event.kind` is the event's kebab-case name, as traces and patterns write it.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, ToolResult, to_json


class Error(msgspec.Struct, frozen=True):
    """A queued call or a subscription failed, or a read-back after an update did."""

    kind: ClassVar[Literal["error"]] = "error"

    text: str
    """Names the tooling, the operation and the cause."""


class ResourceListUpdated(msgspec.Struct, frozen=True):
    """The list of resources changed; here is the new one."""

    kind: ClassVar[Literal["resource-list-updated"]] = "resource-list-updated"

    resources: list[ResourceInfo]


class ResourceUpdated(ResourceContent, frozen=True, kw_only=True):
    """A subscribed resource changed; here is its content, read after the change."""

    kind: ClassVar[Literal["resource-updated"]] = "resource-updated"


class Shutdown(msgspec.Struct, frozen=True):
    """The host is ending. The last envelope of every inbox; its id is empty."""

    kind: ClassVar[Literal["shutdown"]] = "shutdown"


Event: TypeAlias = ToolResult | Error | ResourceListUpdated | ResourceUpdated | Shutdown


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """One item of an inbox."""

    id: str
    """UUID of the queued call or subscription that it belongs to."""
    event: Event


def payload(event: Event) -> Json:
    """The event's own fields as JSON: the array of a list event, the text of an error."""
    match event:
        case Error(text=text):
            return text
        case ResourceListUpdated(resources=resources):
            return [to_json(resource) for resource in resources]
        case _:
            return to_json(event)


def to_json_envelope(envelope: Envelope) -> JsonObject:
    """An envelope as one JSON object."""
    return {"id": envelope.id, "event": envelope.event.kind, "payload": payload(envelope.event)}
