import asyncio

import toolpost


async def main() -> None:
    async with toolpost.open_host("calls.toml") as host:
        shop = host.tooling.get("shop")
        print([tool.name for tool in await shop.list_tools()])
        stock = await shop.call_tool_blocking("stock")
        print("in stock:", stock.value)
        try:
            await shop.call_tool_blocking("order", {"item": "milk", "count": 5})
        except toolpost.ScriptError as error:
            print(error)


asyncio.run(main())
