"""Patterns of JSON values: parsed once, immutable, compared by value, printed as they are written.

    an object   matches an object that has each named key with a matching value; other keys are ignored
    a string    is a regular expression, found anywhere in a string
    a number, boolean or null   matches its equal (1 and true differ, 1 and 1.0 do not)
    an array    matches an array in which its items are found in order; others may stand between them

Items of an array may also be `{"$while": P}`, the longest run of matches from here on (possibly none), and
`{"$until": P}`, which skips to the first match and takes it: what an item without a name does, said aloud.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from toolpost.errors import UsageError
from toolpost.expect.sequence import Step, first_unmet
from toolpost.model import Json, JsonObject

Path: TypeAlias = tuple[str | int, ...]
"""Where in a value or a pattern something stands, from the outside in."""

Takes: TypeAlias = Literal["next", "while", "until"]
_DOLLARS: dict[str, Takes] = {"$while": "while", "$until": "until"}


class PatternError(UsageError):
    """Text that is no pattern."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{show_path(path)}: {problem}" if path else problem)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """A number, a boolean or null."""

    value: float | bool | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self.matches(other.value)  # so 1 and true are not one pattern

    def __hash__(self) -> int:
        return hash(self.value)

    def matches(self, candidate: Json) -> bool:
        if isinstance(self.value, bool) or isinstance(candidate, bool) or self.value is None:
            return candidate is self.value
        return isinstance(candidate, int | float) and candidate == self.value

    def to_json(self) -> Json:
        return self.value


@dataclass(frozen=True, slots=True)
class Text:
    """A regular expression that a string contains a match of."""

    source: str
    regex: re.Pattern[str] = field(compare=False, repr=False)

    def matches(self, candidate: Json) -> bool:
        return isinstance(candidate, str) and self.regex.search(candidate) is not None

    def to_json(self) -> Json:
        return self.source


@dataclass(frozen=True, slots=True)
class Object:
    """Keys that must be there, each with a matching value."""

    fields: tuple[tuple[str, Pattern], ...]

    def matches(self, candidate: Json) -> bool:
        if not isinstance(candidate, dict):
            return False
        table = cast("JsonObject", candidate)
        return all(key in table and pattern.matches(table[key]) for key, pattern in self.fields)

    def to_json(self) -> Json:
        return {key: pattern.to_json() for key, pattern in self.fields}


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an array, and how the cursor takes it."""

    pattern: Pattern
    takes: Takes = "next"

    @property
    def step(self) -> Step[Json]:
        return Step(self.pattern.matches, repeats=self.takes == "while")

    def to_json(self) -> Json:
        plain = self.pattern.to_json()
        return plain if self.takes == "next" else {f"${self.takes}": plain}


@dataclass(frozen=True, slots=True)
class Array:
    """Items that are found in this order."""

    items: tuple[Item, ...]

    def matches(self, candidate: Json) -> bool:
        if not isinstance(candidate, list):
            return False
        return first_unmet([item.step for item in self.items], cast("Sequence[Json]", candidate)) is None

    def to_json(self) -> Json:
        return [item.to_json() for item in self.items]


Pattern: TypeAlias = Exact | Text | Object | Array


def parse(source: Json, path: Path = ()) -> Pattern:
    """The pattern that a JSON value writes.

    Raises:
        PatternError: A key with `$` where none may stand, or a bad regular expression; says where.
    """
    match source:
        case None | bool() | int() | float():
            if isinstance(source, float) and not math.isfinite(source):
                raise PatternError(path, f"{source} is no JSON, so nothing can match it")
            return Exact(source)
        case str():
            return Text(source, compile_regex(source, path))
        case list():
            items = cast("list[Json]", source)
            return Array(tuple(parse_item(each, (*path, index)) for index, each in enumerate(items)))
        case dict():
            table = cast("JsonObject", source)
            refuse_dollars(table, path)
            return Object(tuple((key, parse(each, (*path, key))) for key, each in table.items()))
        case _:
            raise PatternError(path, f"expected a JSON value, found {type(source).__name__}")


def parse_item(source: Json, path: Path = ()) -> Item:
    """The item of an array that a JSON value writes."""
    takes, plain, inside = take_dollar(source, path)
    return Item(parse(plain, inside), takes)


def take_dollar(source: Json, path: Path) -> tuple[Takes, Json, Path]:
    """Take `$while` or `$until` off an item: how it takes, what it is, and where that stands."""
    table = cast("JsonObject", source) if isinstance(source, dict) else {}
    for key, takes in _DOLLARS.items():
        if key in table:
            if len(table) > 1:
                beside = ", ".join(repr(each) for each in sorted(table) if each != key)
                raise PatternError(path, f"{key} stands alone; found beside it: {beside}")
            return takes, table[key], (*path, key)
    return "next", cast("Json", source), path


def refuse_dollars(table: JsonObject, path: Path) -> None:
    """Raise for keys that begin with `$`: here they mean nothing, and matching them by name is not meant."""
    if wrong := [key for key in table if key.startswith("$")]:
        where = " ($while and $until are items of an array)" if wrong[0] in ("$while", "$until") else ""
        raise PatternError((*path, wrong[0]), f"unknown key {wrong[0]!r}; known: $while, $until{where}")


def compile_regex(source: str, path: Path) -> re.Pattern[str]:
    """A regular expression, or a `PatternError` that says what is wrong with it."""
    try:
        return re.compile(source)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(path, f"bad regular expression {source!r}: {error}") from None


def literal(value: Json) -> Json:
    """The source of a pattern that matches this value: its strings escaped. It must have no `$` keys."""
    if isinstance(value, str):
        return re.escape(value)
    if isinstance(value, list):
        return [literal(each) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {key: literal(each) for key, each in cast("JsonObject", value).items()}
    return value


def show(source: Json) -> str:
    """A value as TOML writes it inline, for reports: `{ kind = "call", op = "call_tool" }`."""
    if isinstance(source, dict):
        inside = ", ".join(f"{_key(key)} = {show(each)}" for key, each in cast("JsonObject", source).items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(source, list):
        return f"[{', '.join(show(each) for each in cast('list[Json]', source))}]"
    return json.dumps(source, ensure_ascii=False, default=str)  # a date of TOML is none of JSON


def show_path(path: Path) -> str:
    """A path as it is written: `detail.items[2].name`."""
    return "".join(_parts(path)).removeprefix(".")


def _parts(path: Path) -> Iterator[str]:
    for part in path:
        yield f"[{part}]" if isinstance(part, int) else f".{part if part.startswith('$') else _key(part)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)
