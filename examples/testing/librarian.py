"""Searches, fetches the best hit, and cites it: three calls, each made of the answer to the one before."""

from __future__ import annotations

from toolpost import SyncHost


def run(host: SyncHost) -> None:
    library = host.tooling.get("library")
    hits = library.call_tool_blocking("search", {"words": host.params["words"]})
    best = hits.value.split()[0]
    text = library.call_tool_blocking("fetch", {"id": best})
    library.call_tool_blocking("cite", {"id": best, "text": text.value})
