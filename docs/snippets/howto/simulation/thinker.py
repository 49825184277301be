import asyncio
import time

import toolpost


def think() -> str:
    time.sleep(0.2)  # stands for a request to a model
    return "good"


async def run(host: toolpost.Host) -> str:
    opinion = await asyncio.to_thread(think)
    await host.sleep(3600)
    return opinion
