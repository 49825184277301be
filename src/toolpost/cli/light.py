"""Commands whose options cost no pydantic: typer imports it to make of a string a string.

That is a tenth of a second, and a run with mocks alone is to import nothing of the kind. A value that is
already what its parameter asks for is taken as it is; all else goes typer's way, with typer's errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from typer.core import TyperCommand, TyperGroup


class LightCommand(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters, with that of `--help`."""
        return _lightened(super().get_params(ctx))


class LightGroup(TyperGroup):
    """The options before a command."""

    def get_params(self, ctx: Any) -> Any:
        """Its parameters, with that of `--help`."""
        return _lightened(super().get_params(ctx))


def _lightened(params: list[Any]) -> list[Any]:
    for param in params:
        if not isinstance(param.process_value, partial):
            param.process_value = partial(_process, param, param.process_value)
    return params


def _process(param: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    if value is None and not param.required:
        plain = () if param.multiple or param.nargs == -1 else None
    elif _fits(getattr(param, "type_descriptor", None), value) and not param.required:
        plain = value
    else:
        return process(context, value)
    return plain if param.callback is None else param.callback(context, param, plain)


def _fits(descriptor: Any, value: object) -> bool:
    hint: Any = getattr(descriptor, "annotation", None)
    if isinstance(value, (list, tuple)):
        return hint == list[str] and all(isinstance(each, str) for each in cast("list[object]", value))
    return (hint is str or hint is int) and type(value) is hint
