"""A function in a thread of its own: its outcome, and what happens when nobody waits for that any more."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from tests.mcp.support import until
from toolpost.mcp.in_thread import in_thread


async def test_it_gives_what_the_function_returns_or_raises() -> None:
    def fail() -> None:
        raise LookupError("here")

    assert await in_thread(threading.current_thread) is not threading.current_thread()
    with pytest.raises(LookupError, match="here"):
        await in_thread(fail)


async def test_being_cancelled_does_not_wait_for_the_function() -> None:
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(20)

    before = threading.active_count()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, work)
            await until(started.is_set)
            tasks.cancel_scope.cancel()
    go_on.set()

    await until(lambda: threading.active_count() == before)


def test_the_loop_may_be_closed_when_the_function_returns() -> None:
    """A thread that raises would fail this test by a warning."""
    threads: list[threading.Thread] = []
    go_on = threading.Event()

    def work() -> None:
        threads.append(threading.current_thread())
        go_on.wait(20)

    async def main() -> None:
        waiting = asyncio.create_task(in_thread(work))
        await until(lambda: threads)
        del waiting

    asyncio.run(main())
    go_on.set()

    threads[0].join(10)
    assert not threads[0].is_alive()


def test_the_interpreter_waits_for_it_though_the_loop_is_in_a_daemon_thread() -> None:
    seen: list[bool] = []

    async def main() -> None:
        seen.append((await in_thread(threading.current_thread)).daemon)

    loop = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    loop.start()
    loop.join(10)

    assert seen == [False]
