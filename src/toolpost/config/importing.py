"""From an editor's MCP servers to a config: `mcpServers` (Claude, Cursor and others), VS Code's `servers`.

Pure: a text in, a text out. What cannot be carried over is told, in the result and as a comment in the
TOML: servers of a kind that toolpost does not have, keys without a counterpart, names that change. No value
that may be secret gets into either; see placeholders.py. Every table that is given has passed `load_config`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import tomli_w

from toolpost.config.editors import read_json
from toolpost.config.load import load_config
from toolpost.config.placeholders import Placeholders, Variable, variable_name
from toolpost.config.problems import dotted, folded
from toolpost.errors import ConfigError
from toolpost.model import JsonObject

_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_URLS = ("url", "serverUrl", "httpUrl")
_SSE = "the old HTTP+SSE transport, which toolpost does not have; see whether the server has a streamable one"
_KNOWN = {
    *("type", "transport", "command", "args", "env", "cwd", "headers", *_URLS),
    *("disabled", "enabled", "includeTools", "excludeTools", "disabledTools"),
}
_SAYS_NOTHING = {"name", "description", "gallery", "version", "icon", "$schema"}
_REASONS = {
    "envFile": "toolpost reads no such file; set its variables",
    "autoApprove": "which calls are allowed is your agent's business",
    "alwaysAllow": "which calls are allowed is your agent's business",
    "trust": "which calls are allowed is your agent's business",
    "oauth": "OAuth is not supported; use auth_token or headers",
    "auth": "OAuth is not supported; use auth_token or headers",
    "timeout": "its unit differs from editor to editor; see request_timeout_secs",
}
_GOOD_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*_?")
_BEARER = re.compile(r"bearer\s+(?P<token>\S.*)", re.IGNORECASE | re.DOTALL)
_STAND_IN = "http://x"
"""What each variable is while a table is tried: good as a value, as a URL, and as a part of one."""


@dataclass(kw_only=True)
class Server:
    """One server that was imported."""

    name: str
    """The tooling's name."""
    source: str
    """The name that it has in the editor's file."""
    table: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: list[str] = field(default_factory=list[str])
    disabled: bool = False
    """It is switched off in the editor, and becomes a comment here."""


@dataclass(kw_only=True)
class Imported:
    """What an editor's file gave."""

    label: str
    servers: list[Server] = field(default_factory=list[Server])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """By the editor's name: why."""
    notes: list[str] = field(default_factory=list[str])
    """What concerns the whole file."""
    variables: list[Variable] = field(default_factory=list[Variable])
    """To be set where the config is used."""

    def toml(self) -> str:
        """The config, with a comment for everything that differs from the editor's file."""
        parts = ["".join(f"# {line}\n" for line in self._head())]
        parts += [_block(server) for server in self.servers]
        return "\n".join(parts)

    def _head(self) -> Iterator[str]:
        yield f"Imported from {_shown(self.label)} by `toolpost import`."
        if self.variables:
            yield "Values that may be secret are not in this file. Set these variables:"
            yield from (f"    {each.name}" for each in self.variables)
        yield from self.notes
        for name, why in self.left_out.items():
            yield f"Left out: {_shown(name)}: {why}"


class _LeftOut(Exception):
    """Says why a server cannot be used."""


def import_servers(
    content: bytes,
    *,
    label: str,
    environ: Mapping[str, str],
    workspace: str | None = None,
    project: str | None = None,
) -> Imported:
    """The toolings that an editor's file describes.

    Args:
        content: The file.
        label: Its name, for messages.
        environ: The environment, so that no variable is taken that means something else there.
        workspace: What `${workspaceFolder}` stands for; None makes a variable of it.
        project: Of a file with servers by project (Claude Code's own), the one to take.

    Raises:
        ConfigError: It is empty or no JSON, or holds no table of servers.
    """
    document, doubled = read_json(content, label)
    found, notes = _servers(document, label, project)
    placeholders = Placeholders(
        environ=environ,
        workspace=workspace,
        prompts=_prompts(document),
        texts=_texts(found),
    )
    imported = Imported(label=label, notes=notes)
    imported.notes += [
        f"{_shown(name)} stands there twice; the last one counts" for name in doubled if name in found
    ]
    for source, name in _names(found).items():
        try:
            imported.servers.append(_server(source, name, found[source], placeholders))
        except _LeftOut as why:
            imported.left_out[source] = str(why)
    imported.variables = _needed(imported.servers, placeholders)
    return imported


def _servers(document: JsonObject, label: str, project: str | None) -> tuple[dict[str, Any], list[str]]:
    """The servers by name, and what else there is to tell."""
    tables = [document.get("mcpServers"), document.get("servers")]
    tables += [_table(document.get("mcp")).get("servers"), _table(document.get("mcp")).get("mcpServers")]
    found: dict[str, Any] = {}
    notes: list[str] = []
    for path, entry in _table(document.get("projects")).items():
        servers = _table(_table(entry).get("mcpServers"))
        if servers and path == project:
            tables.append(servers)
        elif servers:
            notes.append(f"Not imported: the servers of the project {_shown(path)}; import from there")
    for table in tables:
        if table is not None and not isinstance(table, dict):
            raise ConfigError([f"{label}: expected a table of servers by name, found another value"])
        found |= _table(table)
    if not found:
        named = any(table is not None for table in tables)
        what = "no server is in it" if named else "neither `mcpServers` nor `servers` is in it"
        raise ConfigError([" ".join([f"{label}: {what}.", *notes])])
    return found, notes


def _prompts(document: JsonObject) -> dict[str, str]:
    """VS Code's inputs: by id, the words in which it asks."""
    listed: Any = document.get("inputs") or _table(document.get("mcp")).get("inputs")
    inputs = [_table(each) for each in cast("list[Any]", listed if isinstance(listed, list) else [])]
    return {str(each.get("id")): _line(str(each.get("description") or "")) for each in inputs}


def _names(found: Mapping[str, Any]) -> dict[str, str]:
    """By the editor's name, the tooling's: what is a good name stays, and no two are alike.

    Alike are names that environment variables cannot tell apart: case does not count, and `-` is `_`.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for source in sorted(found, key=lambda each: not _GOOD_NAME.fullmatch(each)):  # the good ones first
        wanted = source
        if not _GOOD_NAME.fullmatch(source):
            wanted = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_]+", "-", source)).strip("-_") or "server"
        name, number = wanted, 2
        while folded(name) in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(folded(name))
        names[source] = name
    return {source: names[source] for source in found}


# -- one server ------------------------------------------------------------------------------------


def _server(source: str, name: str, raw: Any, placeholders: Placeholders) -> Server:
    if not isinstance(raw, dict):
        raise _LeftOut("expected a table, found another value")
    entry = cast("dict[str, Any]", raw)
    server = Server(name=name, source=source)
    server.disabled = entry.get("disabled") is True or entry.get("enabled") is False
    if name != source:
        server.notes.append(f"{_shown(source)} in the editor's file")
    _check_kind(entry)
    if _url(entry) is None:
        server.table = _stdio(server, entry, placeholders)
    else:
        server.table = _http(server, entry, placeholders)
    _tools(server, entry)
    for key in entry.keys() - _KNOWN - _SAYS_NOTHING:
        server.notes.append(f"not carried over: {_shown(key)}{_because(key)}")
    server.notes.sort(key=lambda note: note.startswith("not carried over"))
    _try(server, placeholders)
    return server


def _check_kind(entry: Mapping[str, Any]) -> None:
    kind: Any = entry.get("type") or entry.get("transport")
    url = _url(entry)
    if kind == "sse" or (kind is None and url is not None and url.split("?")[0].rstrip("/").endswith("/sse")):
        raise _LeftOut(_SSE)
    if kind is not None and kind != "stdio" and kind not in _HTTP:
        shown = _shown(kind) if isinstance(kind, str) else "no text"
        raise _LeftOut(f"its type is {shown}; toolpost has stdio and http")
    if kind == "stdio" or (kind is None and url is None):
        if not isinstance(entry.get("command"), str):
            raise _LeftOut("it has neither a command nor a url")
    elif url is None:
        raise _LeftOut("it has no url")
    if url is not None and entry.get("command") is not None:
        raise _LeftOut("it has both a command and a url")


def _url(entry: Mapping[str, Any]) -> str | None:
    return next((entry[key] for key in _URLS if isinstance(entry.get(key), str)), None)


def _stdio(server: Server, entry: Mapping[str, Any], placeholders: Placeholders) -> dict[str, Any]:
    path = ("tooling", server.name)
    table: dict[str, Any] = {"kind": "mcp", "transport": "stdio"}
    table["command"] = placeholders.text(entry["command"], where=dotted((*path, "command")))
    args = [_word(each) for each in _list(entry, "args")]
    if args:
        where = dotted((*path, "args"))
        table["args"] = placeholders.arguments(args, owner=server.name, where=where)
    if isinstance(cwd := entry.get("cwd"), str) and cwd:
        table["cwd"] = placeholders.text(cwd, where=dotted((*path, "cwd")))
    env = {key: _word(each) for key, each in _named(entry, "env", server)}
    if env:
        table["env"] = {
            key: placeholders.secret(key, each, owner=server.name, where=dotted((*path, "env", key)))
            for key, each in env.items()
        }
    return table


def _http(server: Server, entry: Mapping[str, Any], placeholders: Placeholders) -> dict[str, Any]:
    path = ("tooling", server.name)
    url, user = _without_user(_url(entry) or "")
    where = dotted((*path, "url"))
    table: dict[str, Any] = {"kind": "mcp", "transport": "http"}
    table["url"] = placeholders.url(url, owner=server.name, where=where)
    headers = {key: _word(each) for key, each in _named(entry, "headers", server)}
    if user:
        headers["Authorization"] = user
        server.notes.append("the user part of its URL became a header")
    kept: dict[str, str] = {}
    for key, value in headers.items():
        bearer = _BEARER.fullmatch(value) if key.lower() == "authorization" else None
        owner = variable_name(server.name)
        if bearer:
            here = dotted((*path, "auth_token"))
            about = "the token, without `Bearer `"
            token = placeholders.secret(
                f"{owner}_TOKEN", bearer["token"], owner=owner, where=here, about=about
            )
            table["auth_token"] = token
        else:
            here = dotted((*path, "headers", key))
            about = "`Basic ` and the base64 of user:password" if value is user else ""
            kept[key] = placeholders.secret(f"{owner}_{key}", value, owner=owner, where=here, about=about)
    return table | ({"headers": kept} if kept else {})


def _without_user(url: str) -> tuple[str, str]:
    """A URL without its user part, and that part."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    user, at, host_only = host.rpartition("@")
    return (f"{scheme}{mark}{host_only}{slash}{path}", user) if at else (url, "")


def _tools(server: Server, entry: Mapping[str, Any]) -> None:
    for theirs, ours in (
        ("includeTools", "include_tools"),
        ("excludeTools", "exclude_tools"),
        ("disabledTools", "exclude_tools"),
    ):
        names = [re.sub(r"([*?[])", r"[\1]", _word(each)) for each in _list(entry, theirs)]
        if names:
            server.table[ours] = [*server.table.get(ours, []), *names]


def _try(server: Server, placeholders: Placeholders) -> None:
    """Leave out what the config's own check refuses. (Its lines show no value that may be secret.)"""
    environ = dict.fromkeys([*placeholders.variables, *_references(server.table)], _STAND_IN)
    try:
        load_config({"tooling": {server.name: server.table}}, environ=environ)
        tomli_w.dumps(server.table).encode()
    except ConfigError as error:
        raise _LeftOut("; ".join(line.removeprefix("config: ") for line in error.problems)) from None
    except UnicodeEncodeError:
        raise _LeftOut("a text in it is no Unicode") from None


def _named(entry: Mapping[str, Any], key: str, server: Server) -> Iterator[tuple[str, Any]]:
    table = entry.get(key)
    if table is not None and not isinstance(table, dict):
        raise _LeftOut(f"{key} is no table")
    for name, value in _table(table).items():
        if value is None:
            server.notes.append(f"not carried over: {key}.{_shown(name)}, which is null")
        else:
            yield name, value


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    if value is not None and not isinstance(value, list):
        raise _LeftOut(f"{key} is no list")
    return cast("list[Any]", value or [])


def _word(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            raise _LeftOut("a text was expected in it, and another value found")


def _because(key: str) -> str:
    return f" ({_REASONS[key]})" if key in _REASONS else ""


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# -- texts -----------------------------------------------------------------------------------------


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for each in cast("dict[str, Any]", value).values():
                yield from _texts(each)
        case list():
            for each in cast("list[Any]", value):
                yield from _texts(each)
        case _:
            pass


def _references(value: Any) -> set[str]:
    """The variables that a table of ours names."""
    found = (match for text in _texts(value) for match in re.finditer(r"\$?\$\{(\w+)\}", text))
    return {match[1] for match in found if not match[0].startswith("$$")}


def _needed(servers: list[Server], placeholders: Placeholders) -> list[Variable]:
    """The variables of the servers that are on, in the order in which they are met."""
    used = set[str]().union(*(_references(server.table) for server in servers if not server.disabled))
    return [each for name, each in placeholders.variables.items() if name in used]


def _block(server: Server) -> str:
    text = tomli_w.dumps({"tooling": {server.name: server.table}})
    # on LF alone: `splitlines` cuts at characters that TOML lets stand in a string
    text = "\n".join(line for line in text.split("\n") if line != "[tooling]").strip("\n") + "\n"
    notes = [*server.notes]
    if server.disabled:
        notes.append("switched off in the editor; take the # away to use it")
        text = "".join(f"# {line}".rstrip() + "\n" for line in text.rstrip("\n").split("\n"))
    return "".join(f"# {note}\n" for note in notes) + text


def _line(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _shown(name: str) -> str:
    """A name in quotes, on one line and without control characters."""
    return f'"{_line(name)}"'
