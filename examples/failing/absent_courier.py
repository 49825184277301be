"""Queues a call for each page, and takes no answer."""

from __future__ import annotations

from toolpost import Host


async def run(host: Host) -> None:
    archive = host.tooling.get("archive")
    for page in (1, 2):
        await archive.call_tool("fetch", {"page": page})
