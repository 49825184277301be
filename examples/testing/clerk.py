"""Makes each kind of call once, takes the event that comes of it, and tells them all."""

from __future__ import annotations

from toolpost import Event, Host, ResourceListUpdated, ResourceUpdated, ToolResult

NOTES = "mem://notes"


async def run(host: Host) -> str:
    mcp = host.tooling.get("mcp")
    await mcp.list_tools()
    await mcp.subscribe_resource(NOTES)
    await mcp.subscribe_resource_list()
    events = [(await host.recv()).event]
    await mcp.call_tool("echo", {"text": "hi"})
    events.append((await host.recv()).event)
    await mcp.read_resource(NOTES)
    events.append((await host.recv()).event)
    await mcp.call_tool("add", {"a": 1, "b": 2})
    events.append((await host.recv()).event)
    return ", ".join(map(told, events))


def told(event: Event) -> str:
    """An event in a word."""
    match event:
        case ToolResult(value=text) | ResourceUpdated(content=text):
            return text
        case ResourceListUpdated(resources=listed):
            return f"{len(listed)} listed"
        case _:
            return event.kind
