"""The events: a closed union that `match` takes apart, each with its kebab-case kind."""

from __future__ import annotations

from typing import Any, assert_never, get_args

import pytest

from toolpost import (
    Envelope,
    Error,
    Event,
    ResourceContent,
    ResourceInfo,
    ResourceListUpdated,
    ResourceUpdated,
    Shutdown,
    ToolResult,
)
from toolpost.events import payload, to_json_envelope

INFO = ResourceInfo(uri="memo:a", name="a")

EXAMPLES: list[tuple[Event, str, Any]] = [
    (
        ToolResult(name="echo", arguments="{}", value="hi"),
        "tool-result",
        {"name": "echo", "arguments": "{}", "value": "hi", "content": [], "is_error": False},
    ),
    (Error("why"), "error", "why"),
    (ResourceListUpdated([INFO]), "resource-list-updated", [{"uri": "memo:a", "name": "a"}]),
    (ResourceListUpdated([]), "resource-list-updated", []),
    (
        ResourceUpdated(uri="memo:a", mime_type="text/plain", content="hi"),
        "resource-updated",
        {"uri": "memo:a", "mime_type": "text/plain", "content": "hi", "encoding": "text"},
    ),
    (Shutdown(), "shutdown", {}),
]


def words(event: Event) -> str:
    """As an agent takes an event apart."""
    match event:
        case ToolResult(name=name, value=value):
            return f"{name} gave {value}"
        case ResourceUpdated(uri=uri, content=content):
            return f"{uri} is {content}"
        case ResourceListUpdated(resources=resources):
            return f"{len(resources)} resources"
        case Error(text=text):
            return text
        case Shutdown():
            return "the end"
        case _:
            assert_never(event)


def test_match_takes_events_apart() -> None:
    assert [words(event) for event, _, _ in EXAMPLES] == [
        "echo gave hi",
        "why",
        "1 resources",
        "0 resources",
        "memo:a is hi",
        "the end",
    ]


@pytest.mark.parametrize(("event", "kind", "built"), EXAMPLES)
def test_each_event_has_its_kind_and_its_payload(event: Event, kind: str, built: Any) -> None:
    assert event.kind == kind
    assert payload(event) == built
    assert to_json_envelope(Envelope("id", event)) == {"id": "id", "event": kind, "payload": built}


def test_the_examples_are_every_event() -> None:
    assert {type(event) for event, _, _ in EXAMPLES} == set(get_args(Event))


@pytest.mark.parametrize("event", [event for event, _, _ in EXAMPLES])
def test_events_are_frozen_and_compared_by_value(event: Event) -> None:
    envelope = Envelope("id", event)

    assert envelope == Envelope("id", event)
    assert envelope != Envelope("other", event)
    with pytest.raises(AttributeError):
        envelope.id = "changed"  # pyright: ignore[reportAttributeAccessIssue]: that is the test


def test_an_updated_resource_is_a_content_too() -> None:
    updated = ResourceUpdated(uri="memo:a", content="aGk=", encoding="base64")

    assert isinstance(updated, ResourceContent)
    assert (updated.text(), updated.bytes()) == ("hi", b"hi")
    assert updated != ResourceContent(uri="memo:a", content="aGk=", encoding="base64")
