"""Fetches from one source, which has always answered so far."""

from __future__ import annotations

from toolpost import SyncHost


def run(host: SyncHost) -> str:
    archive = host.tooling.get("archive")
    page = archive.call_tool_blocking("fetch", {"source": "main"})
    return f"from the main: {page.value}"
