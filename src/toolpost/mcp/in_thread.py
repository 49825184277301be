"""Runs a function that blocks, in a thread that ends with it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(func: Callable[[], T]) -> T:
    """What `func` returns or raises.

    Being cancelled, this returns at once, and the outcome of `func` is thrown away. anyio's threads are
    not for this: they wait for more work, and where a loop is torn down by interrupts, nobody tells them
    that none will come; then the interpreter waits for them for ever.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            settle = partial(outcome.set_result, func())
        except BaseException as error:
            settle = partial(outcome.set_exception, error)
        with suppress(RuntimeError):  # the loop has closed since
            loop.call_soon_threadsafe(lambda: outcome.done() or settle())

    # Not a daemon, whatever this thread is: an import must not be cut short by the end of the interpreter.
    threading.Thread(target=work, name="toolpost worker", daemon=False).start()
    return await outcome
