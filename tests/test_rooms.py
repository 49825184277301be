"""Imports point one way through the rooms of src/toolpost. The walk reads the code and runs none of it.

An import counts wherever it stands: at the top, inside a function, under `if TYPE_CHECKING`. Reaching a
module of another package also runs that package's `__init__`, so that counts too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

HERE = "tests/test_rooms.py"
SOURCE = Path(__file__).parent.parent / "src" / "toolpost"

ROOMS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("secret", "model"),
    ("aliases", "events"),
    ("trace.cells", "trace.events"),
    ("trace",),
    ("expect",),
    ("trace.file", "trace.log", "trace.table"),
    ("tooling",),
    ("config",),
    ("mock", "mcp"),
    ("host.order", "host.pools", "host.standing"),
    ("host.cancelling", "host.turns"),
    ("host.simulation",),
    ("host.bridge", "host.inbox"),
    ("host.context", "host.pump"),
    ("host.handle",),
    ("host.face",),
    ("host.agents", "host.sync"),
    ("host.core",),
    ("host.host",),
    ("host",),
    ("testing", "wasm"),
    ("cli", "pytest_plugin"),
)
"""The lowest first: a room may import the rooms listed before its line, not those beside it or after it.

A name stands for that module with everything in it; where modules of it have lines of their own (trace,
host), it stands for its `__init__` alone, and each of its modules needs a line. So to add
toolpost/host/clock.py, put `("host.clock",)` where it belongs.
"""

ALLOWED = {"config": {"errors", "secret", "model", "tooling"}}
"""Rooms that may import less than their line allows."""

CONFINED = {
    "aiohttp": "mcp",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "rich": "cli",
    "typer": "cli",
    "wasmtime": "wasm",
}
"""Packages of others, and the one room that may import each."""

EAGER_UP_TO = "tooling"
"""The front door imports what is listed after this room lazily: under TYPE_CHECKING or in a function."""

NAMES = {name for line in ROOMS for name in line}
RANK = {name: rank for rank, line in enumerate(ROOMS) for name in line}


@dataclass(frozen=True)
class Import:
    """One import, as the statement spells it: a module, or a module and a name in it."""

    target: str
    line: int
    lazy: bool


@dataclass(frozen=True)
class Module:
    """One file. Its name leaves `toolpost.` off, so that of the front door is empty."""

    name: str
    path: Path
    imports: list[Import]


def faults(source: Path) -> list[str]:
    """What is wrong with the imports of the package at `source`, one line each."""
    modules = {module.name: module for module in read_modules(source)}
    found: list[str] = []
    graph: dict[str, set[str]] = {}
    for module in modules.values():
        if module.name and room_of(module.name) is None:
            found.append(
                f"{module.path}: {module.name!r} is in no room; add it, or its package, to ROOMS in {HERE}"
            )
        for each in module.imports:
            place = f"{module.path}:{each.line}:"
            if not _inside(each.target, "toolpost"):
                found += [f"{place} {fault}" for fault in _foreign_fault(module.name, each.target)]
                continue
            for target in _reached(module.name, each.target, modules):
                if target != module.name:
                    graph.setdefault(module.name, set()).add(target)
                found += [f"{place} {fault}" for fault in _fault(module.name, target, each)]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append("a cycle: " + " <- ".join(f"toolpost.{name}".rstrip(".") for name in error.args[1]))
    return found


def _fault(importer: str, target: str, each: Import) -> Iterator[str]:
    """Nothing or one line: what is wrong with `importer` importing `target`, both of toolpost."""
    own, other = room_of(importer), room_of(target)
    if importer == "":
        if not each.lazy and other and RANK[other] > RANK[EAGER_UP_TO]:
            yield f"the front door imports the room {other!r} when it is loaded; import it lazily"
    elif target == "":
        yield "imports the front door; import the module that defines the name"
    elif own is None or other is None or own == other:
        return  # a module in no room is told of once, where it stands
    elif RANK[other] > RANK[own]:
        yield f"the room {own!r} imports upward: {other!r}"
    elif RANK[other] == RANK[own]:
        yield f"the room {own!r} imports its neighbour: {other!r}"
    elif other not in ALLOWED.get(own, NAMES):
        yield f"the room {own!r} may import only what ALLOWED lists, not {other!r}"


def _foreign_fault(importer: str, target: str) -> Iterator[str]:
    package = target.partition(".")[0]
    room = CONFINED.get(package)
    if room and not _inside(importer, room):
        yield f"imports {package!r}, which is for the room {room!r} alone"


def room_of(module: str) -> str | None:
    """The room that a module lies in: itself, or the nearest package around it that is listed."""
    if module in NAMES:
        return module
    package = module.rpartition(".")[0]
    if not package or any(name.startswith(f"{package}.") for name in NAMES):
        return None  # the modules of such a package are listed one by one
    return room_of(package)


def _reached(importer: str, target: str, modules: Collection[str]) -> Iterator[str]:
    """The modules that an import runs: the one it names, and the packages that are newly entered."""
    name = target
    while name != "toolpost" and name.removeprefix("toolpost.") not in modules:
        name = name.rpartition(".")[0]
    name = name.removeprefix("toolpost").removeprefix(".")
    yield name
    while name := name.rpartition(".")[0]:
        if name in modules and not _inside(importer, name):
            yield name


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def read_modules(source: Path) -> Iterator[Module]:
    """Every module of the package at `source`, with its imports."""
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        package = ".".join(["toolpost", *relative.parent.parts])
        name = package if path.stem == "__init__" else f"{package}.{path.stem}"
        statements = _imports(ast.parse(path.read_text(encoding="utf-8")), package, lazy=False)
        yield Module(name.removeprefix("toolpost").removeprefix("."), relative, list(statements))


def _imports(node: ast.AST, package: str, *, lazy: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            yield from (Import(alias.name, node.lineno, lazy) for alias in names)
        case ast.ImportFrom(module=origin, names=names, level=level):
            parents = package.split(".")
            base = parents[: len(parents) - level + 1] if level else []
            for alias in names:
                dotted = ".".join([*base, *([origin] if origin else []), alias.name])
                yield Import(dotted, node.lineno, lazy)
        case _:
            later = _runs_later(node)
            for child in ast.iter_child_nodes(node):
                yield from _imports(child, package, lazy=lazy or child in later)


def _runs_later(node: ast.AST) -> list[ast.stmt]:
    """The statements below `node` that do not run when the module is loaded."""
    match node:
        case ast.FunctionDef(body=body) | ast.AsyncFunctionDef(body=body):
            return body
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body):
            return body
        case _:
            return []


def test_imports_point_one_way_through_the_rooms() -> None:
    found = faults(SOURCE)

    assert not found, "\n".join(found)


def tree(folder: Path, files: dict[str, str]) -> Path:
    """A package with these files, and an empty `__init__` wherever there is none."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [folder, *(each for each in folder.rglob("*") if each.is_dir())]:
        (path / "__init__.py").touch()
    return folder


FAULTY = {
    "an upward import": (
        {"errors.py": "from toolpost.model import Tool", "model.py": ""},
        "errors.py:1: the room 'errors' imports upward: 'model'",
    ),
    "an upward import inside a function": (
        {"model.py": "def load():\n    from toolpost import events", "events.py": ""},
        "model.py:2: the room 'model' imports upward: 'events'",
    ),
    "an upward import for the type checker": (
        {
            "model.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import toolpost.events",
            "events.py": "",
        },
        "model.py:3: the room 'model' imports upward: 'events'",
    ),
    "an upward import with dots": (
        {"tooling/port.py": "from ..host.host import Host", "host/host.py": ""},
        "tooling/port.py:1: the room 'tooling' imports upward: 'host.host'",
    ),
    "an upward import inside the host": (
        {"host/inbox.py": "from toolpost.host.pump import pump", "host/pump.py": ""},
        "host/inbox.py:1: the room 'host.inbox' imports upward: 'host.pump'",
    ),
    "a log that patterns would read": (
        {"expect/pattern.py": "from toolpost.trace.log import Log", "trace/log.py": ""},
        "expect/pattern.py:1: the room 'expect' imports upward: 'trace.log'",
    ),
    "a package whose `__init__` reaches further than the module meant": (
        {
            "trace/__init__.py": "from toolpost.trace.log import Log",
            "trace/events.py": "",
            "trace/log.py": "",
        },
        "trace/__init__.py:1: the room 'trace' imports upward: 'trace.log'",
    ),
    "kinds that know each other": (
        {"mock/backend.py": "from toolpost.mcp.kind import KIND", "mcp/kind.py": ""},
        "mock/backend.py:1: the room 'mock' imports its neighbour: 'mcp'",
    ),
    "a config that knows more than it may": (
        {"config/load.py": "from toolpost.events import Event", "events.py": ""},
        "config/load.py:1: the room 'config' may import only what ALLOWED lists, not 'events'",
    ),
    "a cycle inside a room": (
        {"mcp/http.py": "import toolpost.mcp.stdio", "mcp/stdio.py": "from . import http"},
        "a cycle: toolpost.mcp.http <- toolpost.mcp.stdio <- toolpost.mcp.http",
    ),
    "the SDK outside its room": (
        {"host/pump.py": "def dial():\n    import mcp.client"},
        "host/pump.py:2: imports 'mcp', which is for the room 'mcp' alone",
    ),
    "the SDK's types outside its room": (
        {"model.py": "from mcp_types import Tool"},
        "model.py:1: imports 'mcp_types', which is for the room 'mcp' alone",
    ),
    "colours outside the command line": (
        {"testing/report.py": "from rich.console import Console"},
        "testing/report.py:1: imports 'rich', which is for the room 'cli' alone",
    ),
    "a command outside the command line": (
        {"testing/runner.py": "import typer"},
        "testing/runner.py:1: imports 'typer', which is for the room 'cli' alone",
    ),
    "the front door from inside": (
        {"cli/run.py": "from toolpost import open_host"},
        "cli/run.py:1: imports the front door; import the module that defines the name",
    ),
    "a front door that loads everything": (
        {"__init__.py": "from toolpost.host.host import open_host", "host/host.py": ""},
        "__init__.py:1: the front door imports the room 'host.host' when it is loaded; import it lazily",
    ),
    "a module in no room": (
        {"stray.py": ""},
        "stray.py: 'stray' is in no room; add it, or its package, to ROOMS in tests/test_rooms.py",
    ),
    "a module in no room beside those that are": (
        {"host/clock.py": ""},
        "host/clock.py: 'host.clock' is in no room; add it, or its package, to ROOMS in tests/test_rooms.py",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_found_and_named(name: str, tmp_path: Path) -> None:
    files, expected = FAULTY[name]

    found = faults(tree(tmp_path, files))

    assert expected in found


def test_nothing_is_wrong_with_imports_that_point_down(tmp_path: Path) -> None:
    files = {
        "__init__.py": (
            "from typing import TYPE_CHECKING\n"
            "from toolpost.errors import ToolpostError\n"
            "if TYPE_CHECKING:\n    from toolpost.host.host import Host\n"
            "def __getattr__(name):\n    from toolpost.host import host\n"
        ),
        "errors.py": "import json",
        "model.py": "",
        "events.py": "from .errors import ToolpostError\nfrom . import model",
        "trace/__init__.py": "from toolpost.trace.events import Call",
        "trace/events.py": "from toolpost.events import Event",
        "trace/log.py": "from toolpost.expect.pattern import Pattern\nimport toolpost.trace.events",
        "expect/__init__.py": "from toolpost.expect.pattern import Pattern",
        "expect/pattern.py": "from toolpost.trace.events import Call",
        "tooling/port.py": "",
        "config/load.py": "from toolpost.tooling.port import Kind",
        "mcp/kind.py": "import mcp.client\nfrom mcp_types import Tool\nfrom toolpost.tooling import port",
        "mock/backend.py": "from toolpost.trace.log import Log",
        "host/__init__.py": "from toolpost.host.host import Host",
        "host/inbox.py": "",
        "host/host.py": "from toolpost.host.inbox import Inbox\nfrom toolpost.mock import backend",
        "testing/runner.py": "import toolpost.host.host",
        "cli/main.py": "import typer\nfrom rich.console import Console\nfrom toolpost.testing import runner",
    }

    assert faults(tree(tmp_path, files)) == []
