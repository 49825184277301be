import asyncio

import toolpost


async def main() -> None:
    async with toolpost.open_host("answers.toml") as host:
        shop = host.tooling.get("shop")
        for name in ("find", "price", "order", "order", "order"):
            await shop.call_tool(name)
        for _ in range(4):
            match (await host.recv()).event:
                case toolpost.ToolResult() as result:
                    kinds = [block["type"] for block in result.content]
                    print(repr(result.value), kinds, result.structured_content, result.is_error)
                case other:
                    print(other)
        print("the last one is open:", host.mock("shop").calls[-1])


asyncio.run(main())
