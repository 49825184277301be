"""The keys of `kind = "mcp"`, and what must hold between them. Needs no SDK.

Which transport a key belongs to, and whether that transport needs it, is data in its `Meta`, beside the
marks that the config's walk reads (`expand`, `public`, `path`, `keep_case`, `check`, `check_key`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from toolpost.secret import Secret

if TYPE_CHECKING:
    from toolpost.config import Tunables

Transport = Literal["stdio", "http"]
Protocol = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_NO_HTTP = 'use transport = "http", which is streamable HTTP; the old HTTP+SSE transport is not supported'


def _text_problem(text: str) -> str | None:
    return "a NUL character cannot be passed to a program" if "\0" in text else None


def _nonempty_problem(text: str) -> str | None:
    return _text_problem(text) if text.strip() else "is empty"


def _variable_problem(name: str) -> str | None:
    return None if name and not {"=", "\0"} & set(name) else "not the name of an environment variable"


def _header_name_problem(name: str) -> str | None:
    return None if _TOKEN.fullmatch(name) else "not the name of a header"


def _header_problem(value: str) -> str | None:
    return "a header's value has no line break and no NUL" if {"\r", "\n", "\0"} & set(value) else None


def _token_problem(token: str) -> str | None:
    return _header_problem(token) if token.strip() else "is empty"


def _url_problem(text: str) -> str | None:
    """What is wrong with a URL; never shows it, since it may hold a secret."""
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable, url = False, None
    if url is None or not usable or not text.isprintable() or " " in text:
        return "expected an http:// or https:// URL with a host"
    if url.username is not None or url.password is not None:
        return "a URL with credentials in it is not accepted; use auth_token or headers"
    return None


def _key(
    description: str,
    *,
    transport: Transport | None = None,
    required: bool = False,
    expand: bool = False,
    check: Callable[[str], str | None] | None = None,
    **marks: Any,
) -> Meta:
    """The `Meta` of a key; `required` by its transport."""
    named: dict[str, Any] = {"transport": transport, "required": required, "expand": expand, "check": check}
    return Meta(description=description, extra={**named, **marks})


class McpParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tooling of kind `mcp`, checked: exactly the keys of its transport are set."""

    transport: Annotated[
        Transport,
        _key(
            "How the server is reached: a process, or streamable HTTP.",
            hints=dict.fromkeys(("sse", "streamable-http", "streamable_http", "streamableHttp"), _NO_HTTP),
        ),
    ]

    command: Annotated[
        str | None,
        _key(
            "The server's executable.",
            transport="stdio",
            required=True,
            expand=True,
            check=_nonempty_problem,
        ),
    ] = None
    args: Annotated[
        list[str],
        _key(
            "Its arguments. They are public: pass secrets in `env`.",
            transport="stdio",
            expand=True,
            check=_text_problem,
            public="a command line, which every user of this machine can read; pass secrets in env",
        ),
    ] = []
    env: Annotated[
        dict[str, Secret],
        _key(
            "Its environment, besides the few variables that every server gets.",
            transport="stdio",
            expand=True,
            check=_text_problem,
            check_key=_variable_problem,
            keep_case=True,
        ),
    ] = msgspec.field(default_factory=dict[str, Secret])
    cwd: Annotated[
        str | None,
        _key(
            "Its working folder, relative to the config's folder; by default toolpost's own.",
            transport="stdio",
            expand=True,
            check=_nonempty_problem,
            path=True,
        ),
    ] = None
    inherit_env: Annotated[
        bool | list[str],
        _key(
            "Whether it gets all of toolpost's environment too, or which variables of it.",
            transport="stdio",
            check=_variable_problem,
        ),
    ] = False

    url: Annotated[
        str | None,
        _key("The endpoint.", transport="http", required=True, expand=True, check=_url_problem),
    ] = None
    auth_token: Annotated[
        Secret | None,
        _key("Sent as a bearer token.", transport="http", expand=True, check=_token_problem),
    ] = None
    headers: Annotated[
        dict[str, Secret],
        _key(
            "Further headers of every request.",
            transport="http",
            expand=True,
            check=_header_problem,
            check_key=_header_name_problem,
            keep_case=True,
        ),
    ] = msgspec.field(default_factory=dict[str, Secret])

    request_timeout_secs: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        _key(
            "How long one request may take; 0 is no limit. By default the tunable "
            "tooling_request_timeout_secs.",
            infinite=True,
        ),
    ] = None
    protocol: Annotated[
        Protocol | None, _key("The one protocol version to speak; by default it is negotiated.")
    ] = None
    include_tools: Annotated[
        list[str] | None, _key("Patterns (`*`, `?`) of the tools to list; by default all.")
    ] = None
    exclude_tools: Annotated[list[str], _key("Patterns (`*`, `?`) of tools to leave out.")] = []


def request_timeout(params: McpParams, tunables: Tunables) -> float:
    """Seconds that one request may take; infinite for the config's 0."""
    secs = params.request_timeout_secs
    return (tunables.tooling_request_timeout_secs if secs is None else secs) or math.inf


def check(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What single keys cannot show: keys of the other transport, missing ones, doubled headers."""
    transport = table.get("transport")
    if isinstance(transport, str) and transport in get_args(Transport):
        for key, marks in _marks().items():
            yield from _misplaced(key, marks, transport, is_given=key in table)
    headers: Any = table.get("headers")
    if isinstance(headers, dict):
        yield from _doubled(list(cast("dict[str, Any]", headers)), has_token="auth_token" in table)


def _misplaced(
    key: str, marks: Mapping[str, Any], transport: str, *, is_given: bool
) -> Iterator[tuple[str, str]]:
    theirs = marks["transport"]
    if is_given and theirs not in (None, transport):
        yield key, f'belongs to transport = "{theirs}"; this tooling has transport = "{transport}"'
    if marks["required"] and theirs == transport and not is_given:
        yield key, f'missing; transport = "{transport}" needs it'


def _doubled(names: list[str], *, has_token: bool) -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield "headers", f"{other!r} and {name!r} are the same header; keep one"
    if has_token and "authorization" in seen:
        yield "headers", f"{seen['authorization']!r} and auth_token set the same header; keep one"


@cache
def _marks() -> dict[str, Mapping[str, Any]]:
    metas = {field.encode_name: field.type.__metadata__ for field in msgspec.structs.fields(McpParams)}
    return {key: meta[0].extra for key, meta in metas.items()}
