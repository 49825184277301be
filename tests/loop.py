"""An event loop driven by turns instead of time."""

from __future__ import annotations

import asyncio
from collections import deque


async def settle() -> None:
    """Let everything run until nothing can go on without the test, or time, or the outside."""
    # No public name says whether anything is ready to run; every loop of the standard library has this.
    ready: deque[object] = vars(asyncio.get_running_loop())["_ready"]
    await asyncio.sleep(0)
    for _ in range(10_000):
        if not ready:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"it never comes to rest: {list(ready)}")


async def turns(count: int) -> None:
    """Let everything that is ready run, this many times."""
    for _ in range(count):
        await asyncio.sleep(0)
