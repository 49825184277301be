"""Halves a weight until it is one: it never is where the scale says 0."""

from __future__ import annotations

from toolpost import SyncHost


def run(host: SyncHost) -> None:
    weight = int(host.tooling.get("scale").call_tool_blocking("weigh").value)
    while weight != 1:
        weight //= 2
