"""What the tests of kind `mock` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import toolpost

ONE = "mem://notes"
NOTES = {"uri": ONE, "name": "notes", "mime_type": "text/plain"}


def mock(**keys: Any) -> Mapping[str, Any]:
    """A config of one mock, named `it`, whose steps take no time."""
    return {"tooling": {"it": {"kind": "mock", "delay_ms": 0, **keys}}}


async def taken(host: toolpost.Host) -> Any:
    """The next event of the inbox."""
    return (await host.recv(5)).event


def places(steps: Iterable[toolpost.PlacedStep[Any]]) -> list[str]:
    """Where the steps stand."""
    return [each.place for each in steps]
