"""What a tool answered, read off the JSON that came. Needs no SDK.

The SDK's types refuse a whole result for one block of a kind that they do not know, and drop the keys that
they do not know. But a call has had its effect when its result comes, and the result cannot be asked for
again: so it passes the session in an envelope, and nothing of it is lost for its form.
"""

from __future__ import annotations

from typing import cast

import msgspec

from toolpost.model import Json, JsonObject, ToolResult
from toolpost.secret import get_logger
from toolpost.tooling.port import ToolCall

_log = get_logger("toolpost.mcp")
WHOLE = "toolpost/whole"
"""The key of what is in an envelope."""


def enveloped(result: JsonObject, *, modern: bool) -> JsonObject:
    """A result of `tools/call` as every session lets it through; one that asks for input stays as it is.

    Without `resultType` it is complete. MCP 2026-07-28, basic, "Result types".
    """
    if modern and result.get("resultType") == "input_required":
        return result
    return {"resultType": "complete", "content": [], WHOLE: result}


def completed(result: JsonObject) -> JsonObject:
    """A result of 2026-07-28 with what the session insists on and toolpost has no use for."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} | result


def whole(passed: JsonObject) -> JsonObject | None:
    """What is in an envelope; None where there is none: the server asks for input, or sent no list."""
    return passed.get(WHOLE)


def tool_result(result: JsonObject, call: ToolCall) -> ToolResult:
    """The value that the agent gets. No form of a result makes it fail.

    What stands for a block and is none is given as a text block, and a warning says so.
    """
    content: list[JsonObject] = []
    texts: list[str] = []
    for each in _blocks(result.get("content")):
        block = cast("JsonObject", each) if isinstance(each, dict) else _as_block(each, call.name)
        content.append(block)
        if block.get("type") == "text" and isinstance(text := block.get("text"), str):
            texts.append(text)
    return ToolResult(
        name=call.name,
        arguments=call.text,
        value="\n".join(texts),
        content=content,
        structured_content=result.get("structuredContent"),
        is_error=result.get("isError") not in (None, False, "false"),
    )


def _blocks(content: Json) -> list[Json]:
    if content is None:  # a server may leave it out beside structuredContent
        return []
    return cast("list[Json]", content) if isinstance(content, list) else [content]


def _as_block(block: Json, tool: str) -> JsonObject:
    kind = type(block).__name__
    _log.warning("tool %r answered with content that is no block (a %s); it is given as text", tool, kind)
    text = block if isinstance(block, str) else msgspec.json.encode(block).decode()
    return {"type": "text", "text": text}
