"""JSON-RPC messages as bytes and back. Brings the SDK's error with it."""

from __future__ import annotations

import json
from typing import cast

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from toolpost.model import Json, JsonObject


class NoAnswer(MCPError):
    """What came instead of an answer. Its message says what the server did: "answered HTTP 500 …"."""

    def __init__(self, what_it_did: str, *, code: int = INTERNAL_ERROR, data: Json = None) -> None:
        super().__init__(code, what_it_did, data)


def told(error: MCPError) -> str:
    """An error of the session as a sentence about the server."""
    return (
        f"the server {error.message}"
        if isinstance(error, NoAnswer)
        else f"the server answered: {error.message}"
    )


def encode(message: JsonObject) -> bytes:
    """A message as JSON, on one line."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:  # half a surrogate pair: escaped, it is JSON all the same
        return json.dumps(message).encode()


def decode(line: bytes) -> Json:
    """A line as JSON; None where it is none. Text is made well-formed on the way in."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # what msgspec refuses and the standard library reads: NaN, lone surrogates, bad UTF-8
        return _well_formed(json.loads(line.decode(errors="replace")))
    except (ValueError, RecursionError):
        return None


def _well_formed(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_well_formed(each) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        items = cast("JsonObject", value).items()
        return {_well_formed(key): _well_formed(each) for key, each in items}
    return value


def as_error(error: JsonObject) -> MCPError:
    code, message = error.get("code"), error.get("message")
    return MCPError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "the server gave no message",
        error.get("data"),
    )


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
