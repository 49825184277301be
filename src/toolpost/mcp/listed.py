"""What a server lists: the entries of a page, read off the JSON, each by itself. Needs no SDK.

The SDK's session refuses a whole page for one entry, or one part of an entry, that is not as it should be.
So an entry passes it with what it insists on, and as it was sent in an envelope. What cannot be used is left
out with a warning that names it, and takes no other entry away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from toolpost.mcp.results import WHOLE
from toolpost.mcp.schemas import problem_of_arguments
from toolpost.model import Json, JsonObject, ResourceInfo, Tool
from toolpost.secret import get_logger

_log = get_logger("toolpost.mcp")


class Unusable(Exception):
    """Why an entry is left out."""


class _Envelope(str):
    """An entry as it was sent, in the `_meta` of what passes.

    To the session it is an empty text: of JSON it would make a copy, which costs more than all the rest.
    """

    __slots__ = ("entry",)
    entry: JsonObject

    @classmethod
    def of(cls, entry: JsonObject) -> _Envelope:
        envelope = cls()
        envelope.entry = entry
        return envelope


def enveloped(method: str, page: JsonObject, tooling: str, *, modern: bool) -> JsonObject:
    """A page as every session lets it through; one that is no list of entries stays as it is."""
    key, what, passed = _LISTS[method]
    entries = page.get(key)
    if not isinstance(entries, list):
        return page
    usable: list[JsonObject] = []
    for each in cast("list[Json]", entries):
        try:
            if not isinstance(each, dict):
                raise Unusable("it is no object")
            entry = cast("JsonObject", each)
            usable.append({**passed(entry, modern), "_meta": {WHOLE: _Envelope.of(entry)}})
        except Unusable as problem:
            _log.warning("tooling %r: %s %s is left out: %s", tooling, what, _named(each), problem)
    cursor = {"nextCursor": page["nextCursor"]} if page.get("nextCursor") is not None else {}
    return {key: usable, **cursor, WHOLE: page}


def tool(entry: Mapping[str, Json] | None) -> Tool:
    """A tool that has passed, of its `_meta`."""
    listed = _opened(entry)
    return Tool(
        name=listed["name"],
        description=_part(listed, "tool", "description", str),
        input_schema=listed["inputSchema"],
        output_schema=_part(listed, "tool", "outputSchema", dict),
        title=_part(listed, "tool", "title", str),
        annotations=_part(listed, "tool", "annotations", dict),
    )


def resource_info(entry: Mapping[str, Json] | None) -> ResourceInfo:
    """A resource that has passed, of its `_meta`."""
    listed = _opened(entry)
    uri: str = listed["uri"]
    return ResourceInfo(
        uri=uri,
        name=_part(listed, "resource", "name", str) or uri,
        description=_part(listed, "resource", "description", str),
        mime_type=_part(listed, "resource", "mimeType", str),
    )


def _passed_tool(entry: JsonObject, modern: bool) -> JsonObject:
    """From 2026-07-28 on the session looks for headers in the schema of arguments; it always wants a type."""
    name = _text(entry, "name")
    if problem := problem_of_arguments(entry.get("inputSchema")):
        raise Unusable(f"its inputSchema {problem}")
    schema: JsonObject = entry["inputSchema"] if modern else {}
    of_use = {key: each for key, each in schema.items() if key != "$schema"}
    return {"name": name, "inputSchema": {**of_use, "type": "object"}}


def _passed_resource(entry: JsonObject, modern: bool) -> JsonObject:
    uri = _text(entry, "uri")
    return {"uri": uri, "name": uri}


_Passed = Callable[[JsonObject, bool], JsonObject]
_LISTS: dict[str, tuple[str, str, _Passed]] = {
    "tools/list": ("tools", "tool", _passed_tool),
    "resources/list": ("resources", "resource", _passed_resource),
}
"""Of each method, what its entries stand under, what one is called, and what of it passes the session."""
LISTS = tuple(_LISTS)


def _text(entry: JsonObject, key: str) -> str:
    """A text that an entry is nothing without."""
    text = entry.get(key)
    if not isinstance(text, str) or not text:
        raise Unusable(f"its {key} is missing, empty or no text")
    return text


def _part(entry: JsonObject, what: str, key: str, kind: type) -> Json:
    """A part that an entry can do without: where it is of no use, it is left out."""
    value = entry.get(key)
    if value is None or isinstance(value, kind):
        return value
    _log.warning(
        "%s %s: its %s cannot be a %s, and is left out", what, _named(entry), key, type(value).__name__
    )
    return None


def _named(entry: Json) -> str:
    if not isinstance(entry, dict):
        return repr(entry)
    listed = cast("JsonObject", entry)
    return repr(listed.get("name", listed.get("uri")))


def _opened(meta: Mapping[str, Json] | None) -> JsonObject:
    assert meta is not None, "what passed is in an envelope"
    return cast("_Envelope", meta[WHOLE]).entry
