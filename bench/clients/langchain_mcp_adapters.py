"""langchain-mcp-adapters: a tool's `ainvoke`, on a session that is kept; by default each call has its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.client import Target, Watching

adapters: Any = import_module("langchain_mcp_adapters.client")
tools: Any = import_module("langchain_mcp_adapters.tools")


class Client(Watching):
    async def open(self, target: Target) -> None:
        connection: dict[str, Any] = {"transport": "streamable_http", "url": target.url}
        if target.command:
            command, *args = target.command
            connection = {"transport": "stdio", "command": command, "args": args}
        connection["session_kwargs"] = {"message_handler": self.updates}
        self._session = adapters.MultiServerMCPClient({"bench": connection}).session("bench")
        loaded = await tools.load_mcp_tools(await self._session.__aenter__())
        self._tools = {tool.name: tool for tool in loaded}

    async def call(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self._tools[tool].ainvoke(arguments))[0]["text"]

    async def close(self) -> None:
        await self._session.__aexit__(None, None, None)
