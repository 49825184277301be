"""fastmcp: `Client.call_tool`. Not kept alive, so that closing ends the server as it does for all."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

fastmcp: Any = import_module("fastmcp")
transports: Any = import_module("fastmcp.client.transports")


class Client(Watching):
    async def open(self, target: Target) -> None:
        server = target.url
        if target.command:
            command, *args = target.command
            server = transports.StdioTransport(command=command, args=args, keep_alive=False)
        self._client = fastmcp.Client(server, message_handler=self.updates)
        await self._client.__aenter__()

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._client.call_tool(tool, arguments)).content[0].text

    async def close(self) -> None:
        await self._client.close()
