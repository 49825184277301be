"""Where editors keep their MCP servers, and how to read such a file: JSON, with comments where VS Code's is.

Knows nothing of what the servers in it mean; see importing.py. No value of a file is ever shown.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

from toolpost.errors import ConfigError
from toolpost.model import Json, JsonObject

Editor: TypeAlias = Literal["claude", "vscode", "cursor"]
EDITORS: tuple[Editor, ...] = get_args(Editor)

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)


def places(
    editor: Editor, *, system: str, home: Path, folder: Path, environ: Mapping[str, str]
) -> list[Path]:
    """Where the editor looks for servers: the project in `folder` first, then the user's own files.

    Args:
        editor: Whose.
        system: As `sys.platform` has it.
        home: The user's home.
        folder: The project.
        environ: For the places that a system or a user moves.
    """
    settings = _settings(system, home, environ)
    match editor:
        case "claude":
            code = environ.get("CLAUDE_CONFIG_DIR")
            return [
                folder / ".mcp.json",
                Path(code) / ".claude.json" if code else home / ".claude.json",
                settings / "Claude" / "claude_desktop_config.json",
            ]
        case "vscode":
            users = [settings / name / "User" for name in ("Code", "Code - Insiders", "VSCodium")]
            return [
                folder / ".vscode" / "mcp.json",
                *(user / "mcp.json" for user in users),
                *(user / "settings.json" for user in users),
            ]
        case "cursor":
            return [folder / ".cursor" / "mcp.json", home / ".cursor" / "mcp.json"]


def _settings(system: str, home: Path, environ: Mapping[str, str]) -> Path:
    if system == "darwin":
        return home / "Library" / "Application Support"
    if system == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def workspace_of(file: Path) -> Path | None:
    """The folder that `${workspaceFolder}` means in a file of a project; None for a user's own file."""
    file = file.absolute()
    if file.parent.name in (".vscode", ".cursor"):
        return file.parent.parent
    return file.parent if file.name == ".mcp.json" else None


def read_json(content: bytes, label: str) -> tuple[JsonObject, list[str]]:
    """The object in a file, and the names that stand twice in one object of it (the last one counts).

    Raises:
        ConfigError: It is empty, no JSON, or no object.
    """
    text = _decoded(content, label)
    if not text.strip():
        _refuse(f"{label}: is empty; expected the JSON of an editor's MCP servers")
    doubled: list[str] = []

    def to_object(pairs: list[tuple[str, Json]]) -> JsonObject:
        built = dict(pairs)
        if len(built) < len(pairs):
            names = [name for name, _ in pairs]
            doubled.extend(name for name in built if names.count(name) > 1)
        return built

    problem = ""
    try:
        read: Any = json.loads(_without_comments(text), object_pairs_hook=to_object)
        if isinstance(read, dict):
            return cast("JsonObject", read), doubled
        problem = f"{label}: expected a JSON object, found another value"
    except json.JSONDecodeError as error:
        # Its text is not part of the message, but of the error, which is left behind here.
        what = error.msg[:1].lower() + error.msg[1:]
        problem = f"{label}:{error.lineno}:{error.colno}: not valid JSON: {what}"
    except (ValueError, RecursionError):
        problem = f"{label}: not valid JSON: nested too deeply, or a number has too many digits"
    raise ConfigError([problem])


def _decoded(content: bytes, label: str) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        _refuse(f"{label}: is UTF-16; save it as UTF-8")
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    raise ConfigError([f"{label}:{line}: not UTF-8; save the file as UTF-8"])


def _without_comments(text: str) -> str:
    """The text with its comments and last commas blanked out: lines and columns stay."""
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(_blank, text)
    return text


def _blank(match: re.Match[str]) -> str:
    found = match[0]
    return found if found.startswith('"') else re.sub(r"[^\r\n]", " ", found)


def _refuse(text: str) -> NoReturn:
    raise ConfigError([text])
