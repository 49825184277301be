import asyncio

import clock

import toolpost

toolpost.register_tooling("clock", clock.open_clock, params=clock.ClockParams)


async def main() -> None:
    config = {"tooling": {"time": {"kind": "clock", "tick_secs": 0.05}}}
    async with toolpost.open_host(config) as host:
        time = host.tooling.get("time")
        print([tool.name for tool in await time.list_tools()])
        await time.subscribe_resource(clock.TIME)
        for _ in range(2):
            envelope = await host.recv(timeout=5)  # seconds
            print(envelope.event.kind)


asyncio.run(main())
