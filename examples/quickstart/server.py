"""A small MCP server: a notebook. Two tools, two resources, one of which changes.

It stands for any server that you use; toolpost starts it, as toolpost.toml says, and speaks to it over its
standard input and output. Servers of every kind and language are used in the same way.
"""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

NOTES, RULES = "notes://all", "notes://rules"

notes = ["milk is out", "the kettle whistles at 100 degrees"]
bus = InMemorySubscriptionBus()
"""Tells subscribers that speak MCP 2026-07-28."""
subscribed: set[str] = set()
"""The URIs to which a client of an earlier version has subscribed. Over stdio there is one client."""


def schema(key: str) -> dict[str, Any]:
    return {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}


def text(words: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=is_error)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name="add_note", description="Write a note", input_schema=schema("text")),
            types.Tool(name="find_notes", description="Find notes with a word", input_schema=schema("word")),
        ]
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    match params.name, arguments:
        case "add_note", {"text": str(note)}:
            notes.append(note)
            await bus.publish(ResourceUpdated(uri=NOTES))
            if NOTES in subscribed:
                await ctx.session.send_resource_updated(NOTES)
            return text(f"noted; that makes {len(notes)}")
        case "find_notes", {"word": str(word)}:
            return text("\n".join(note for note in notes if word in note) or f"no note has {word!r} in it")
        case (("add_note" | "find_notes"), _):
            return text(f"{params.name} needs one text, not {arguments}", is_error=True)
        case _:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri=NOTES, name="notes", description="Every note", mime_type="text/plain"),
            types.Resource(uri=RULES, name="rules", description="How to write one", mime_type="text/plain"),
        ]
    )


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    contents = {NOTES: "\n".join(notes), RULES: "One line, no names."}
    if params.uri not in contents:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": params.uri})
    content = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=contents[params.uri])
    return types.ReadResourceResult(contents=[content])


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(params.uri)
    return types.EmptyResult()


server: Server[Any] = Server(
    "notebook",
    version="1.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_subscriptions_listen=ListenHandler(bus),
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
)


async def main() -> None:
    options = server.create_initialization_options(NotificationOptions())
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(main)
