"""Is that a JSON Schema? As far as it matters to who uses one; what it refers to is not looked up. Pure.

A model's provider refuses every tool there is for one schema with `required` in a wrong place, so such a
schema must not get that far. A validator for all of JSON Schema would cost each listing more than all else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from toolpost.model import Json, JsonObject

_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}
_ONE = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
} | {
    "unevaluatedItems",
    "unevaluatedProperties",
}
_MANY = {"allOf", "anyOf", "oneOf", "prefixItems"}
_NAMED = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
"""Keywords whose value is a schema; a list of schemas; an object of schemas, each under a name."""
_QUOTED = 40
"""Characters of a word that is quoted."""


def problem_of_arguments(schema: Json) -> str | None:
    """What is wrong with it as the schema of a tool's arguments; None where nothing is.

    Arguments are an object always, so `type` may be left out.
    """
    if not isinstance(schema, dict):
        return "is missing" if schema is None else "is no object"
    type_ = cast("JsonObject", schema).get("type", "object")
    if type_ != "object" and not (isinstance(type_, list) and "object" in type_):
        return f"has the type {_shown(type_)}, but arguments are an object"
    problem = next(_problems(cast("JsonObject", schema)), None)
    return None if problem is None else f"is malformed: {problem}"


def _problems(root: JsonObject) -> Iterator[str]:
    todo: list[tuple[str, Json]] = [("", root)]
    while todo:
        place, schema = todo.pop()
        if isinstance(schema, bool):
            continue
        if not isinstance(schema, dict):
            yield f"{place or 'it'} is no schema"
            continue
        for keyword, value in cast("JsonObject", schema).items():
            where = f"{place}.{keyword}" if place else keyword
            if keyword in _NAMED:
                if isinstance(value, dict):
                    todo += [(f"{where}.{name}", each) for name, each in cast("JsonObject", value).items()]
                else:
                    yield f"{where} is no object"
            elif keyword in _MANY or (keyword == "items" and isinstance(value, list)):
                if isinstance(value, list):
                    todo += [(f"{where}[{n}]", each) for n, each in enumerate(cast("list[Json]", value))]
                else:
                    yield f"{where} is no list"
            elif keyword in _ONE or keyword == "items":
                todo.append((where, value))
            elif not _is_good(keyword, value):
                yield f"{where} cannot be {_shown(value)}"


def _is_good(keyword: str, value: Json) -> bool:
    """Whether a keyword that holds no schemas has a value that it may have."""
    match keyword:
        case "type":
            types = cast("list[Json]", value) if isinstance(value, list) else [value]
            return all(isinstance(each, str) and each in _TYPES for each in types)
        case "required":
            return isinstance(value, list) and all(
                isinstance(each, str) for each in cast("list[Json]", value)
            )
        case "enum":
            return isinstance(value, list)
        case "$ref":
            return isinstance(value, str)
        case _:
            return True


def _shown(value: Json) -> str:
    """A value in a text; one that is no short word by its kind."""
    return repr(value) if isinstance(value, str) and len(value) <= _QUOTED else f"a {type(value).__name__}"
