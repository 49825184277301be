"""Does a result fit the output schema of its tool? Needs no SDK, and jsonschema only when a schema is there.

The schema comes from the server, and so may be anything. Nothing that it refers to is fetched; a check costs
at most so many steps, and runs no regular expression of the server's: one of those can take years, and the
loop with it. A schema that cannot be used is told in a warning, once; results of its tool pass unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolpost.model import Json, JsonObject, Tool
from toolpost.secret import get_logger, mask

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_log = get_logger("toolpost.mcp")

MAX_STEPS = 10_000
"""Keywords of a schema that are applied to one result: some tenths of a second, in which the loop stands."""
MAX_SCHEMA_BYTES = 256 * 1024
_QUOTED = 200
"""Characters that are quoted of what does not fit."""
_BY_PATTERN = ("patternProperties", "additionalProperties", "unevaluatedProperties")
"""Keywords that match the names of properties with the patterns beside them."""

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], "Iterable[ValidationError] | None"]
_steps_left: ContextVar[int] = ContextVar("steps_left")


class _Unusable(Exception):
    """Why a schema cannot judge."""


class _TooLong(_Unusable):
    """It cannot judge this value; a smaller one it may."""


class Outputs:
    """The output schemas of one connection's tools, as the server listed them last."""

    def __init__(self, tooling: str) -> None:
        self._tooling = tooling
        self._checks: dict[str, _Check | None] = {}
        self.known = False
        """Whether the tools have been listed, since they last changed."""
        self.changes = 0
        """How often they have changed: a list that was asked for before may be the old one."""

    def learn(self, tools: Iterable[Tool]) -> None:
        """Take the schemas of the whole list of tools."""
        checks: dict[str, _Check | None] = {}
        for tool in tools:
            check = None if tool.output_schema is None else _Check(tool.output_schema)
            if tool.name in checks and checks[tool.name] != check:
                check = None  # two tools of one name: which of them answered is not known
            elif check is not None and check == self._checks.get(tool.name):
                check = self._checks[tool.name]  # compiled, or told to be unusable
            checks[tool.name] = check
        self._checks, self.known = checks, True

    def forget(self) -> None:
        """The tools have changed."""
        self.changes += 1
        self.known = False

    def problem(self, tool: str, result: JsonObject) -> str | None:
        """Where a raw result does not fit the schema of its tool, and why; None where nothing is wrong."""
        check = self._checks.get(tool) if self.known else None
        if check is None or check.is_unusable:
            return None
        if "structuredContent" not in result:
            return "structured_content is missing, though the tool has an output_schema"
        try:
            return check.problem(result["structuredContent"])
        except _Unusable as error:
            check.is_unusable = not isinstance(error, _TooLong)
            if not check.is_told:
                check.is_told = True
                what = "tooling %r: a result of tool %r is not checked by its output_schema: %s"
                _log.warning(what, self._tooling, tool, error)
            return None


class _Check:
    """One schema, compiled when it is first used."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._validator: Any = None
        self.is_unusable = False
        self.is_told = False
        """Whether a warning has said why results are not checked."""

    def __eq__(self, other: object) -> bool:
        # encoded, since 1 == True in Python and not in JSON
        return isinstance(other, _Check) and _encoded(self._schema) == _encoded(other._schema)

    __hash__ = None  # pyright: ignore[reportAssignmentType]: the way to say that it has none

    def problem(self, value: Json) -> str | None:
        """The first thing in a value that does not fit, with its place.

        Raises:
            _Unusable: It cannot be said.
        """
        from referencing.exceptions import Unresolvable

        allowance = _steps_left.set(MAX_STEPS)
        try:
            self._validator = self._validator or _compiled(self._schema)
            found: ValidationError | None = next(iter(self._validator.iter_errors(value)), None)
        except _Unusable:
            raise
        except Unresolvable as error:
            raise _Unusable(f"it refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            raise _Unusable("it is nested too deeply, or refers to itself") from None
        except Exception as error:  # whatever else a schema can hold that jsonschema stumbles over
            raise _Unusable(f"{type(error).__name__}: {_short(str(error))}") from None
        finally:
            _steps_left.reset(allowance)
        return None if found is None else f"{_place(found.absolute_path)}: {_short(found.message)}"


def _compiled(schema: JsonObject) -> Any:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing.jsonschema import EMPTY_REGISTRY

    text = _encoded(schema)
    if len(text) > MAX_SCHEMA_BYTES:
        raise _Unusable(f"it is larger than {MAX_SCHEMA_BYTES // 1024} KiB")
    if text.count(b'"$schema":') > ("$schema" in schema):
        raise _Unusable("it mixes several dialects of JSON Schema")  # each would bring its own keywords
    dialect: Any = validator_for(schema, default=Draft202012Validator)
    try:
        dialect.check_schema(schema)
    except SchemaError as error:
        raise _Unusable(f"{_place(error.absolute_path, 'output_schema')}: {_short(error.message)}") from None
    tame = _tamed(dialect, b'"patternProperties":' in text)
    # without its dialect: a reference to the whole schema would bring the untamed one back. And with a
    # registry of our own, which is empty: the default one fetches what a reference names.
    schema = {key: each for key, each in schema.items() if key != "$schema"}
    return tame(schema, registry=EMPTY_REGISTRY)


@cache
def _tamed(dialect: Any, by_pattern: bool) -> Any:
    """A dialect that counts its steps, and leaves out the keywords that match by regular expression."""
    import jsonschema.validators

    left_out = ("pattern", *_BY_PATTERN) if by_pattern else ("pattern",)
    keywords: dict[str, _Keyword] = dialect.VALIDATORS
    tame = {name: _passed if name in left_out else _counted(name, of) for name, of in keywords.items()}
    extend: Any = vars(jsonschema.validators)["extend"]  # which has no types
    return extend(dialect, tame)


def _counted(name: str, keyword: _Keyword) -> _Keyword:
    each = 10 if name in ("$ref", "$dynamicRef", "$recursiveRef") else 1  # which have to be looked up

    def count(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        cost = each
        if name == "uniqueItems" and validator.is_type(instance, "array"):
            cost += len(instance) ** 2 // 2  # what cannot be sorted is compared each with each
        left = _steps_left.get() - cost
        if left < 0:
            raise _TooLong(f"it takes more than {MAX_STEPS} steps")
        _steps_left.set(left)
        return keyword(validator, value, instance, schema)

    return count


def _passed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return iter(())


def _encoded(schema: JsonObject) -> bytes:
    return msgspec.json.encode(schema)


def _place(path: Iterable[str | int], root: str = "structured_content") -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _short(text: str) -> str:
    line = mask(text).partition("\n")[0]  # cut last: half a secret is not found
    return line if len(line) <= _QUOTED else f"{line[: _QUOTED - 1]}…"
