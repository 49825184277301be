"""Queues a call for each page, and takes the answers for coming in that order."""

from __future__ import annotations

from toolpost import Host, ToolResult


async def run(host: Host) -> str:
    archive = host.tooling.get("archive")
    pages = (1, 2)
    for page in pages:
        await archive.call_tool("fetch", {"page": page})
    texts: list[str] = []
    for _ in pages:
        match (await host.recv()).event:
            case ToolResult(value=value):
                texts.append(value)
            case other:
                raise RuntimeError(f"not a result: {other}")
    return ", ".join(texts)
