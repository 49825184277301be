"""A request without a task: who is told what, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from tests.mcp.support import start_task
from toolpost.mcp.clock import Clock, Limits
from toolpost.mcp.promise import Answer, Promise

SOON = 0.01


class Asking:
    """A request that waits for an answer, and the test's hand on that."""

    def __init__(self, limit: float = 1000, started: float | None = None) -> None:
        self.limits = Limits(1)
        self.answer: Answer[Any] = Answer()
        self.given_up = False
        self.promise: Promise[Any] = Promise(self.limits, Clock(limit, started))
        self.promise.drive(self._ask())

    async def _ask(self) -> Any:
        try:
            return await self.answer
        except asyncio.CancelledError:
            self.given_up = True
            raise


async def test_a_promise_has_its_outcome_as_the_answer_comes() -> None:
    it = Asking()
    it.answer.set_result("answer")
    assert it.promise.result() == "answer"
    assert await it.promise == "answer"


async def test_an_error_is_its_outcome_too() -> None:
    it = Asking()
    it.answer.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await it.promise


async def test_a_request_that_fails_before_it_is_sent_is_a_promise_that_has_failed() -> None:
    async def ask() -> None:
        raise ValueError("no")

    promise = Promise[None](Limits(1), Clock(1)).drive(ask())
    with pytest.raises(ValueError, match="no"):
        await promise


async def test_what_is_cancelled_is_given_up_before_anybody_goes_on() -> None:
    it = Asking()
    assert it.promise.cancel()
    assert it.given_up
    with pytest.raises(asyncio.CancelledError):
        await it.promise


async def test_a_task_that_is_cancelled_gives_up_what_it_waits_for() -> None:
    it = Asking()

    async def wait() -> None:
        await it.promise

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert it.given_up


async def test_an_answer_that_is_cancelled_by_another_hand_cancels_the_promise() -> None:
    it = Asking()
    it.answer.cancel()
    assert it.promise.cancelled()


async def test_a_request_past_its_limit_is_given_up_and_says_how_long_it_took() -> None:
    it = Asking(SOON)
    with anyio.fail_after(5), pytest.raises(TimeoutError, match=r"^no answer within 0\.01 s$"):
        await it.promise
    assert it.given_up


async def test_a_limit_that_began_before_the_request_runs_out_before() -> None:
    it = Asking(1000, asyncio.get_running_loop().time() - 1000)
    with anyio.fail_after(5), pytest.raises(TimeoutError):
        await it.promise


async def test_progress_moves_the_end_and_is_told_on() -> None:
    told: list[Any] = []
    answer = Answer[Any]()

    async def ask() -> Any:
        return await answer

    def onlooker(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    promise = Promise[Any](Limits(SOON), Clock(SOON), onlooker).drive(ask())
    with anyio.fail_after(5):
        while not promise.done():
            await promise.on_progress(1, 2, "half")
            await asyncio.sleep(SOON / 4)
    with pytest.raises(TimeoutError, match="in which progress restarted the limit"):
        await promise
    assert told[0] == (1, 2, "half")


async def test_where_more_is_to_be_done_a_task_does_it_and_ends_with_the_promise() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Longer(Promise[Any]):
        def finish(self, came: Any) -> None:
            self.hand_over(start_task, self._rest, came)

        async def _rest(self, came: Any) -> Any:
            begun.set()
            try:
                if came == "wait":
                    await anyio.sleep_forever()
                return came * 2
            finally:
                ended.set()

    def asked(came: str) -> Longer:
        async def ask() -> str:
            return came

        return Longer(Limits(1), Clock(1)).drive(ask())

    assert await asked("once") == "onceonce"
    with pytest.raises(TypeError):
        await asked({})  # pyright: ignore[reportArgumentType]: what cannot be doubled

    begun.clear()
    ended.clear()
    waits = asked("wait")
    await begun.wait()
    waits.cancel()
    await ended.wait()
    assert waits.cancelled()


async def test_progress_that_is_told_after_the_answer_sets_no_limit_to_what_follows() -> None:
    """It was read before, and is told a turn later."""
    answer, rest = Answer[Any](), Answer[Any]()

    class Longer(Promise[Any]):
        def finish(self, came: Any) -> None:
            self.hand_over(start_task, self._rest)

        async def _rest(self) -> Any:
            return await rest

    async def ask() -> Any:
        return await answer

    promise = Longer(Limits(SOON), Clock(SOON)).drive(ask())
    answer.set_result("first")
    await promise.on_progress(1, 2, None)
    await asyncio.sleep(3 * SOON)
    rest.set_result("all")

    assert await promise == "all"


async def test_a_fault_in_what_an_answer_means_is_the_outcome() -> None:
    class Faulty(Promise[Any]):
        def finish(self, came: Any) -> None:
            raise KeyError(came)

    async def ask() -> str:
        return "came"

    with pytest.raises(KeyError, match="came"):
        await Faulty(Limits(1), Clock(1)).drive(ask())


@pytest.mark.parametrize("how", ["cancelled", "expired"])
async def test_what_is_given_up_as_it_is_about_to_go_on_goes_no_further(how: str) -> None:
    """A request whose turn to be written has come, for one: it must not be written any more."""
    turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    went_on = False

    async def ask() -> None:
        nonlocal went_on
        await turn
        went_on = True
        await anyio.sleep_forever()

    promise = Promise[None](Limits(1), Clock(1)).drive(ask())
    turn.set_result(None)
    if how == "cancelled":
        promise.cancel()
    else:
        promise.expire()

    with anyio.fail_after(5), pytest.raises((asyncio.CancelledError, TimeoutError)):
        await promise
    await asyncio.sleep(0)
    assert not went_on


async def test_any_future_of_asyncios_may_be_waited_for() -> None:
    lock, event = asyncio.Lock(), asyncio.Event()
    await lock.acquire()

    async def ask() -> str:
        async with lock:
            await event.wait()
        return "done"

    promise = Promise[str](Limits(1), Clock(1000)).drive(ask())
    lock.release()
    await asyncio.sleep(0)
    event.set()
    assert await promise == "done"
    assert not lock.locked()
