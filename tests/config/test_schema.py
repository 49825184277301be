"""The JSON Schema accepts what the config's own walk accepts, and describes every key."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli

from toolpost.config.schema import config_schema
from toolpost.testing.discover import SUFFIX
from toolpost.tooling.registry import Kind, find_kind

ROOT = Path(__file__).parent.parent.parent
STDIO = {"kind": "mcp", "transport": "stdio", "command": "serve"}
HTTP = {"kind": "mcp", "transport": "http", "url": "https://tools.example/mcp"}
jsonschema: Any = import_module("jsonschema")  # has no types


def problems(document: Any, schema: Any = None) -> list[str]:
    """What is wrong with a config by the schema: the paths of the faults."""
    validator = jsonschema.Draft7Validator(schema or config_schema())
    return [error.json_path for error in validator.iter_errors(document)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(config_schema())


@pytest.mark.parametrize(
    "file",
    sorted([*ROOT.glob("examples/**/*.toml"), *ROOT.glob("docs/**/*.toml")]),
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_every_config_of_the_repository_fits(file: Path) -> None:
    is_case = file.name.endswith(SUFFIX)

    assert problems(tomli.loads(file.read_text()), config_schema(is_case=is_case)) == []


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"test": {"timeout": 1}}, "$.test"),
        ({"test": {"clock": "fast"}}, "$.test.clock"),
        ({"assertions": {"a": {"event": []}}}, "$.assertions.a"),
        ({"tooling": {"a": {"kind": "mock", "tool_call": []}}}, "$.tooling.a"),
    ],
)
def test_what_the_walk_refuses_in_a_test_file_is_marked(document: Any, where: str) -> None:
    assert problems(document, config_schema(is_case=True)) == [where]


@pytest.mark.parametrize(
    "document",
    [
        {"tooling": {"a": STDIO | {"args": ["x"], "env": {"K": "${V}"}, "inherit_env": ["X"]}}},
        {"tooling": {"a": STDIO | {"inherit_env": True, "request_timeout_secs": 0}}},
        {"tooling": {"a": HTTP | {"auth_token": "${T}", "headers": {"X": "y"}}}},
        {"agents": {"a": {"entry": "package:run", "params": {"any": [1]}, "toolings": []}}},
        {"tunables": {"inbox_bound": 1, "recv_timeout_secs": 0.5}},
    ],
)
def test_what_the_walk_accepts_fits(document: Any) -> None:
    assert problems(document) == []


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"toolings": {}}, "$"),
        ({"tooling": {"a": {}}}, "$.tooling.a"),
        ({"tooling": {"a": {"kind": "mpc"}}}, "$.tooling.a.kind"),
        ({"tooling": {"a": STDIO | {"comand": "x"}}}, "$.tooling.a"),
        ({"tooling": {"a": STDIO | {"transport": "sse"}}}, "$.tooling.a.transport"),
        ({"tooling": {"a": {"kind": "mcp", "transport": "http"}}}, "$.tooling.a"),
        ({"tooling": {"a": STDIO | {"env": {"K": 1}}}}, "$.tooling.a.env.K"),
        ({"agents": {"a": {}}}, "$.agents.a"),
        ({"agents": {"a": {"script": "a.py", "entry": "a:run"}}}, "$.agents.a"),
        ({"tunables": {"inbox_bound": 0}}, "$.tunables.inbox_bound"),
    ],
)
def test_what_the_walk_refuses_is_marked_where_it_stands(document: Any, where: str) -> None:
    assert where in problems(document)


def test_every_key_has_a_description() -> None:
    def undescribed(schema: Any, path: str) -> Iterator[str]:
        for key, each in schema.get("properties", {}).items():
            if "description" not in each and "$ref" not in each:
                yield f"{path}.{key}"
            yield from undescribed(each, f"{path}.{key}")

    schema = config_schema()

    assert [*undescribed(schema, "")] == []
    assert [path for name, each in schema["definitions"].items() for path in undescribed(each, name)] == []


def test_the_default_of_a_secret_is_in_no_schema() -> None:
    assert "Secret" not in str(config_schema())


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """Those of a kind of one's own."""

    depth: int = 1


def test_a_kind_of_ones_own_brings_its_keys_or_accepts_any() -> None:
    mcp = find_kind("mcp")
    assert mcp is not None
    kinds = [mcp, Kind(name="mine", factory=mcp.factory, params=Keys), Kind(name="free", factory=mcp.factory)]

    schema = config_schema(kinds)

    assert (
        problems({"tooling": {"a": {"kind": "mine", "depth": 2}, "b": {"kind": "free", "x": 1}}}, schema)
        == []
    )
    assert problems({"tooling": {"a": {"kind": "mine", "depth": "deep"}}}, schema) == ["$.tooling.a.depth"]
