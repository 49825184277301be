"""Waits for a draft, and approves it if it says anything."""

from __future__ import annotations

from toolpost import Host, ResourceUpdated


async def run(host: Host) -> None:
    desk = host.tooling.get("desk")
    await desk.subscribe_resource("mem://draft")
    match (await host.recv()).event:
        case ResourceUpdated(content=draft) if draft:
            await desk.call_tool_blocking("approve")
        case other:
            raise RuntimeError(f"not a draft: {other}")
