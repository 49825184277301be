"""What a component is: its size, what it needs and what it gives, and whether this host runs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from toolpost.errors import ToolpostError, UsageError
from toolpost.model import JsonObject
from toolpost.wasm.load import EXTRA, header_problem


def inspect(path: Path) -> JsonObject:
    """A component, described: `bytes`, `imports` and `exports` by name with their functions, `problems`.

    Raises:
        UsageError: The file is no component, or the extra `wasm` is not installed.
        ToolpostError: It is a damaged one.
    """
    if problem := header_problem(path):
        raise UsageError(f"{path} {problem}")
    try:
        from wasmtime import Engine, WasmtimeError
        from wasmtime.component import ComponentInstanceType, FuncType

        from toolpost.wasm.engine import compiled, new_engine
        from toolpost.wasm.interface import misfits
        from toolpost.wasm.waits import OWN_IMPORTS
    except ModuleNotFoundError as error:
        if error.name != "wasmtime":
            raise
        raise UsageError(EXTRA) from None

    def functions(item: object, engine: Engine) -> list[str]:
        if not isinstance(item, ComponentInstanceType):
            return []
        return sorted(
            name for name, extern in item.exports(engine).items() if isinstance(extern.ty, FuncType)
        )

    engine = new_engine()
    try:
        found = compiled(path)
        component = found.load(engine)
    except (WasmtimeError, OSError) as error:
        raise ToolpostError(f"{path} cannot be loaded: {error}") from None
    imports, exports = component.type.imports(engine), component.type.exports(engine)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "imports": {
            name: functions(extern.ty, engine) for name, extern in imports.items() if name not in OWN_IMPORTS
        },
        "exports": {name: functions(extern.ty, engine) for name, extern in exports.items()},
        "problems": list(misfits(component, engine, is_wrapped=found.is_wrapped)),
    }


def for_people(described: JsonObject) -> str:
    """The same, to read."""
    lines = [f"{described['file']}: {described['bytes']:,} bytes"]
    for what in ("imports", "exports"):
        lines += ["", what, *_listed(described[what].items())]
    problems: list[str] = described["problems"]
    lines += ["", *([f"not for this host: {each}" for each in problems] or ["this host runs it"])]
    return "\n".join(lines)


def _listed(items: Iterable[tuple[str, list[str]]]) -> Iterable[str]:
    for name, functions in sorted(items):
        yield f"  {name}"
        if name.startswith("toolpost:"):  # what WASI has is known
            yield from (f"    {each}" for each in functions)
