"""The front door: the list of public names and reality are equal, and entering costs little."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest

import toolpost

SOURCE = Path(inspect.getfile(toolpost))


def homes() -> dict[str, str]:
    """Each public name and the module that it is defined in, as the lazy table has it."""
    table: dict[str, str] = vars(toolpost)["_HOMES"]
    return {name: f"toolpost.{home}" for home, names in table.items() for name in names.split()}


def type_checked() -> list[tuple[str, str, str | None]]:
    """The imports that type checkers see: name, module, and what it is called here."""
    (block,) = [node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If)]
    return [
        (alias.name, statement.module or "", alias.asname)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]


def test_the_list_the_table_and_the_imports_name_the_same() -> None:
    names = [name for name, _, _ in type_checked()]

    assert sorted(names) == sorted(homes()) == sorted(toolpost.__all__)
    assert len(names) == len(set(names))


def test_what_type_checkers_see_is_re_exported_under_its_name() -> None:
    assert all(asname == name for name, _, asname in type_checked())


def test_type_checkers_and_the_table_mean_the_same_things() -> None:
    for name, module, _ in type_checked():
        assert getattr(toolpost, name) is getattr(import_module(module), name), name


@pytest.mark.parametrize("name", toolpost.__all__)
def test_each_public_name_can_be_imported(name: str) -> None:
    value: Any = getattr(toolpost, name)

    assert value is getattr(import_module(homes()[name]), name)
    assert name in dir(toolpost)


def test_star_gives_the_whole_list() -> None:
    names: dict[str, Any] = {}
    exec("from toolpost import *", names)
    assert set(toolpost.__all__) <= set(names)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'toolpost' has no attribute 'nothing'"):
        _ = toolpost.nothing
    with pytest.raises(ImportError):
        exec("from toolpost import nothing")


def test_the_version_is_that_of_the_package() -> None:
    assert toolpost.__version__ == metadata.version("toolpost")


def test_public_errors_are_the_tree() -> None:
    errors = import_module("toolpost.errors")
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, BaseException)
    }
    assert {name for name, home in homes().items() if home == "toolpost.errors"} == defined
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


def test_importing_toolpost_imports_nothing_heavy() -> None:
    assert imported_by("import toolpost") & HEAVY == set()


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


def test_every_public_name_together_does_not_import_the_sdk() -> None:
    modules = imported_by("from toolpost import *")
    assert modules & {"mcp", "mcp_types", "pydantic", "rich", "typer"} == set()
