"""Calls `add` before `echo`."""

from __future__ import annotations

from toolpost import Error, Host


async def run(host: Host) -> str:
    mcp = host.tooling.get("mcp")
    await mcp.list_tools()
    await mcp.call_tool("add", {"a": 1, "b": 2})
    match (await host.recv()).event:
        case Error(text=text):
            return f"I was told: {text}"
        case other:
            raise RuntimeError(f"not an error: {other}")
