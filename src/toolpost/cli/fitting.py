"""Do arguments fit a tool's schema? Asked before the call, and answered in the schema's own words.

The server is the judge: what is told here is only what it would refuse. So a schema that cannot be used is
no obstacle, and nothing outside the schema is fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolpost.cli.input_schema import InputSchema, short, short_list
from toolpost.model import JsonObject

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_BOUND = 20
"""So many problems are told."""


class UnusableSchema(Exception):
    """The schema is no schema, or refers to what is not in it."""


def problems(arguments: JsonObject, schema: JsonObject) -> list[str]:
    """What does not fit, one line each; empty where all does.

    Raises:
        UnusableSchema: That cannot be said.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import EMPTY_REGISTRY

    try:
        dialect: Any = validator_for(schema, default=Draft202012Validator)
        dialect.check_schema(schema)
        # a registry of our own, and empty: the default one fetches what a reference names
        found: Iterable[ValidationError] = dialect(schema, registry=EMPTY_REGISTRY).iter_errors(arguments)
        ordered = sorted(found, key=lambda each: [str(part) for part in each.absolute_path])
        whole = InputSchema(schema)
        return list(dict.fromkeys(line for each in ordered for line in _told(each, whole)))[:_BOUND]
    except SchemaError as error:
        raise UnusableSchema(_first_line(error.message)) from None
    except Unresolvable as error:
        raise UnusableSchema(f"it refers to {error.ref!r}, which is not in it") from None
    except RecursionError:
        raise UnusableSchema("it is nested too deeply, or refers to itself") from None
    except Exception as error:  # a pattern that is no regular expression here, a type that nobody knows, …
        raise UnusableSchema(f"{type(error).__name__}: {_first_line(str(error))}") from None


def _told(error: ValidationError, whole: InputSchema) -> Iterator[str]:
    """One error as a line or several, the place first."""
    where = list(error.absolute_path)
    at = _dotted(where)
    own = InputSchema(error.schema, whole.root)
    match error.validator:
        case "required":
            for key in cast("list[str]", error.validator_value):
                if key not in cast("JsonObject", error.instance):
                    yield f"{_dotted([*where, key])} is missing{_in_brackets(own.property(key).words())}"
        case "additionalProperties" | "unevaluatedProperties" if error.validator_value is False:
            yield from _unknown(error, own, where)
        case "type":
            yield _expected(at, _either(error.validator_value), error, own)
        case "enum":
            yield _expected(at, f"one of {short_list(cast('list[Any]', error.validator_value))}", error, None)
        case "const":
            yield _expected(at, short(error.validator_value), error, None)
        case "anyOf" | "oneOf" if error.context:
            yield from _no_alternative(error, own, whole)
        case _:
            yield f"{at or 'the arguments'}: {_first_line(error.message)}{_in_brackets(own.words())}"


def _unknown(error: ValidationError, own: InputSchema, where: list[str | int]) -> Iterator[str]:
    from toolpost.config.problems import nearest

    known = own.property_names()
    for key in cast("JsonObject", error.instance):
        if key not in known:
            there = f"the tool knows {nearest(key, known)}" if known else "it takes none"
            yield f"{_dotted([*where, key])} is unknown; {there}"


def _no_alternative(error: ValidationError, own: InputSchema, whole: InputSchema) -> Iterator[str]:
    """None of several alternatives fits: what the one would need that comes nearest."""
    at = _dotted(list(error.absolute_path))
    context = error.context or []
    if all(each.validator == "type" and not each.relative_path for each in context):
        yield _expected(at, " or ".join(sorted(_types(context))), error, own)
        return
    nearest = _nearest_branch(context)
    lines = [line for each in nearest for line in _told(each, whole)]
    yield from lines or [f"{at or 'the arguments'}: fits none of several alternatives, or more than one"]


def _nearest_branch(context: Sequence[ValidationError]) -> list[ValidationError]:
    """What is wrong with the one alternative that was most likely meant."""
    branches: dict[Any, list[ValidationError]] = {}
    for each in context:
        branches.setdefault(next(iter(each.relative_schema_path), None), []).append(each)

    def distance(errors: list[ValidationError]) -> tuple[int, int]:
        # another type, or another value of what tells alternatives apart: another alternative was meant
        other = sum(each.validator in ("const", "enum", None) or _is_another_type(each) for each in errors)
        return other, len(errors)

    return min(branches.values(), key=distance)


def _is_another_type(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _types(errors: Iterable[ValidationError]) -> set[str]:
    return {name for each in errors for name in _names(each.validator_value)}


def _names(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else [str(value)]


def _either(value: Any) -> str:
    return " or ".join(_names(value))


def _expected(at: str, what: str, error: ValidationError, own: InputSchema | None) -> str:
    said = "" if own is None else own.words().partition(": ")[2]
    return f"{at or 'the arguments'}: expected {what}, not {short(error.instance)}{_in_brackets(said)}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _dotted(path: list[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"
