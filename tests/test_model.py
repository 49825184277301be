"""The values: frozen, compared by value, one JSON form."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost import ResourceContent, ResourceInfo, ResourceListUpdated, Tool, ToolResult, to_json

VALUES: list[tuple[msgspec.Struct, dict[str, Any]]] = [
    (Tool(name="echo", input_schema={}), {"name": "echo", "input_schema": {}}),
    (
        Tool(
            name="echo",
            description="",
            input_schema={"type": "object"},
            output_schema={},
            title="Echo",
            annotations={"readOnlyHint": None},
        ),
        {
            "name": "echo",
            "description": "",
            "input_schema": {"type": "object"},
            "output_schema": {},
            "title": "Echo",
            "annotations": {"readOnlyHint": None},
        },
    ),
    (
        ToolResult(name="echo", arguments="{}", value=""),
        {"name": "echo", "arguments": "{}", "value": "", "content": [], "is_error": False},
    ),
    (
        ToolResult(name="echo", arguments="{}", value="", structured_content=[], is_error=True),
        {
            "name": "echo",
            "arguments": "{}",
            "value": "",
            "content": [],
            "structured_content": [],
            "is_error": True,
        },
    ),
    (ResourceInfo(uri="memo:a", name="a"), {"uri": "memo:a", "name": "a"}),
    (ResourceContent(uri="memo:a", content=""), {"uri": "memo:a", "content": "", "encoding": "text"}),
    (
        ResourceContent(
            uri="memo:a", mime_type="image/png", content="AA==", encoding="base64", parts=[{"text": ""}]
        ),
        {
            "uri": "memo:a",
            "mime_type": "image/png",
            "content": "AA==",
            "encoding": "base64",
            "parts": [{"text": ""}],
        },
    ),
]


@pytest.mark.parametrize(("value", "built"), VALUES)
def test_the_json_form_leaves_absent_fields_out_and_gives_the_value_back(
    value: msgspec.Struct, built: dict[str, Any]
) -> None:
    assert to_json(value) == built
    assert json.loads(json.dumps(built)) == built
    assert msgspec.convert(built, type(value)) == value


@pytest.mark.parametrize("value", [value for value, _ in VALUES])
def test_values_are_frozen(value: msgspec.Struct) -> None:
    with pytest.raises(AttributeError):
        setattr(value, value.__struct_fields__[0], "changed")


@pytest.mark.parametrize("value", [value for value, _ in VALUES])
def test_values_are_compared_by_value(value: msgspec.Struct) -> None:
    assert msgspec.structs.replace(value) == value
    assert msgspec.structs.replace(value, **{value.__struct_fields__[0]: "other"}) != value


def test_values_share_no_default() -> None:
    one, two = (ToolResult(name="echo", arguments="{}", value="") for _ in range(2))
    assert one.content is not two.content


@given(st.text())
def test_text_is_given_as_text_and_as_utf_8(text: str) -> None:
    content = ResourceContent(uri="memo:a", content=text)
    assert (content.text(), content.bytes()) == (text, text.encode())


@given(st.binary())
def test_binary_is_given_as_bytes(data: bytes) -> None:
    content = ResourceContent(uri="memo:a", content=base64.b64encode(data).decode(), encoding="base64")
    assert content.bytes() == data


def test_binary_that_is_utf_8_is_given_as_text_and_other_binary_refused() -> None:
    good, bad = (
        ResourceContent(uri="memo:a", content=base64.b64encode(data).decode(), encoding="base64")
        for data in ("ü".encode(), b"\xff")
    )
    assert good.text() == "ü"
    with pytest.raises(UnicodeDecodeError):
        bad.text()


def test_what_lies_inside_an_event_leaves_absent_fields_out_too() -> None:
    event = ResourceListUpdated([ResourceInfo(uri="mem://a", name="a")])

    assert to_json(event) == {"resources": [{"uri": "mem://a", "name": "a"}]}
