"""The words after `toolpost call NAME TOOL`, as the arguments of the tool.

    key=text     by the schema: a number, a boolean, …; a string where the schema wants one
    key:=JSON    as JSON, whatever the schema says
    key=@file    what the file holds (`@-` is standard input); `key:=@file` as JSON
    a.b=text     inside an object `a`
    key=1 key=2  a list
    {…} or -     all arguments as one JSON object, from the command line or standard input

Files are read when the words are; the schema comes later, from the server.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from toolpost.cli.input_schema import InputSchema, type_names
from toolpost.errors import UsageError
from toolpost.model import Json, JsonObject


@dataclass(frozen=True)
class Word:
    """One `key=…` of the command line."""

    key: str
    text: str
    is_json: bool


def read_words(words: Sequence[str], *, config_is_stdin: bool) -> str | list[Word]:
    """What the command line gives: the JSON text of an object, or words with keys.

    Raises:
        UsageError: It is neither, or a file in it cannot be read.
    """
    stdin = _Stdin(is_taken=config_is_stdin)
    match [_text(word) for word in words]:
        case ["-"]:
            return stdin.read()
        case [text] if text.lstrip().startswith("{"):
            return text
        case texts:
            return [_word(text, stdin.read) for text in texts]


def build(words: Sequence[Word], schema: InputSchema) -> JsonObject:
    """The words as arguments, typed as the schema wants them.

    Raises:
        UsageError: Two words contradict each other.
    """
    texts: dict[tuple[str, ...], list[Word]] = {}
    for word in words:
        texts.setdefault(_path(word.key, schema), []).append(word)
    arguments: JsonObject = {}
    for path, same in sorted(texts.items(), key=lambda each: len(each[0])):
        place = schema
        for key in path:
            place = place.property(key)
        _put(arguments, path, _value(same, place), same[0].key)
    return arguments


# -- words -----------------------------------------------------------------------------------------


class _Stdin:
    """Standard input, which can be read once."""

    def __init__(self, *, is_taken: bool) -> None:
        self._taken_by = "the config (-c -)" if is_taken else None

    def read(self) -> str:
        if self._taken_by is not None:
            _refuse(f"standard input holds {self._taken_by} and cannot hold arguments too")
        self._taken_by = "one argument already"
        try:
            return sys.stdin.buffer.read().decode()
        except (OSError, ValueError, AttributeError) as error:
            _refuse(f"standard input holds no arguments: {error}")


def _text(word: str) -> str:
    """A word of the command line as UTF-8, which it is also where the locale says otherwise."""
    try:
        return os.fsencode(word).decode()
    except UnicodeError:
        _refuse(f"argument {word!r} is not UTF-8")


def _word(text: str, read_stdin: Callable[[], str]) -> Word:
    key, equals, value = text.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        _refuse(
            f"argument {text!r} is not key=value or key:=JSON; or give one JSON object, or - for one on stdin"
        )
    if value.startswith("@"):
        value = _file(key, value[1:], read_stdin)
    if is_json:
        try:
            parsed(value)
        except (ValueError, RecursionError) as error:
            _refuse(f"argument {key!r}: what stands after := is no JSON: {error}; key=text takes any text")
    return Word(key, value, is_json)


def _file(key: str, name: str, read_stdin: Callable[[], str]) -> str:
    if name == "-":
        return read_stdin()
    try:
        return Path(name).read_bytes().decode()
    except UnicodeDecodeError:
        _refuse(f"argument {key!r}: file {name!r} is not UTF-8 text; encode it as the tool wants it")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        literal = json.dumps(f"@{name}", ensure_ascii=False)
        _refuse(
            f"argument {key!r}: file {name!r} cannot be read: {why}; a text that starts with @ is written"
            f" {key}:='{literal}'"
        )


# -- places ----------------------------------------------------------------------------------------


def _path(key: str, schema: InputSchema) -> tuple[str, ...]:
    """Where a key leads: a dot leads inside, unless the schema has a property whose name holds it."""
    names = schema.property_names()
    if key in names or "." not in key:
        return (key,)
    for name in sorted(names, key=len, reverse=True):
        if key.startswith(f"{name}.") and len(key) > len(name) + 1:
            return (name, *_path(key[len(name) + 1 :], schema.property(name)))
    first, _, rest = key.partition(".")
    return (first, *_path(rest, schema.property(first))) if first and rest else (key,)


def _put(arguments: JsonObject, path: Sequence[str], value: Json, key: str) -> None:
    *above, last = path
    table = arguments
    for each in above:
        inner: Any = table.setdefault(each, {})
        if not isinstance(inner, dict):
            _refuse(f"argument {key!r} leads into {each!r}, which another argument makes {_article(inner)}")
        table = cast("JsonObject", inner)
    if last in table:
        _refuse(f"argument {key!r} is given in two ways")
    table[last] = value


# -- values ----------------------------------------------------------------------------------------


def _value(words: Sequence[Word], schema: InputSchema) -> Json:
    """The words of one key as its value: a list, where the schema wants one or there are several."""
    types = schema.types()
    if len(words) == 1:
        return _single(words[0], schema)
    if types and "array" not in types:
        wanted = " or ".join(sorted(types))
        _refuse(f"argument {words[0].key!r} is given {len(words)} times, and takes one: {wanted}")
    items = schema.items()
    return [parsed(word.text) if word.is_json else typed_value(word.text, items) for word in words]


def _single(word: Word, schema: InputSchema) -> Json:
    if word.is_json:
        return parsed(word.text)
    value = typed_value(word.text, schema)
    types = schema.types()
    # one item may stand for the list of it
    if "array" in types and not types & type_names(value):
        return [typed_value(word.text, schema.items())]
    return value


def typed_value(text: str, schema: InputSchema) -> Json:
    """A text as the JSON value that it reads as, unless the schema wants a string there."""
    try:
        value = parsed(text)
    except (ValueError, RecursionError):
        return text
    types = schema.types()
    if "string" in types and (isinstance(value, str) or not type_names(value) & types):
        return text
    return value


def parsed(text: str) -> Json:
    """A JSON text.

    Raises:
        ValueError: It is none.
    """
    return json.loads(text, parse_constant=_no_json)


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _article(value: Json) -> str:
    name = next(iter(sorted(type_names(value))))
    return f"{'an' if name[0] in 'aio' else 'a'} {name}"


def _refuse(text: str) -> NoReturn:
    raise UsageError(text)
