import sys

import toolpost

CONFIG = {
    "tooling": {
        "notes": {"kind": "mcp", "transport": "stdio", "command": sys.executable, "args": ["server.py"]}
    }
}


async def writer(host: toolpost.Host) -> str:
    result = await host.tooling.get("notes").call_tool_blocking("add", {"text": "buy milk"})
    return result.value


print(toolpost.run(CONFIG, agents={"writer": writer}))
