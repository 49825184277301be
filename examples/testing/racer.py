"""Asks two sources at once, keeps the answer that comes first, and cancels the other call."""

from __future__ import annotations

from toolpost import Host, ToolResult


async def run(host: Host) -> str:
    archive = host.tooling.get("archive")
    asked = [await archive.call_tool("fetch", {"source": source}) for source in ("main", "copy")]
    first = await host.recv()
    for uuid in asked:
        if uuid != first.id:
            await archive.cancel(uuid)
    match first.event:
        case ToolResult(value=value):
            return value
        case other:
            raise RuntimeError(f"not a result: {other}")
