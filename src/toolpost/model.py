"""The values that cross the tooling interface: frozen, compared by value, plain JSON inside.

Pure: no I/O, no event loop, no protocol types. `to_json` gives the one JSON form of each (snake_case,
absent fields left out), which the command line, the trace and the guests share.
"""

from __future__ import annotations

import base64
from typing import Any, ClassVar, Literal, TypeAlias, cast

import msgspec

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict with str keys. The one door for `Any`."""

JsonObject: TypeAlias = dict[str, Json]
Encoding: TypeAlias = Literal["text", "base64"]


class Tool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool as the server lists it."""

    name: str
    """Passed to `call_tool` exactly as it is."""
    description: str | None = None
    input_schema: JsonObject
    """JSON Schema of the arguments, as the server sent it."""
    output_schema: JsonObject | None = None
    """JSON Schema of `ToolResult.structured_content`, where the server declares one. Results must fit it."""
    title: str | None = None
    annotations: JsonObject | None = None
    """The server's hints (read-only, destructive, …): claims, not guarantees."""


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a tool answered. As an event of the inbox its kind is `tool-result`."""

    kind: ClassVar[Literal["tool-result"]] = "tool-result"

    name: str
    arguments: str
    """The JSON text that was sent: the caller's own, byte for byte, or a mapping as compact JSON."""
    value: str
    """The text blocks, joined with newlines; everything else is in `content`."""
    content: list[JsonObject] = []
    """Every content block in order, of whatever kind, as the server sent it."""
    structured_content: Json = None
    is_error: bool = False
    """The tool itself reports a failure: for the model to see and react to, not an exception."""


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A resource as the server lists it."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None


class ResourceContent(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one resource at the moment it was read."""

    uri: str
    mime_type: str | None = None
    content: str
    """Text as it is, or binary as base64: `encoding` says which."""
    encoding: Encoding = "text"
    parts: list[JsonObject] = []
    """The other contents of a server that answered with several that cannot be joined."""

    def text(self) -> str:
        """The content as text; binary is decoded as UTF-8.

        Raises:
            UnicodeDecodeError: The content is binary and no UTF-8.
        """
        return self.content if self.encoding == "text" else self.bytes().decode()

    def bytes(self) -> bytes:
        """The content as bytes; text is encoded as UTF-8."""
        return self.content.encode() if self.encoding == "text" else base64.b64decode(self.content)


def to_json(value: msgspec.Struct) -> JsonObject:
    """The JSON form of a value of this module (or of an event): absent fields are left out."""
    present: JsonObject = {}
    for name in value.__struct_fields__:
        field = getattr(value, name)
        if field is None or (name == "parts" and not field):
            continue
        present[name] = _inside(field) if isinstance(field, (msgspec.Struct, list)) else field
    return present


def _inside(field: Json) -> Json:
    """A field's value: Structs in it as JSON, everything else is JSON already."""
    if isinstance(field, msgspec.Struct):
        return to_json(field)
    if isinstance(field, list):
        return [_inside(each) for each in cast("list[Json]", field)]
    return field
