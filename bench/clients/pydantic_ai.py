"""pydantic-ai: `MCPToolset.direct_call_tool`, over a client of fastmcp's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

pydantic_ai_mcp: Any = import_module("pydantic_ai.mcp")
transports: Any = import_module("fastmcp.client.transports")


class Client(Watching):
    async def open(self, target: Target) -> None:
        server = target.url
        if target.command:
            command, *args = target.command
            server = transports.StdioTransport(command=command, args=args, keep_alive=False)
        self._toolset = pydantic_ai_mcp.MCPToolset(server, message_handler=self.updates)
        await self._toolset.__aenter__()

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return await self._toolset.direct_call_tool(tool, arguments)

    async def close(self) -> None:
        await self._toolset.__aexit__(None, None, None)
