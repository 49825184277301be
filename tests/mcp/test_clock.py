"""The limit of one request: who is told that it has run out, and who is not."""

from __future__ import annotations

import asyncio
import os
import time

import anyio
import pytest

from toolpost.mcp.clock import Limit

SOON = 0.01


async def test_what_waits_longer_than_the_limit_ends_with_an_error_and_is_not_cancelled_any_more() -> None:
    with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"), Limit(SOON):
        await anyio.sleep_forever()

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_an_answer_that_is_there_when_the_loop_goes_on_is_taken_though_time_is_up() -> None:
    loop, (reading, writing) = asyncio.get_running_loop(), os.pipe()
    answer = loop.create_future()
    loop.add_reader(reading, lambda: loop.remove_reader(reading) and answer.set_result("answer"))
    with Limit(SOON):
        os.write(writing, b"answer")
        time.sleep(2 * SOON)  # noqa: ASYNC251  the loop stands still
        assert await answer == "answer"
    os.close(reading)
    os.close(writing)


async def test_progress_moves_the_end_and_no_further_than_ten_limits() -> None:
    async def go_on() -> None:
        with Limit(SOON) as clock:
            while True:
                clock.restart()
                await asyncio.sleep(SOON / 4)

    with anyio.fail_after(5), pytest.raises(TimeoutError, match="in which progress restarted the limit"):
        await go_on()


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_task_that_is_cancelled_in_the_moment_when_time_is_up_stays_cancelled(
    ours_first: bool,
) -> None:
    entered = asyncio.Event()

    async def ask() -> None:
        with Limit(1000) as clock:
            clocks.append(clock)
            entered.set()
            await anyio.sleep_forever()

    clocks: list[Limit] = []
    task = asyncio.create_task(ask())
    await entered.wait()
    both = [clocks[0]._expire, task.cancel]  # pyright: ignore[reportPrivateUsage]: what the timer calls
    for cancel in both if ours_first else reversed(both):
        cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_scope_that_is_cancelled_in_the_moment_when_time_is_up_is_left(ours_first: bool) -> None:
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        try:
            with Limit(1000) as clock:
                ours = clock._expire  # pyright: ignore[reportPrivateUsage]: what the timer calls
                both = [ours, scope.cancel] if ours_first else [scope.cancel, ours]
                for cancel in both:
                    asyncio.get_running_loop().call_soon(cancel)
                await anyio.sleep_forever()
        except TimeoutError:
            await anyio.sleep_forever()  # whoever goes on is told with the next wait
    assert scope.cancelled_caught
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_no_limit_is_no_timer() -> None:
    with Limit(float("inf")) as clock:
        clock.restart()
        await asyncio.sleep(0)
