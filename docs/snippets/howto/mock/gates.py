import asyncio

import toolpost


async def main() -> None:
    async with toolpost.open_host("gates.toml") as host:
        notes, double = host.tooling.get("notes"), host.mock("notes")
        await notes.subscribe_resource("note://today")
        await notes.call_tool("save", {"text": "buy bread"})
        for step in double.waiting:
            print("waiting:", step.place)

        await notes.read_resource("note://today")  # opens the one gate
        print((await host.recv()).event.kind)  # and taking this the other
        print((await host.recv()).event.kind)

        print(double)


asyncio.run(main())
