"""Queues a call for each page, takes the answers as they come, and puts them back into order."""

from __future__ import annotations

from toolpost import Host, ToolResult


async def run(host: Host) -> str:
    archive = host.tooling.get("archive")
    page_of = {await archive.call_tool("fetch", {"page": page}): page for page in (1, 2)}
    texts: dict[int, str] = {}
    while len(texts) < len(page_of):
        envelope = await host.recv()
        match envelope.event:
            case ToolResult(value=value):
                texts[page_of[envelope.id]] = value
            case other:
                raise RuntimeError(f"not a result: {other}")
    return ", ".join(texts[page] for page in sorted(texts))
