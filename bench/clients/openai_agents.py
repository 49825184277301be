"""openai-agents: `MCPServerStdio` and `MCPServerStreamableHttp`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

agents_mcp: Any = import_module("agents.mcp")


class Client(Watching):
    async def open(self, target: Target) -> None:
        if target.command:
            command, *args = target.command
            make, params = agents_mcp.MCPServerStdio, {"command": command, "args": args}
        else:
            make, params = agents_mcp.MCPServerStreamableHttp, {"url": target.url}
        # A busy machine must not make a call fail: the limit of 5 seconds is not what is measured.
        self._server = make(params, message_handler=self.updates, client_session_timeout_seconds=60)
        await self._server.connect()

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._server.call_tool(tool, arguments)).content[0].text

    async def close(self) -> None:
        await self._server.cleanup()
