"""Types and values in words, for the lines that say what was expected and what was found."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta

from toolpost.secret import Secret

_WORDS: dict[Any, tuple[str, str]] = {
    str: ("a string", "strings"),
    Secret: ("a string", "strings"),
    bool: ("true or false", "booleans"),
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    dict: ("a table", "tables"),
    list: ("a list", "lists"),
    Any: ("a value", "values"),
}
_BOUNDS = {
    "ge": "of at least {}",
    "gt": "above {}",
    "le": "of at most {}",
    "lt": "below {}",
    "multiple_of": "that is a multiple of {}",
    "min_length": "of length {} or more",
    "max_length": "of length {} or less",
    "pattern": "that matches {!r}",
}
_LONGEST = 60


def expected(hint: Any) -> str:
    """A type in words: `a list of strings`, `an integer of at least 1`, `"stdio" or "http"`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(expected(arguments[0]), arguments[1:])
    if origin is Literal:
        return " or ".join(f'"{each}"' if isinstance(each, str) else str(each) for each in arguments)
    if origin in (Union, UnionType):
        words = [expected(each) for each in arguments if each is not NoneType]
        return " or ".join(dict.fromkeys(words))
    if origin is list and arguments:
        return f"a list of {_many(arguments[0])}"
    if origin is dict and len(arguments) > 1 and arguments[1] is not Any:
        return f"a table of {_many(arguments[1])}"
    return _words(origin or hint)[0]


def found(value: Any, *, show: bool) -> str:
    """A value in words; without `show` its type only, since it may be a secret."""
    match value:
        case bool():
            return f"the boolean {str(value).lower()}" if show else "a boolean"
        case int() if show:
            # Python refuses to print integers of thousands of digits
            return f"the integer {value}" if abs(value) < 10**_LONGEST else "a huge integer"
        case int():
            return "an integer"
        case float():
            return f"the number {value}" if show else "a number"
        case str():
            return _quoted(value) if show else "a string"
        case datetime.date() | datetime.time():
            return "a date or time"
        case Mapping():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            return "nothing" if value is None else f"a {type(cast('object', value)).__name__}"


def _many(hint: Any) -> str:
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType, Literal):
        return f"values, each {expected(hint)}"
    return _words(get_origin(hint) or hint)[1]


def _words(hint: Any) -> tuple[str, str]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _WORDS[dict]
    return _WORDS.get(hint) or (f"a {_name(hint)}", "values")


def _name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _bounded(words: str, marks: tuple[Any, ...]) -> str:
    bounds = [
        text.format(limit)
        for mark in marks
        if isinstance(mark, Meta)
        for name, text in _BOUNDS.items()
        if (limit := getattr(mark, name)) is not None
    ]
    return " ".join([words, " and ".join(bounds)]) if bounds else words


def _quoted(value: str) -> str:
    # Never a part of it: half a secret would not be masked.
    return f"the string {value!r}" if len(value) <= _LONGEST else f"a string of {len(value)} characters"
