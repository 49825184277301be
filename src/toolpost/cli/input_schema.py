"""A tool's input schema, as far as reading a command line needs it: which types, properties, items.

Lenient where a validator is strict: alternatives (`anyOf`, `oneOf`, `allOf`) are taken together, references
are followed inside the document only, and what is malformed says nothing. Whether arguments fit is
decided in `fitting`, not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

from toolpost.model import Json

_HOPS = 16
"""Alternatives inside alternatives, and references to references, are followed so far: they may be cycles."""
_VIEWS = 200
"""So many alternatives are looked at."""


class InputSchema:
    """One place of a schema, with the document that its local references point into."""

    def __init__(self, value: Any, root: Any = None) -> None:
        self._value = value
        self.root = value if root is None else root

    def types(self) -> set[str]:
        """The types that it names, its alternatives included; empty where it leaves that open."""
        found: set[str] = set()
        for view in self._views():
            named = view.get("type")
            if isinstance(named, str):
                found.add(named)
            elif isinstance(named, list):
                found |= {each for each in cast("list[Any]", named) if isinstance(each, str)}
            else:
                values = [*_list(view.get("enum")), *([view["const"]] if "const" in view else [])]
                for each in values:
                    found |= type_names(each)
        return found

    def property_names(self) -> list[str]:
        """The properties that it names, in its order."""
        return list(dict.fromkeys(key for view in self._views() for key in _table(view.get("properties"))))

    def property(self, key: str) -> InputSchema:
        """What it says of a property: nothing, where it does not know it."""
        views = list(self._views())
        found: list[Any] = [
            view["properties"][key] for view in views if key in _table(view.get("properties"))
        ]
        if not found:
            extras = (_table(view.get("additionalProperties")) for view in views)
            found = [extra for extra in extras if extra]
        return self._any_of(found)

    def items(self) -> InputSchema:
        """What it says of each item of an array."""
        return self._any_of([items for view in self._views() if (items := view.get("items")) is not None])

    def words(self) -> str:
        """What it is for people: its type, what it may be, and what it is for."""
        views = list(self._views())
        enums = [_list(view.get("enum")) for view in views]
        values = next((each for each in enums if each), list[Any]())
        what = f"one of {short_list(values)}" if values else " or ".join(sorted(self.types()))
        said = (view.get(key) for view in views for key in ("description", "title"))
        text = next((" ".join(each.split()) for each in said if isinstance(each, str) and each.strip()), "")
        return ": ".join(each for each in (what, _cut(text, 120)) if each)

    def _any_of(self, found: list[Any]) -> InputSchema:
        return InputSchema(found[0] if len(found) == 1 else {"anyOf": found}, self.root)

    def _views(self) -> Iterator[dict[str, Any]]:
        """The table itself, without its reference, and those of all its alternatives."""
        left = [(self._value, 0)]
        seen = 0
        while left and seen < _VIEWS:
            value, hops = left.pop(0)
            table = _table(value)
            seen += 1
            yield table
            if hops == _HOPS:
                continue
            if isinstance(reference := table.get("$ref"), str):
                left.append((self._target(reference), hops + 1))
            for key in ("allOf", "anyOf", "oneOf"):
                left += [(each, hops + 1) for each in _list(table.get(key))]

    def _target(self, reference: str) -> Any:
        """What `#/…` points to; None for any other address: nothing is fetched."""
        if not reference.startswith("#"):
            return None
        found = self.root
        for part in unquote(reference[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                items = cast("list[Any]", found)
                found = items[int(key)] if key.isdecimal() and int(key) < len(items) else None
            else:
                found = _table(found).get(key)
        return found


def type_names(value: Json) -> set[str]:
    """The names that JSON Schema has for the type of a value."""
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


def short_list(values: list[Any]) -> str:
    """Values to read: the first ten, each as JSON."""
    shown = ", ".join(short(each) for each in values[:10])
    return f"{shown}, … ({len(values)} in all)" if len(values) > 10 else shown


def short(value: Any) -> str:
    """A value as JSON, cut to what fits into a sentence."""
    import json

    return _cut(json.dumps(value, ensure_ascii=False), 60)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
