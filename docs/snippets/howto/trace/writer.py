from toolpost import Host


async def run(host: Host) -> None:
    await host.tooling.get("notes").call_tool("add", {"text": "buy milk"})
    await host.recv()
