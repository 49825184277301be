"""What an HTTP answer that is not the one we asked for means, as an error of the session.

A status keeps its meaning: it stands in the text, with the headers that say what to do, and in the error's
`data` for programs. Brings the SDK and aiohttp with it.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import cast

import aiohttp
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from toolpost.mcp.jsonrpc import NoAnswer, decode
from toolpost.model import JsonObject
from toolpost.secret import mask

QUOTED = 200
"""Characters of an answer that are quoted."""
REFUSAL_BYTES = 1024 * 1024
"""What is read of an answer with a status that is none of success."""
_TOLD = ("WWW-Authenticate", "Retry-After")
"""Headers that say what to do about a status."""
_OF_THE_WIRE = {401, 403, 407, 429}
"""Statuses, besides 5xx, that stay in the text even where a JSON-RPC error came with them."""
_NAMES_THE_SESSION = re.compile(r"\bsession\b", re.IGNORECASE)


class NotAServer(NoAnswer):
    """What answers at the URL is no MCP server, or wants to be asked at another URL."""


class Refused(NoAnswer):
    """The server answered with a status that is none of success."""

    def __init__(self, response: aiohttp.ClientResponse, said: str, error: JsonObject | None) -> None:
        self.status = response.status
        told = {name: response.headers[name] for name in _TOLD if name in response.headers}
        self.retry_after = _seconds(told.get("Retry-After", ""))
        """Seconds after which the server wants to be asked again; None where it does not say so."""
        text = f"answered HTTP {self.status} {_phrase(self.status)}".rstrip()
        if told:
            text += f" ({', '.join(f'{name}: {value}' for name, value in told.items())})"
        if said:
            text += f": {said}"
        if self.status == HTTPStatus.UNAUTHORIZED:
            text += " (the key `auth_token` gives a bearer token)"
        code = error.get("code") if error is not None else None
        data: JsonObject = {"status": self.status, **told}
        super().__init__(text, code=code if isinstance(code, int) else INTERNAL_ERROR, data=data)


def rpc_error(body: bytes, wire_id: object) -> JsonObject | None:
    """The JSON-RPC error in a body, if it is for this request or names none."""
    message = decode(body)
    if not isinstance(message, dict):
        return None
    error = cast("JsonObject", message).get("error")
    id = cast("JsonObject", message).get("id")
    if not isinstance(error, dict) or (id is not None and str(id) != str(wire_id)):
        return None
    return cast("JsonObject", error)


def session_is_gone(status: int, body: bytes, error: JsonObject | None) -> bool:
    """Whether an answer to a request with a session id says that there is no such session.

    MCP 2025-11-25, basic/transports, "Session Management": that is 404. Servers that are made after the
    TypeScript SDK's examples say 400, and name the session in the text. Neither runs the request.
    """
    if status == HTTPStatus.NOT_FOUND:
        return error is None or error.get("code") != METHOD_NOT_FOUND
    return status == HTTPStatus.BAD_REQUEST and bool(_NAMES_THE_SESSION.search(_words(body, error)))


def refused(response: aiohttp.ClientResponse, body: bytes, error: JsonObject | None) -> MCPError | None:
    """The error of a status; None where the JSON-RPC error that came with it says it all."""
    if error is not None and response.status < 500 and response.status not in _OF_THE_WIRE:
        return None
    return Refused(response, quoted(_words(body, error)), error)


def quoted(text: str) -> str:
    """The beginning of a text of the server's, on one line. Cut last: half a secret is not found."""
    return " ".join(mask(text).split())[:QUOTED]


def _words(body: bytes, error: JsonObject | None) -> str:
    said = error.get("message") if error is not None else None
    return said if isinstance(said, str) else body.decode(errors="replace")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
