"""The module `toolpost` inside a Python guest is what the package is outside: names, parameters, fields."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import toolpost
from toolpost.wasm.wit import WIT

FACES = ("Host", "SyncHost", "SyncTooling", "SyncToolings", "Tooling", "Toolings")
VALUES = (
    *("Envelope", "Error", "ResourceContent", "ResourceInfo", "ResourceListUpdated", "ResourceUpdated"),
    *("Shutdown", "Tool", "ToolResult"),
)
LEFT_OUT = {"ConfigError", "GuestFailed"}
"""The errors that no agent is ever told."""


class FakeErr(Exception):
    """What the generated bindings raise for the error of a `result`."""

    def __init__(self, value: str) -> None:
        self.value = value


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, on bindings that are not there."""
    for name in (
        "wit_world",
        "wit_world.imports",
        *(f"wit_world.imports.{each}" for each in ("types", "tooling", "host")),
    ):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    types: Any = SimpleNamespace(Err=FakeErr)
    monkeypatch.setitem(sys.modules, "componentize_py_types", types)
    spec = importlib.util.spec_from_file_location("guest_toolpost", WIT.with_name("python") / "toolpost.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "guest_toolpost", module)
    spec.loader.exec_module(module)
    return module


def public(cls: type) -> dict[str, Any]:
    members = {name: value for each in reversed(cls.__mro__[:-1]) for name, value in vars(each).items()}
    return {name: value for name, value in members.items() if not name.startswith("_")}


def methods(cls: type) -> set[str]:
    return {name for name, each in public(cls).items() if inspect.isfunction(each)}


@pytest.mark.parametrize("name", FACES)
def test_a_face_has_the_calls_of_the_package_with_their_parameters(name: str, inside: Any) -> None:
    real, guests = public(getattr(toolpost, name)), public(getattr(inside, name))

    assert set(guests) == set(real)
    for call, function in real.items():
        if inspect.isfunction(function):
            wanted = inspect.signature(function).parameters
            given = inspect.signature(guests[call]).parameters
            assert [(each.name, each.kind, each.default) for each in given.values()] == [
                (each.name, each.kind, each.default) for each in wanted.values()
            ]
            assert inspect.iscoroutinefunction(guests[call]) == inspect.iscoroutinefunction(function)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_has_the_fields_of_the_package(name: str, inside: Any) -> None:
    real, guests = getattr(toolpost, name), getattr(inside, name)

    assert [each.name for each in dataclasses.fields(guests)] == list(real.__struct_fields__)
    assert getattr(guests, "kind", None) == getattr(real, "kind", None)
    assert methods(guests) == methods(real)


def test_each_error_that_an_agent_may_be_told_is_there_with_its_parents(inside: Any) -> None:
    errors = {
        name: value
        for name in toolpost.__all__
        if isinstance(value := getattr(toolpost, name), type) and issubclass(value, toolpost.ToolpostError)
    }

    for name in errors.keys() - LEFT_OUT:
        wanted = [each.__name__ for each in errors[name].__mro__]
        assert [each.__name__ for each in getattr(inside, name).__mro__] == wanted


def test_the_error_of_a_call_is_raised_as_what_it_is(inside: Any) -> None:
    def failing(text: str) -> Any:
        def call() -> None:
            raise FakeErr(text)

        return call

    with pytest.raises(inside.RecvTimeout, match=r"^nothing came$"):
        inside._call(failing("RecvTimeout: nothing came"))
    with pytest.raises(inside.ServerError) as caught:
        inside._call(failing("ServerError: no: such tool (code -32602)"))
    assert (caught.value.message, caught.value.code) == ("no: such tool", -32602)
    with pytest.raises(ValueError, match=r"^of a kind of one's own$"):
        inside._call(failing("ValueError: of a kind of one's own"))
    for text in ("Unheard: of", "UnicodeDecodeError: takes five"):
        with pytest.raises(inside.ToolpostError) as other:
            inside._call(failing(text))
        assert (type(other.value), str(other.value)) == (inside.ToolpostError, text)
