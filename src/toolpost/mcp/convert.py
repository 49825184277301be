"""The door between the SDK's types and toolpost's: nothing above this room sees a type of the SDK."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import cast

import mcp_types as types
from pydantic import BaseModel

from toolpost.mcp.jsonrpc import NoAnswer
from toolpost.model import JsonObject, ResourceContent
from toolpost.secret import get_logger

_log = get_logger("toolpost.mcp")


def dump(model: BaseModel) -> JsonObject:
    """A model of the SDK as the JSON that the wire carries."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def resource_content(wire: types.ReadResourceResult, uri: str) -> ResourceContent:
    """One content for the URI that was read.

    Texts are joined with newlines. Base64 is never joined: the blob of that URI, else the first, is given,
    and the rest stands in `parts`.

    Raises:
        MCPError: The blob is none.
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
        content=chosen.text if isinstance(chosen, types.TextResourceContents) else _base64(chosen.blob),
        encoding="text" if text else "base64",
        parts=[dump(each) for each in rest],
    )


def _base64(blob: str) -> str:
    try:
        base64.b64decode("".join(blob.split()), validate=True)  # some break it into lines
    except ValueError:
        raise NoAnswer("sent a blob that is not base64") from None
    return blob
