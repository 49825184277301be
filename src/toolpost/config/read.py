"""From a source to raw tables: reads one file or standard input, and nothing else."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

import tomli

from toolpost.errors import ConfigError

DEFAULT = "toolpost.toml"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Source: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | None"
"""A path, `-` for standard input, a mapping shaped like the TOML; None is `toolpost.toml` here."""


@dataclass(frozen=True, slots=True)
class Raw:
    """What was read."""

    table: dict[str, Any]
    folder: Path
    label: str
    files: list[Path] = field(default_factory=list[Path])
    """The file that was read, and those that it extends; absolute."""


def read_source(source: Source) -> Raw:
    """The source's tables.

    Raises:
        ConfigError: It cannot be read, or is no TOML.
    """
    if isinstance(source, Mapping):
        return Raw(_copied(source), Path.cwd(), "config")
    if source is not None and os.fspath(source) == "-":
        return Raw(_parsed(_read_stdin(), "<stdin>"), Path.cwd(), "<stdin>")
    path = Path(DEFAULT if source is None else source)
    label = str(path)
    table = _parsed(_read_file(path, label, is_default=source is None), label)
    return Raw(table, _folder(path), label, [path.absolute()])


def read_text(text: str) -> Raw:
    """The tables of a TOML text.

    Raises:
        ConfigError: It is no TOML.
    """
    return Raw(_parsed(text.encode(errors="surrogatepass"), "<text>"), Path.cwd(), "<text>")


def with_toolings(raw: Raw, tooling: Mapping[str, Any]) -> Raw:
    """The tables with these toolings, each in place of the one of its name."""
    below: Any = raw.table.setdefault("tooling", {})
    if isinstance(below, dict):  # else the walk over the tables tells of it
        cast("dict[str, Any]", below).update(_copied(tooling))
    return raw


def _folder(path: Path) -> Path:
    return path.absolute().parent  # not resolved: beside a linked config stands what the link stands beside


def _read_file(path: Path, label: str, *, is_default: bool) -> bytes:
    try:
        if not path.is_dir():
            return path.read_bytes()
        problem = f"is a folder; name the file in it, such as {path / DEFAULT}"
    except FileNotFoundError:
        there = f" in {Path.cwd()}" if is_default else ""
        problem = f"no such file{there}; create it, or name another one with -c/--config"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problem = f"cannot be read: {reason}"
    raise ConfigError([f"{label}: {problem}"])


def _read_stdin() -> bytes:
    stream: Any = sys.stdin
    if stream is None:  # a program without one, such as a Windows service
        _refuse("<stdin>", "there is no standard input to read")
    try:
        read: bytes | str = getattr(stream, "buffer", stream).read()
        return read.encode("utf-8", "surrogateescape") if isinstance(read, str) else read
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {error}"
    raise ConfigError([f"<stdin>: {problem}"])


def _parsed(content: bytes, label: str) -> dict[str, Any]:
    content = content.removeprefix(codecs.BOM_UTF8)  # Windows editors write one, and it says nothing
    if content.startswith(_UTF16):
        _refuse(label, "is UTF-16; save it as UTF-8")
    table = _toml(_decoded(content, label), label)
    if not table:
        _refuse(label, 'is empty; it needs at least a table such as [tooling.web] with kind = "mcp"')
    return table


def _decoded(content: bytes, label: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"{label}:{line}: byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8"
    raise ConfigError([problem])


def _toml(text: str, label: str) -> dict[str, Any]:
    # The line in question may hold a secret, and the parser's error holds the whole text: neither is
    # shown, and the error goes on without it, so it is raised outside the handler.
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        problem = f"{label}:{error.lineno}:{error.colno}: not valid TOML: {what}"
    except RecursionError:
        problem = f"{label}: nested too deeply"
    except ValueError:
        problem = f"{label}: not valid TOML: a number has too many digits"
    raise ConfigError([problem])


def _copied(value: Mapping[Any, Any]) -> dict[str, Any]:
    """A program's mapping in plain containers of our own, which the environment's layer may change."""
    try:
        return cast("dict[str, Any]", _plain(value))
    except RecursionError:
        problem = "config: nested too deeply"
    raise ConfigError([problem])


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)
        for key in table:
            if not isinstance(key, str):
                _refuse("config", f"keys are strings; found the key {key!r}")
        return {str(key): _plain(each) for key, each in table.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast("list[Any]", value)]
    return value


def _refuse(label: str, text: str) -> NoReturn:
    raise ConfigError([f"{label}: {text}"])
