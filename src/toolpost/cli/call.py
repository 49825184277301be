"""`toolpost call NAME TOOL …`: one call of one tool, its answer on standard output as the tool gave it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast

import typer

from toolpost.cli.options import ConfigOption, JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session, run_to_end
from toolpost.cli.terminal import write_json, write_line

if TYPE_CHECKING:
    from toolpost.host.handle import Tooling
    from toolpost.model import Json, JsonObject, ToolResult


def call(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tooling of the config.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="One of its tools.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENTS", help="key=value ..., or one JSON object, or - for one on stdin."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long the call may take.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Call a tool and print its answer.

    The value of key=value is JSON if it reads as JSON and the tool wants no string; else a string.
    """
    Session.of(ctx, config, verbose, log_level).finish(
        lambda session: _call(session, name, tool, arguments or [], timeout=timeout, as_json=as_json)
    )


def _call(
    session: Session, name: str, tool: str, words: Sequence[str], *, timeout: float | None, as_json: bool
) -> int:
    """Everything that can be wrong without a server shows here, and standard input is read."""
    from toolpost.host.handle import tool_call

    given = given_arguments([*map(_text, words)], config_is_stdin=session.reads_stdin)
    session.check_tooling(name)
    tool_call(tool, given if isinstance(given, str) else {}, timeout)
    return run_to_end(lambda: _send(session, name, tool, given, timeout=timeout, as_json=as_json))


async def _send(
    session: Session,
    name: str,
    tool: str,
    given: str | Mapping[str, str],
    *,
    timeout: float | None,
    as_json: bool,
) -> int:
    from toolpost.cli.house import open_house
    from toolpost.model import to_json

    async with open_house(session) as house:
        tooling = house.tooling(name)
        arguments = given if isinstance(given, str) else await _typed(tooling, tool, given)
        result = await tooling.call_tool_blocking(tool, arguments, timeout=timeout)
        session.talk.progress("")
        if as_json:
            write_json(to_json(result))
        else:
            _print(session, result)
    return FAILED if result.is_error else DONE


def _print(session: Session, result: ToolResult) -> None:
    if result.value:
        write_line(result.value)
    others = [str(block.get("type")) for block in result.content if block.get("type") != "text"]
    if others:
        blocks = "a block that is" if len(others) == 1 else f"{len(others)} blocks that are"
        session.talk.say(f"not shown: {blocks} no text ({', '.join(others)}); --json shows everything")
    if result.is_error:
        session.fail(f"tool {result.name!r} reported a failure")


# -- arguments -------------------------------------------------------------------------------------


def given_arguments(words: Sequence[str], *, config_is_stdin: bool) -> str | dict[str, str]:
    """What the command line gives: the JSON text of an object, or texts by key.

    Raises:
        UsageError: It is neither.
    """
    match words:
        case ["-"]:
            if config_is_stdin:
                _refuse("standard input holds the config (-c -) and cannot hold the arguments too")
            return _read_stdin()
        case [text] if text.lstrip().startswith("{"):
            return text
        case _:
            return _by_key(words)


def _text(word: str) -> str:
    """A word of the command line as UTF-8, which it is also where the locale says otherwise."""
    try:
        return os.fsencode(word).decode()
    except UnicodeError:
        _refuse(f"argument {word!r} is not UTF-8")


def _by_key(words: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            _refuse(f"argument {word!r} is not key=value; or give one JSON object, or - for one on stdin")
        if key in pairs:
            _refuse(f"argument {key!r} is given twice")
        pairs[key] = value
    return pairs


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except (OSError, ValueError, AttributeError) as error:
        _refuse(f"standard input holds no arguments: {error}")


async def _typed(tooling: Tooling, tool: str, given: Mapping[str, str]) -> JsonObject:
    """The arguments as JSON. The server is asked for its schema only where that decides something."""
    if not any(_is_json(value) for value in given.values()):
        return dict(given)
    schemas = [each.input_schema for each in await tooling.list_tools() if each.name == tool]
    properties = _table(schemas[0].get("properties")) if schemas else {}
    return {key: typed_value(value, properties.get(key)) for key, value in given.items()}


def typed_value(text: str, schema: Any) -> Json:
    """A text as the JSON value that it reads as, unless the schema wants a string there."""
    if not _is_json(text):
        return text
    value = _parsed(text)
    types = _types(schema)
    if "string" in types and (isinstance(value, str) or not _type_names(value) & types):
        return text
    return value


def _types(schema: Any) -> set[str]:
    """The types that a schema names, its alternatives included; empty where it leaves that open."""
    table = _table(schema)
    named = table.get("type")
    found = {named} if isinstance(named, str) else set(map(str, _list(named)))
    for each in (*_list(table.get("anyOf")), *_list(table.get("oneOf"))):
        found |= _types(each)
    return found


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _type_names(value: Json) -> set[str]:
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
        case _:
            return {"object"}


def _is_json(text: str) -> bool:
    try:
        _parsed(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(text: str) -> Json:
    return json.loads(text, parse_constant=_no_json)


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _refuse(text: str) -> NoReturn:
    from toolpost.errors import UsageError

    raise UsageError(text)
