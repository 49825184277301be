"""What a component is made for, by its imports and exports: whether this host can run it, or why not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wasmtime import Engine
from wasmtime.component import Component, ComponentInstanceType, FuncType, OptionType, ResultType, String

from toolpost.wasm.calls import OFFERED

PACKAGE = "toolpost:agent"
VERSION = "0.1.0"
"""Of toolpost.wit. Until 1.0 a guest needs a host of its own minor version."""
_WASI = {"cli", "clocks", "filesystem", "io", "random", "sockets"}
"""The packages of WASI 0.2 that are there. A guest reaches by them what it was granted, if anything."""

_INTERFACE = re.compile(r"(?P<package>[^/]+)/(?P<name>[^@]+)@(?P<minor>\d+\.\d+)\.[^@]+")


def misfits(component: Component, engine: Engine) -> Iterator[str]:
    """Why this host cannot run a component; nothing where it can."""
    for name, extern in component.type.imports(engine).items():
        yield from _import_misfits(name, extern.ty, engine)
    exports = {name: extern.ty for name, extern in component.type.exports(engine).items()}
    run = exports.get("run")
    if run is None:
        listed = ", ".join(map(repr, sorted(exports))) or "nothing"
        yield f"it exports {listed}, and no 'run': the world 'agent' of {PACKAGE}@{VERSION} has that"
    elif not _is_run(run):
        yield f"its 'run' is not `func() -> result<option<string>, string>`, as in {PACKAGE}@{VERSION}"


def _is_run(item: object) -> bool:
    if not isinstance(item, FuncType) or item.params or not isinstance(item.result, ResultType):
        return False
    ok, err = item.result.ok, item.result.err
    return isinstance(ok, OptionType) and isinstance(ok.payload, String) and isinstance(err, String)


def _import_misfits(name: str, item: object, engine: Engine) -> Iterator[str]:
    parts = _INTERFACE.fullmatch(name)
    kind, _, wasi = parts["package"].partition(":") if parts else ("", "", "")
    if parts is None or not isinstance(item, ComponentInstanceType):
        yield f"it imports {name!r}, which toolpost does not offer"
    elif parts["package"] != PACKAGE:
        if kind != "wasi" or wasi not in _WASI or parts["minor"] != "0.2":
            yield f"it imports {name!r}, which toolpost does not offer"
    elif parts["minor"] != VERSION.rpartition(".")[0]:
        yield f"it imports {name!r}, and this toolpost has {PACKAGE}@{VERSION}: build it anew"
    elif parts["name"] not in OFFERED:
        yield f"it imports {name!r}, which {PACKAGE}@{VERSION} does not have"
    else:
        functions = {name for name, extern in item.exports(engine).items() if isinstance(extern.ty, FuncType)}
        if missing := ", ".join(sorted(functions - OFFERED[parts["name"]])):
            yield f"it imports {missing} of {name!r}, which {PACKAGE}@{VERSION} does not have"
