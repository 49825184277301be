"""Checking values by schemas that a server wrote, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest

from toolpost.mcp.outputs import MAX_SCHEMA_BYTES, Outputs
from toolpost.model import Json, JsonObject, Tool


def tool(schema: JsonObject | None) -> Tool:
    return Tool(name="it", input_schema={}, output_schema=schema)


def problem(schema: JsonObject, value: Json) -> str | None:
    outputs = Outputs("odd")
    outputs.learn([tool(schema)])
    return outputs.problem("it", {"structuredContent": value})


def laughs(levels: int, **more: Any) -> JsonObject:
    """A schema that is small, and takes 2 ** levels steps."""
    doubled = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**doubled, f"l{levels}": {}}, "$ref": "#/$defs/l0", **more}


def nested(depth: int) -> JsonObject:
    schema: JsonObject = {}
    for _ in range(depth):
        schema = {"properties": {"x": schema}}
    return schema


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DO_NOT_FIT: list[tuple[JsonObject, Json, str]] = [
    ({"required": ["sum"]}, {}, "structured_content: 'sum' is a required property"),
    (
        {"properties": {"a": {"items": {"type": "string"}}}},
        {"a": ["x", 1]},
        "structured_content.a[1]: 1 is not",
    ),
    ({"additionalProperties": False}, {"a": 1}, "structured_content: Additional properties are not allowed"),
    ({"type": "object"}, None, "structured_content: None is not of type 'object'"),
    ({"const": True}, 1, "structured_content: True was expected"),
    (
        {"$schema": DRAFT_7, "properties": {"next": {"$ref": "#"}}, "required": ["id"]},
        {"id": 1, "next": {"id": 2, "next": {}}},
        "structured_content.next.next: 'id' is a required property",
    ),
    (
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"minLength": "one"},
        "structured_content.minLength: 'one' is not of type 'integer'",
    ),
]


@pytest.mark.parametrize(("schema", "value", "start"), DO_NOT_FIT, ids=lambda each: str(each)[:40])
def test_what_does_not_fit_is_told_with_its_place(schema: JsonObject, value: Json, start: str) -> None:
    assert (problem(schema, value) or "").startswith(start)


def test_a_long_value_is_quoted_in_part() -> None:
    told = problem({"type": "number"}, "x" * 1_000_000)

    assert told is not None
    assert len(told) < 250


HOSTILE: dict[str, tuple[JsonObject, Json, str]] = {
    "doubling": (laughs(40), 1, "more than"),
    "doubling names": (laughs(40, unevaluatedProperties=False), {"a": 1}, "more than"),
    "many values": ({"items": {"type": "integer"}}, [1] * 100_000, "more than"),
    "unique values": ({"uniqueItems": True}, [{"a": n} for n in range(100_000)], "more than"),
    "itself": ({"$ref": "#"}, 1, "refers to itself"),
    "depth": (nested(5000), {"x": 1}, "nested too deeply"),
    "size": ({"description": "x" * MAX_SCHEMA_BYTES}, 1, "larger than 256 KiB"),
    "dialects": ({"$defs": {"a": {"$schema": DRAFT_7}}}, 1, "several dialects"),
    "an odd dialect": ({"$schema": [1]}, 1, "TypeError"),
    "a file": ({"$ref": "file:///etc/passwd"}, 1, "which is not in it"),
}


@pytest.mark.parametrize(("schema", "value", "why"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_schema_costs_little_and_judges_nothing(
    schema: JsonObject, value: Json, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert problem(schema, value) is None
    assert why in caplog.text


EVIL = "^(a+)+$"


EVIL_ONES: list[JsonObject] = [
    {"properties": {"a": {"pattern": EVIL}}},
    {"patternProperties": {EVIL: False}},
    {"patternProperties": {EVIL: {}}, "additionalProperties": False},
    {"allOf": [{"patternProperties": {EVIL: {}}}], "unevaluatedProperties": False},
    {"propertyNames": {"pattern": EVIL}},
]


@pytest.mark.parametrize("schema", EVIL_ONES, ids=str)
def test_no_regular_expression_of_a_server_is_run(schema: JsonObject) -> None:
    never_matched = "a" * 200 + "!"
    assert problem(schema, {"a": never_matched, never_matched: 1}) is None


def test_a_value_too_large_to_check_leaves_the_schema_in_use(caplog: pytest.LogCaptureFixture) -> None:
    outputs = Outputs("odd")
    outputs.learn([tool({"items": {"type": "integer"}})])
    for _ in range(2):
        assert outputs.problem("it", {"structuredContent": [1] * 100_000}) is None
    assert outputs.problem("it", {"structuredContent": [1, "two"]}) is not None

    assert caplog.text.count("more than") == 1


def test_of_tools_with_one_name_and_two_schemas_none_judges() -> None:
    outputs = Outputs("odd")
    outputs.learn([tool({"type": "number"}), tool({"type": "string"})])
    assert outputs.problem("it", {"structuredContent": []}) is None

    outputs.learn([tool({"const": True}), tool({"const": True})])
    assert outputs.problem("it", {"structuredContent": []}) is not None


@pytest.mark.parametrize("schema", [None, {}])
def test_a_tool_without_a_schema_fits_always(schema: JsonObject | None) -> None:
    outputs = Outputs("odd")
    outputs.learn([tool(schema)])
    assert outputs.problem("it", {"structuredContent": {"a": 1}}) is None
    assert outputs.problem("other", {}) is None
