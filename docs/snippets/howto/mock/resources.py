import asyncio

import toolpost


async def main() -> None:
    async with toolpost.open_host("resources.toml") as host:
        notes = host.tooling.get("notes")
        print("at first:", (await notes.read_resource("note://today")).content)
        await notes.subscribe_resource_list()
        await notes.subscribe_resource("note://today")
        for _ in range(3):
            match (await host.recv()).event:
                case toolpost.ResourceListUpdated(resources=resources):
                    print("listed:", [each.name for each in resources])
                case toolpost.ResourceUpdated(content=content):
                    print("changed:", content)
                case other:
                    print(other)
        print("now:", (await notes.read_resource("note://today")).content)
        print("unused:", *host.mock("notes").unused)


asyncio.run(main())
