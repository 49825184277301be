"""mcp-use: `MCPClient`, a session's `call_tool`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

mcp_use: Any = import_module("mcp_use")


class Client(Watching):
    async def open(self, target: Target) -> None:
        server: dict[str, Any] = {"url": target.url}
        if target.command:
            command, *args = target.command
            server = {"command": command, "args": args}
        self._client = mcp_use.MCPClient({"mcpServers": {"bench": server}}, message_handler=self.updates)
        self._session = await self._client.create_session("bench")

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._session.call_tool(tool, arguments)).content[0].text

    async def close(self) -> None:
        await self._client.close_all_sessions()
