"""What a component is made for, by its imports and exports: whether this host can run it, or why not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wasmtime import Engine
from wasmtime.component import (
    BorrowType,
    Component,
    ComponentInstanceType,
    EnumType,
    FuncType,
    ListType,
    OptionType,
    OwnType,
    RecordType,
    ResultType,
    ValType,
    VariantType,
)

from toolpost.wasm.waits import POLL
from toolpost.wasm.wit import PACKAGE, RESOURCE, VERSION, WORLD, functions

_WASI = {"cli", "clocks", "filesystem", "io", "random", "sockets"}
"""The packages of WASI 0.2 that are there. A guest reaches by them what it was granted, if anything."""

_INTERFACE = re.compile(r"(?P<package>[^/]+)/(?P<name>[^@]+)@(?P<minor>\d+\.\d+)\.[^@]+")


def misfits(component: Component, engine: Engine, *, is_wrapped: bool) -> Iterator[str]:
    """Why this host cannot run a component; nothing where it can.

    Args:
        component: What there is to run.
        engine: Its engine.
        is_wrapped: Whether its waits can be interrupted, if it has any.
    """
    for name, extern in component.type.imports(engine).items():
        if name.startswith(POLL) and not is_wrapped:
            yield (
                f"it imports {name!r} where its waits could not be interrupted:"
                " imports come first in a component, as compilers put them, and that one once"
            )
        yield from _import_misfits(name, extern.ty, engine)
    exports = {name: extern.ty for name, extern in component.type.exports(engine).items()}
    for name, wanted in functions()[WORLD].items():
        given = exports.get(name)
        if given is None:
            listed = ", ".join(map(repr, sorted(exports))) or "nothing"
            yield f"it exports {listed}, and no {name!r}: the world {WORLD!r} of {PACKAGE}@{VERSION} has that"
        elif not isinstance(given, FuncType) or _text(given) != wanted:
            yield f"its {name!r} is not `{wanted}`, as in {PACKAGE}@{VERSION}"


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
    elif parts["name"] == WORLD or (offered := functions().get(parts["name"])) is None:
        yield f"it imports {name!r}, which {PACKAGE}@{VERSION} does not have"
    else:
        taken = {each: extern.ty for each, extern in item.exports(engine).items()}
        wanted = {each: _text(type_) for each, type_ in taken.items() if isinstance(type_, FuncType)}
        if missing := ", ".join(sorted(wanted.keys() - offered.keys())):
            yield f"it imports {missing} of {name!r}, which {PACKAGE}@{VERSION} does not have"
        for each in sorted(wanted.keys() & offered.keys()):
            if wanted[each] != offered[each]:
                yield (
                    f"it imports {each} of {name!r} as `{wanted[each]}`,"
                    f" and {PACKAGE}@{VERSION} has `{offered[each]}`"
                )


def _text(type_: FuncType | ValType | None) -> str:
    """A type as `functions` has it. Of a resource a component does not say which it is: here is but one."""
    match type_:
        case FuncType():
            given = "" if type_.result is None else f" -> {_text(type_.result)}"
            return f"func({_fields(type_.params)}){given}"
        case RecordType():
            return f"record {{ {_fields(type_.fields)} }}"
        case EnumType():
            return f"enum {{ {', '.join(type_.names)} }}"
        case VariantType():
            cases = [name if of is None else f"{name}({_text(of)})" for name, of in type_.cases]
            return f"variant {{ {', '.join(cases)} }}"
        case ListType():
            return f"list<{_text(type_.element)}>"
        case OptionType():
            return f"option<{_text(type_.payload)}>"
        case ResultType():
            return f"result<{_text(type_.ok)}, {_text(type_.err)}>"
        case OwnType():
            return RESOURCE
        case BorrowType():
            return f"borrow<{RESOURCE}>"
        case None:
            return "_"
        case _:
            return type(type_).__name__.lower()


def _fields(fields: list[tuple[str, ValType]]) -> str:
    return ", ".join(f"{name}: {_text(of)}" for name, of in fields)
