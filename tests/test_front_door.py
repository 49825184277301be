"""The front doors: the lists of public names and reality are equal, and entering costs little."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolpost
import toolpost.testing

DOORS = [toolpost, toolpost.testing]
each_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)


def homes(door: ModuleType) -> dict[str, str]:
    """Each public name and the module that it is defined in, as the lazy table has it."""
    table: dict[str, str] = vars(door)["_HOMES"]
    return {name: f"{door.__name__}.{home}" for home, names in table.items() for name in names.split()}


def type_checked(door: ModuleType) -> list[tuple[str, str, str | None]]:
    """The imports that type checkers see: name, module, and what it is called here."""
    source = Path(inspect.getfile(door)).read_text()
    (block,) = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return [
        (alias.name, statement.module or "", alias.asname)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


@each_door
def test_the_list_the_table_and_the_imports_name_the_same(door: ModuleType) -> None:
    names = [name for name, _, _ in type_checked(door)]

    assert sorted(names) == sorted(homes(door)) == sorted(door.__all__)
    assert len(names) == len(set(names))


@each_door
def test_what_type_checkers_see_is_re_exported_under_its_name(door: ModuleType) -> None:
    assert all(asname == name for name, _, asname in type_checked(door))


@each_door
def test_type_checkers_and_the_table_mean_the_same_things(door: ModuleType) -> None:
    for name, module, _ in type_checked(door):
        assert getattr(door, name) is getattr(import_module(module), name), name


@pytest.mark.parametrize(
    ("door", "name"),
    [pytest.param(door, name, id=f"{door.__name__}.{name}") for door in DOORS for name in door.__all__],
)
def test_each_public_name_can_be_imported(door: ModuleType, name: str) -> None:
    value: Any = getattr(door, name)

    assert value is getattr(import_module(homes(door)[name]), name)
    assert name in dir(door)


@each_door
def test_star_gives_the_whole_list(door: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec(f"from {door.__name__} import *", names)
    assert set(door.__all__) <= set(names)


@each_door
def test_a_name_that_is_not_there_is_an_attribute_error(door: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{door.__name__}' has no attribute 'nothing'"):
        _ = door.nothing
    with pytest.raises(ImportError):
        exec(f"from {door.__name__} import nothing")


def test_the_version_is_that_of_the_package() -> None:
    assert toolpost.__version__ == metadata.version("toolpost")


def test_public_errors_are_the_tree() -> None:
    errors = import_module("toolpost.errors")
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    assert {name for name, home in homes(toolpost).items() if home == "toolpost.errors"} == defined
    for name in defined - {"AgentStopped"}:
        assert issubclass(getattr(toolpost, name), toolpost.ToolpostError)
    assert not issubclass(toolpost.AgentStopped, Exception)
    assert issubclass(toolpost.ScriptError, AssertionError)


def imported_by(code: str) -> set[str]:
    """The top-level modules that a new interpreter has after some code."""
    show = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{show}"], capture_output=True, text=True, check=True, timeout=30
    )
    return set(done.stdout.split())


HEAVY = {"mcp", "mcp_types", "pydantic", "anyio", "asyncio", "msgspec", "rich", "typer", "tomli", "logging"}


@each_door
def test_importing_it_imports_nothing_heavy(door: ModuleType) -> None:
    assert imported_by(f"import {door.__name__}") & HEAVY == set()


def test_a_host_of_kinds_that_are_not_mcp_never_imports_the_sdk() -> None:
    modules = imported_by(
        "import asyncio\n"
        "import toolpost\n"
        "from tests import memory\n"
        "async def use():\n"
        "    async with toolpost.open_host(memory.config(memory.Memory())) as host:\n"
        "        await host.tooling.get('memo').call_tool_blocking('echo')\n"
        "asyncio.run(use())"
    )
    assert modules & {"mcp", "mcp_types", "pydantic"} == set()


@each_door
def test_every_public_name_together_does_not_import_the_sdk(door: ModuleType) -> None:
    modules = imported_by(f"from {door.__name__} import *")
    assert modules & {"mcp", "mcp_types", "pydantic", "rich", "typer"} == set()
