"""The official SDK: `mcp.Client`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

mcp: Any = import_module("mcp")


class Client(Watching):
    async def open(self, target: Target) -> None:
        server = target.url
        if target.command:
            command, *args = target.command
            server = mcp.StdioServerParameters(command=command, args=args)
        self._client = mcp.Client(server, message_handler=self.updates)
        await self._client.__aenter__()

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._client.call_tool(tool, arguments)).content[0].text

    async def close(self) -> None:
        await self._client.__aexit__(None, None, None)
