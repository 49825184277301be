"""The door between the SDK's types and toolpost's: nothing above this room sees a type of the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import mcp_types as types
from pydantic import BaseModel, ValidationError

from toolpost.mcp.outputs import declared
from toolpost.model import Json, JsonObject, ResourceContent, ResourceInfo, Tool
from toolpost.secret import get_logger

_log = get_logger("toolpost.mcp")


def dump(model: BaseModel) -> JsonObject:
    """A model of the SDK as the JSON that the wire carries."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def tool(wire: types.Tool) -> Tool:
    return Tool(
        name=wire.name,
        description=wire.description,
        input_schema=wire.input_schema,
        output_schema=declared(wire.meta),
        title=wire.title,
        annotations=None if wire.annotations is None else dump(wire.annotations),
    )


def without_unusable_tools(page: JsonObject, tooling: str) -> JsonObject:
    """A page of `tools/list` without the tools that cannot be called, each named in a warning.

    One bad tool must not take the others away, and the SDK's session refuses the whole page for it.
    """
    tools = page.get("tools")
    if not isinstance(tools, list):
        return page
    usable: list[Json] = []
    for each in cast("list[Json]", tools):
        if problem := _tool_problem(each):
            name = cast("JsonObject", each).get("name") if isinstance(each, dict) else None
            _log.warning("tooling %r: tool %r is left out: %s", tooling, name, problem)
        else:
            usable.append(each)
    return page if len(usable) == len(cast("list[Json]", tools)) else {**page, "tools": usable}


def _tool_problem(listed: Json) -> str | None:
    try:
        types.Tool.model_validate(listed, by_name=False)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return f"its {where or 'entry'} is missing or malformed"
    return None


def resource_info(wire: types.Resource) -> ResourceInfo:
    return ResourceInfo(uri=wire.uri, name=wire.name, description=wire.description, mime_type=wire.mime_type)


def resource_content(wire: types.ReadResourceResult, uri: str) -> ResourceContent:
    """One content for the URI that was read.

    Texts are joined with newlines. Base64 is never joined: the blob of that URI, else the first, is given,
    and the rest stands in `parts`.
    """
    contents = wire.contents
    if all(isinstance(each, types.TextResourceContents) for each in contents):
        texts = cast("Sequence[types.TextResourceContents]", contents)
        mime_type = next((each.mime_type for each in texts if each.mime_type), None)
        return ResourceContent(uri=uri, mime_type=mime_type, content="\n".join(each.text for each in texts))
    chosen = next((each for each in contents if each.uri == uri), contents[0])
    rest = [each for each in contents if each is not chosen]
    if rest:
        _log.warning("resource %r has %d contents; the rest is in `parts`", uri, len(contents))
    text = isinstance(chosen, types.TextResourceContents)
    return ResourceContent(
        uri=uri,
        mime_type=chosen.mime_type,
        content=chosen.text if isinstance(chosen, types.TextResourceContents) else chosen.blob,
        encoding="text" if text else "base64",
        parts=[dump(each) for each in rest],
    )
