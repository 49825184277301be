"""Why a value does not match: the first difference, and which of several values came nearest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from toolpost.expect.pattern import Array, Exact, Item, Object, Path, Pattern, Text, show, show_path
from toolpost.expect.sequence import Cursor
from toolpost.model import Json, JsonObject

C = TypeVar("C")

MAX_SHOWN = 200
"""Characters of a value that a difference shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a value departs from a pattern."""

    path: Path
    wanted: str
    found: str
    agreed: int
    """How many places of the pattern were met before it."""

    def __str__(self) -> str:
        where = show_path(self.path)
        return f"{where + ': ' if where else ''}wanted {self.wanted}, found {self.found}"


def explain(pattern: Pattern, value: Json, path: Path = ()) -> Difference | None:
    """The first difference, or None if the value matches."""
    return _explain(pattern, value, path, 0)[1]


def nearest(explained: Iterable[tuple[C, Difference]]) -> tuple[C, Difference] | None:
    """Of candidates that miss, the one that met most of the pattern; of equals the first."""
    best: tuple[C, Difference] | None = None
    for candidate, difference in explained:
        if best is None or difference.agreed > best[1].agreed:
            best = (candidate, difference)
    return best


def _explain(pattern: Pattern, value: Json, path: Path, agreed: int) -> tuple[int, Difference | None]:
    """How many places agree now, and the first that does not."""
    match pattern:
        case Object(fields=fields):
            if not isinstance(value, dict):
                return agreed, Difference(path, "an object", _shown(value), agreed)
            return _explain_object(fields, cast("JsonObject", value), path, agreed)
        case Array(items=items):
            if not isinstance(value, list):
                return agreed, Difference(path, "an array", _shown(value), agreed)
            return _explain_array(items, cast("list[Json]", value), path, agreed)
        case Text(source=source):
            wanted = f"a text with {show(source)}"
        case Exact():
            wanted = show(pattern.to_json())
    if pattern.matches(value):
        return agreed + 1, None
    return agreed, Difference(path, wanted, _shown(value), agreed)


def _explain_object(
    fields: tuple[tuple[str, Pattern], ...], value: JsonObject, path: Path, agreed: int
) -> tuple[int, Difference | None]:
    for key, pattern in fields:
        here = (*path, key)
        if key not in value:
            keys = ", ".join(sorted(value)) or "none"
            return agreed, Difference(here, show(pattern.to_json()), f"no such key (keys: {keys})", agreed)
        agreed, difference = _explain(pattern, value[key], here, agreed)
        if difference is not None:
            return agreed, difference
    return agreed, None


def _explain_array(
    items: tuple[Item, ...], value: Sequence[Json], path: Path, agreed: int
) -> tuple[int, Difference | None]:
    cursor = Cursor([item.step for item in items])
    rest = 0  # where the search for the current item began
    for index, candidate in enumerate(value):
        before = cursor.at
        if cursor.take(candidate) or cursor.at != before:
            rest = index + 1
    unmet = cursor.unmet
    if unmet is None:
        return agreed + len(items), None
    pattern = items[unmet].pattern
    misses = (
        (index, _explain(pattern, value[index], (*path, index), 0)[1]) for index in range(rest, len(value))
    )
    near = nearest((index, miss) for index, miss in misses if miss is not None)
    where = f"no more items (there are {len(value)})" if near is None else f"none such; nearest {near[1]}"
    met = agreed + unmet
    return met, Difference((*path, unmet), f"an item {show(items[unmet].to_json())}", where, met)


def _shown(value: Json) -> str:
    text = show(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"
