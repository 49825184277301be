import asyncio

import toolpost


async def main() -> None:
    async with toolpost.open_host("toolpost.toml") as host:
        notes = host.tooling.get("notes")
        for tool in await notes.list_tools():
            print(tool.name, "-", tool.description)
        try:
            result = await notes.call_tool_blocking("find", {"word": "milk"}, timeout=5)  # seconds
        except toolpost.ToolpostError as error:
            print("failed:", error)
        else:
            print("found:", result.value)


asyncio.run(main())
