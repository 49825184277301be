"""The table of kinds: built in, registered by a program, and of installed packages."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import msgspec
import pytest

import toolpost
from tests import memory
from tests.memory import Memory, MemoryBackend
from toolpost.mcp.kind import KIND as MCP
from toolpost.tooling import registry
from toolpost.tooling.registry import Kind, find_kind, kind_names, register_tooling


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))  # pyright: ignore[reportPrivateUsage]: to put it back


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with three kinds is installed: a factory, a `Kind`, and one that cannot be imported."""
    points = EntryPoints(
        EntryPoint(name=name, value=f"{__name__}:{value}", group="toolpost.toolings")
        for name, value in [("by-factory", "far_factory"), ("by-kind", "FAR_KIND"), ("broken", "missing")]
    )

    def entry_points(*, group: str) -> EntryPoints:
        return points.select(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def far_factory(params: Any, site: toolpost.Site) -> MemoryBackend:
    return MemoryBackend(params["far_end"], site)


class FarParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    address: str


FAR_KIND = Kind(name="by-kind", factory=lambda params, site: MemoryBackend(Memory(), site), params=FarParams)


def test_built_in_kinds_are_found() -> None:
    assert find_kind("mcp") is MCP
    assert "mcp" in kind_names()


def test_an_unknown_kind_is_none() -> None:
    assert find_kind("no such kind") is None


def test_a_registered_kind_is_found_and_listed() -> None:
    register_tooling("mine", memory.build)

    found = find_kind("mine")
    assert found is not None
    assert (found.name, found.factory) == ("mine", memory.build)
    assert kind_names() == sorted(kind_names())
    assert "mine" in kind_names()


@pytest.mark.parametrize("kind", ["mcp", "memory"], ids=["built in", "registered"])
def test_a_kind_is_registered_once(kind: str) -> None:
    with pytest.raises(toolpost.UsageError, match=f"kind '{kind}' is registered already"):
        register_tooling(kind, memory.build)


async def test_params_come_as_the_declared_type_and_bad_ones_are_config_errors() -> None:
    given: list[Any] = []

    def factory(params: FarParams, site: toolpost.Site) -> MemoryBackend:
        given.append(params)
        return MemoryBackend(Memory(), site)

    register_tooling("mine", factory, params=FarParams)
    async with toolpost.open_host({"tooling": {"far": {"kind": "mine", "address": "over there"}}}):
        assert given == [FarParams(address="over there")]
    with pytest.raises(toolpost.ConfigError) as caught:
        toolpost.load_config({"tooling": {"far": {"kind": "mine", "adress": 7}}})

    assert len(caught.value.problems) == 2


def test_a_check_finds_problems_between_keys() -> None:
    register_tooling("mine", memory.build, check=lambda table: [("a", "excludes b"), ("", "is odd")])
    with pytest.raises(toolpost.ConfigError) as caught:
        toolpost.load_config({"tooling": {"far": {"kind": "mine", "a": 1, "b": 2}}})

    assert [problem.endswith(("excludes b", "is odd")) for problem in caught.value.problems] == [True, True]


@pytest.mark.usefixtures("installed")
def test_kinds_of_installed_packages_are_found_and_listed() -> None:
    by_factory, by_kind = find_kind("by-factory"), find_kind("by-kind")

    assert by_factory is not None
    assert (by_factory.name, by_factory.params) == ("by-factory", None)
    assert by_kind is FAR_KIND
    assert {"broken", "by-factory", "by-kind", "mcp"} <= set(kind_names())


@pytest.mark.usefixtures("installed")
async def test_a_kind_of_an_installed_package_works() -> None:
    memo = Memory()
    async with toolpost.open_host({"tooling": {"far": {"kind": "by-factory", "far_end": memo}}}) as host:
        result = await host.tooling.get("far").call_tool_blocking("echo", {"message": "hi"})

    assert result.value == "hi"


@pytest.mark.usefixtures("installed")
def test_an_installed_kind_that_cannot_be_loaded_is_a_config_error_and_hurts_no_other() -> None:
    with pytest.raises(toolpost.ConfigError, match="kind 'broken' cannot be loaded"):
        toolpost.load_config({"tooling": {"far": {"kind": "broken"}}})
    assert find_kind("by-kind") is FAR_KIND


@pytest.mark.usefixtures("installed")
def test_an_installed_kind_cannot_be_registered_again() -> None:
    with pytest.raises(toolpost.UsageError, match="registered already"):
        register_tooling("by-factory", far_factory)


def test_two_packages_with_one_kind_are_an_error_that_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        EntryPoint(name="far", value=f"{module}:KIND", group="toolpost.toolings") for module in ("one", "two")
    )

    def entry_points(*, group: str) -> EntryPoints:
        return points.select(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)

    with pytest.raises(toolpost.UsageError, match=r"several packages \(one:KIND, two:KIND\)"):
        find_kind("far")
