"""Opening and closing a host: from any task, in any order, with whatever goes wrong."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

import toolpost
from tests import memory
from tests.loop import settle, turns
from tests.memory import Memory
from toolpost import ConfigError, Envelope, HostClosed, RecvTimeout, Shutdown, UsageError
from toolpost.host import core as core_module
from toolpost.trace.events import Closed, State


def others() -> set[asyncio.Task[Any]]:
    """The tasks of this loop besides this one and the test runner's."""
    return {
        task
        for task in asyncio.all_tasks()
        if task is not asyncio.current_task() and "TestRunner" not in repr(task.get_coro())
    }


@pytest.fixture(autouse=True)
async def no_task_is_left() -> Any:
    before = others()
    yield
    await settle()
    assert others() <= before


# -- opening ---------------------------------------------------------------------------------------


async def test_opening_builds_each_tooling_once_and_calls_nothing() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo)) as host:
        host.tooling.get("memo")
        host.tooling.get("memo")

    assert (memo.built, memo.log, memo.closed) == (1, ["aclose"], 1)


async def test_the_config_is_read_before_the_block_is_entered() -> None:
    with pytest.raises(ConfigError):
        toolpost.open_host({"tooling": {"memo": {"kind": "no such kind"}}})


async def test_a_host_is_opened_once() -> None:
    opening = toolpost.open_host(memory.config(Memory()))
    async with opening:
        with pytest.raises(UsageError, match="opened already"):
            await opening.__aenter__()
    with pytest.raises(UsageError, match="opened already"):
        await opening.__aenter__()


async def test_a_factory_that_raises_is_a_config_error_and_closes_what_was_built() -> None:
    built, broken = Memory(), Memory()

    def on_build() -> None:
        raise KeyError("far_end")

    broken.on_build = on_build
    with anyio.fail_after(5), pytest.raises(ConfigError) as caught:
        async with toolpost.open_host(memory.config(built, broken)):
            pytest.fail("the block was entered")

    label = toolpost.load_config(memory.config(built, broken)).label
    assert caught.value.problems == (
        f"{label}: tooling.memo2: kind 'memory' could not be built: KeyError: 'far_end'",
    )
    assert built.closed == 1


async def test_every_tooling_that_cannot_be_built_is_named_at_once() -> None:
    broken, unsupported, refused = Memory(), Memory(), Memory()

    def raising(error: Exception) -> Any:
        def on_build() -> None:
            raise error

        return on_build

    broken.on_build = raising(KeyError("far_end"))
    unsupported.on_build = raising(toolpost.Unsupported("not on this system"))
    refused.on_build = raising(ConfigError(["tooling.memo3.a: one", "tooling.memo3.b: two"]))
    config = memory.config(broken, unsupported, refused)
    with anyio.fail_after(5), pytest.raises(ConfigError) as caught:
        async with toolpost.open_host(config):
            pytest.fail("the block was entered")

    label = toolpost.load_config(config).label
    assert caught.value.problems == (
        f"{label}: tooling.memo: kind 'memory' could not be built: KeyError: 'far_end'",
        f"{label}: tooling.memo2: kind 'memory' could not be built: not on this system",
        f"{label}: tooling.memo3.a: one",
        f"{label}: tooling.memo3.b: two",
    )


async def test_a_factory_may_raise_an_error_of_the_tree() -> None:
    memo = Memory()

    def on_build() -> None:
        raise toolpost.Unsupported("not on this system")

    memo.on_build = on_build
    with anyio.fail_after(5), pytest.raises(toolpost.Unsupported, match="not on this system"):
        async with toolpost.open_host(memory.config(memo)):
            pytest.fail("the block was entered")


async def test_handlers_for_a_tooling_that_is_not_there_name_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"handlers for 'meno': .* has no such tooling; it has: 'memo'"):
        toolpost.open_host(memory.config(Memory()), handlers={"meno": object()})


async def test_handlers_are_a_mapping() -> None:
    with pytest.raises(UsageError, match="handlers must be a mapping"):
        toolpost.open_host(memory.config(Memory()), handlers=3)  # pyright: ignore[reportArgumentType]: the test


async def test_handlers_reach_the_backend_of_their_tooling() -> None:
    with_one, without = Memory(), Memory()
    handlers = object()
    async with toolpost.open_host(memory.config(with_one, without), handlers={"memo": handlers}):
        assert with_one.site is not None
        assert without.site is not None
        assert (with_one.site.extras, without.site.extras) == (handlers, None)
        assert (with_one.site.name, without.site.name) == ("memo", "memo2")


@pytest.mark.parametrize("count", range(12))
async def test_a_caller_that_is_cancelled_while_it_opens_leaves_nothing(count: int) -> None:
    memo = Memory()
    entered = False

    async def use() -> None:
        nonlocal entered
        async with toolpost.open_host(memory.config(memo)):
            entered = True
            await asyncio.Event().wait()

    with anyio.fail_after(5):
        user = asyncio.create_task(use())
        await turns(count)
        user.cancel()
        with pytest.raises(asyncio.CancelledError):
            await user
    await settle()

    assert memo.closed == memo.built
    assert others() == set()


# -- closing ---------------------------------------------------------------------------------------


async def test_hosts_may_be_closed_in_any_order() -> None:
    first, second = Memory(), Memory()
    one, two = toolpost.open_host(memory.config(first)), toolpost.open_host(memory.config(second))
    with anyio.fail_after(5):
        await one.__aenter__()
        host = await two.__aenter__()
        await one.__aexit__(None, None, None)
        assert (first.closed, second.closed) == (1, 0)
        assert (await host.tooling.get("memo").call_tool_blocking("echo")).value == ""
        await two.__aexit__(None, None, None)

    assert second.closed == 1


async def test_a_host_may_be_closed_by_another_task_than_opened_it() -> None:
    memo = Memory()
    opening = toolpost.open_host(memory.config(memo))
    with anyio.fail_after(5):
        await asyncio.create_task(opening.__aenter__())
        await asyncio.create_task(opening.__aexit__(None, None, None))

    assert memo.closed == 1


async def test_a_host_may_be_closed_twice_and_at_once() -> None:
    memo = Memory()
    opening = toolpost.open_host(memory.config(memo))
    with anyio.fail_after(5):
        await opening.__aenter__()
        closings = [asyncio.create_task(opening.__aexit__(None, None, None)) for _ in range(2)]
        await asyncio.gather(*closings)
        await opening.__aexit__(None, None, None)

    assert memo.closed == 1


async def test_closing_cancels_calls_and_subscriptions_before_the_backend_is_closed() -> None:
    memo = Memory()
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo)) as host:
            tooling = host.tooling.get("memo")
            await tooling.call_tool("hold")
            await tooling.subscribe_resource("memo:a")
            await memo.wait_subscribed()

    assert memo.log == ["call hold", "cancelled hold", "unsubscribed memo:a", "aclose"]
    assert [event.reason for event in host.trace if isinstance(event, Closed)] == ["cancelled"] * 2
    assert memo.under_way == 0


async def test_closing_ends_the_calls_that_other_tasks_are_in_and_tells_who_waits_for_envelopes() -> None:
    memo = Memory()
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo)) as host:
            tooling = host.tooling.get("memo")
            waiting = [
                asyncio.create_task(work) for work in (tooling.call_tool_blocking("hold"), host.sleep(60))
            ]
            reader = asyncio.create_task(host.recv())
            await memo.wait_held()
        results = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(each) for each in results] == [HostClosed] * 2
    assert await reader == Envelope("", Shutdown())
    assert memo.held[0].was_cancelled


async def test_a_closed_host_takes_nothing_new() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        tooling = host.tooling.get("memo")

    for work in (tooling.list_tools, host.recv, lambda: tooling.call_tool("echo")):
        with pytest.raises(HostClosed, match="open another one"):
            await work()
    for plain in (host.try_recv, lambda: host.tooling.get("memo"), lambda: host.log("hi")):
        with pytest.raises(HostClosed, match="open another one"):
            plain()


async def test_the_trace_of_a_closed_host_can_be_read() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        await host.tooling.get("memo").list_tools()

    assert [event.kind for event in host.trace] == ["call"]


async def test_a_body_that_raises_closes_the_host_and_raises_the_same() -> None:
    memo = Memory()
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught:
        async with toolpost.open_host(memory.config(memo)):
            raise error

    assert caught.value is error
    assert memo.closed == 1


async def test_a_backend_that_raises_while_it_closes_is_logged_and_hurts_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raising, cancelling, other = Memory(), Memory(), Memory()

    async def raises() -> None:
        raise LookupError("no way out")

    async def cancels() -> None:
        raise asyncio.CancelledError

    raising.on_close, cancelling.on_close = raises, cancels
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(raising, cancelling, other)):
            pass

    assert other.closed == 1
    assert [record.getMessage() for record in caplog.records] == [
        "tooling 'memo' raised while it closed",
        "tooling 'memo2' raised while it closed",
    ]


async def test_a_backend_that_does_not_close_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(core_module, "BACKEND_CLOSE_SECS", 0.01)
    memo = Memory()

    async def hangs() -> None:
        await asyncio.Event().wait()

    memo.on_close = hangs
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo)):
            pass

    assert "tooling 'memo' did not close within 0.01 s" in caplog.text


async def test_a_house_that_is_torn_down_while_it_closes_closes_all_the_same() -> None:
    memo = Memory()

    stopped: list[BaseException] = []

    async def agent(host: toolpost.Host) -> None:
        await host.recv()
        (house,) = [task for task in asyncio.all_tasks() if task.get_name() == "toolpost house"]
        house.cancel()  # as `asyncio.run` does with every task, when a second Ctrl-C ends it
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            stopped.append(error)
            raise

    with anyio.fail_after(5):
        run = asyncio.create_task(toolpost.run_async(memory.config(memo), agents={"ada": agent}))
        await settle()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    assert memo.closed == 1
    assert [type(error) for error in stopped] == [asyncio.CancelledError]


def swallower(log: list[str]) -> tuple[asyncio.Event, Callable[[], Coroutine[Any, Any, None]]]:
    """Work that ends when the event is set, and not before: whatever is raised in it."""
    released = asyncio.Event()

    async def work() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except BaseException:
                pass
        log.append("ended")

    return released, work


@pytest.mark.parametrize("where", ["a queued call", "a call in place", "background", "closing"])
async def test_a_backend_that_swallows_its_cancellation_is_left_behind_and_reported(
    where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(core_module, "CANCEL_SECS", 0.01)
    monkeypatch.setattr(core_module, "BACKEND_CLOSE_SECS", 0.01)
    memo, log = Memory(), list[str]()
    released, work = swallower(log)
    caller: asyncio.Task[Any] | None = None
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo)) as host:
            assert memo.site is not None
            memo.on_call = lambda call: work()
            if where == "a queued call":
                await host.tooling.get("memo").call_tool("any")
            elif where == "a call in place":
                caller = asyncio.create_task(host.tooling.get("memo").call_tool_blocking("any"))
            elif where == "background":
                memo.site.start_task(work)
            else:
                memo.on_close = work
            await turns(3)

    assert log == []
    assert memo.closed == 1
    if caller is None:  # else it is the program's own task
        assert "await released.wait()" in caplog.text
        assert "left behind" in caplog.text
    released.set()
    if caller is not None:
        await asyncio.wait({caller})
    await settle()
    assert log == ["ended"]


async def test_closing_under_cancellation_finishes_first_and_is_cancelled_then() -> None:
    memo = Memory()
    closing, may_close = asyncio.Event(), asyncio.Event()

    async def on_close() -> None:
        closing.set()
        await may_close.wait()
        memo.log.append("closed")

    memo.on_close = on_close

    async def use() -> None:
        async with toolpost.open_host(memory.config(memo)):
            pass

    with anyio.fail_after(5):
        user = asyncio.create_task(use())
        await closing.wait()
        for _ in range(3):
            user.cancel()
            await settle()
        assert not user.done()
        may_close.set()
        with pytest.raises(asyncio.CancelledError):
            await user

    assert memo.log == ["aclose", "closed"]


async def test_closing_in_a_cancelled_scope_waits_without_spinning() -> None:
    memo = Memory()
    closing, may_close = asyncio.Event(), asyncio.Event()

    async def on_close() -> None:
        closing.set()
        await may_close.wait()

    memo.on_close = on_close
    scope = anyio.CancelScope()

    async def use() -> None:
        with scope:
            async with toolpost.open_host(memory.config(memo)):
                await anyio.sleep_forever()

    with anyio.fail_after(5):
        user = asyncio.create_task(use())
        await settle()
        scope.cancel()
        await closing.wait()
        before = user.cancelling()
        await turns(20)
        assert user.cancelling() == before
        may_close.set()
        await user

    assert scope.cancelled_caught


async def test_background_work_of_a_backend_ends_with_the_host_and_hurts_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memo = Memory()
    ended: list[str] = []

    async def for_ever(name: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(name)

    async def raises() -> None:
        raise LookupError("background")

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo)) as host:
            assert memo.site is not None
            for work in (raises, cancels_itself):
                memo.site.start_task(work)
            memo.site.start_task(for_ever, "ended")
            await settle()
            assert (await host.tooling.get("memo").call_tool_blocking("echo")).value == ""
        with pytest.raises(HostClosed):
            memo.site.start_task(for_ever, "too late")

    assert ended == ["ended"]
    assert caplog.text.count("a background task of a tooling raised") == 2


async def test_states_of_a_connection_are_traced() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo)) as host:
        assert memo.site is not None
        memo.site.on_state("connected")

        assert list(host.trace) == [State(tooling="memo", state="connected")]


async def test_a_host_without_a_trace_says_so() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo), trace=False) as host:
        assert memo.site is not None
        memo.site.on_state("connected")
        await host.tooling.get("memo").call_tool("echo")
        assert isinstance((await host.recv()).event, toolpost.ToolResult)
        with pytest.raises(UsageError, match="trace=False"):
            _ = host.trace


# -- what a host offers besides its toolings -------------------------------------------------------


async def test_recv_times_out_and_loses_nothing() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo)) as host:
        uuid = await host.tooling.get("memo").call_tool("hold")
        with pytest.raises(RecvTimeout, match=r"'main': no envelope arrived within 0\.01 s"):
            await host.recv(timeout=0.01)
        memo.held[0].answer()

        assert (await host.recv(timeout=5)).id == uuid


async def test_recv_with_no_time_takes_what_waits_and_only_that() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo)) as host:
        with pytest.raises(RecvTimeout):
            await host.recv(timeout=0)
        uuid = await host.tooling.get("memo").call_tool("echo")
        await settle()

        assert (await host.recv(timeout=0)).id == uuid


async def test_recv_waits_for_ever_where_it_is_told_so() -> None:
    memo = Memory()
    config = memory.config(memo, tunables={"recv_timeout_secs": 0.001})
    async with toolpost.open_host(config) as host:
        await host.tooling.get("memo").call_tool("hold")
        waiting = asyncio.create_task(host.recv(timeout=math.inf))
        with pytest.raises(RecvTimeout):
            await host.recv()  # the shorter limit of the tunable passes meanwhile
        memo.held[0].answer()

        assert isinstance((await waiting).event, toolpost.ToolResult)


@pytest.mark.parametrize("timeout", [-1, math.nan], ids=repr)
async def test_a_limit_of_recv_is_not_below_zero(timeout: float) -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        with pytest.raises(UsageError, match="0 or more"):
            await host.recv(timeout=timeout)


async def test_a_recv_that_is_cancelled_takes_nothing() -> None:
    memo = Memory()
    async with toolpost.open_host(memory.config(memo)) as host:
        uuid = await host.tooling.get("memo").call_tool("hold")
        reader = asyncio.create_task(host.recv())
        await settle()
        memo.held[0].answer()
        reader.cancel()  # in the very turn of the answer
        await settle()

        assert reader.cancelled()
        assert (await host.recv()).id == uuid


async def test_an_unknown_tooling_names_those_that_there_are() -> None:
    async with toolpost.open_host(memory.config(Memory(), Memory())) as host:
        with pytest.raises(toolpost.UnknownTooling, match=r"unknown tooling 'x'.*'memo', 'memo2'") as caught:
            host.tooling.get("x")

    assert (caught.value.name, caught.value.known) == ("x", ("memo", "memo2"))


async def test_a_program_is_the_agent_main() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        assert (host.name, host.params) == ("main", {})
        assert repr(host) == "<OpenHost of agent 'main'>"


async def test_log_writes_to_the_logger_of_the_agent_and_masks(caplog: pytest.LogCaptureFixture) -> None:
    secret = toolpost.Secret("hunter2-hunter2", allow_unlocked=True)
    async with toolpost.open_host(memory.config(Memory())) as host:
        host.log(f"100 % of {secret.expose()}", level="warning")
        with pytest.raises(UsageError, match="unknown log level 'loud'"):
            host.log("hi", level="loud")

    assert caplog.record_tuples == [("toolpost.agent.main", 30, "100 % of ***")]


@pytest.mark.parametrize("level", [5, "notset", "", None], ids=repr)
async def test_a_level_is_the_name_of_one(level: Any) -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        with pytest.raises(UsageError, match="unknown log level"):
            host.log("hi", level=level)


@pytest.mark.parametrize("seconds", [-1, math.nan, "x", None, True], ids=repr)
async def test_sleep_takes_a_number_of_seconds(seconds: Any) -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        with pytest.raises(UsageError, match="0 or more"):
            await host.sleep(seconds)


async def test_a_host_is_used_on_its_own_loop() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        tooling = host.tooling.get("memo")

        async def elsewhere() -> None:
            for work in (tooling.list_tools, host.recv, lambda: host.sleep(0), lambda: tooling.cancel("x")):
                with pytest.raises(UsageError, match="belongs to another event loop"):
                    await work()
            with pytest.raises(UsageError, match="belongs to another event loop"):
                host.try_recv()

        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(lambda: asyncio.run(elsewhere()))


async def test_now_goes_on_with_the_loops_clock() -> None:
    async with toolpost.open_host(memory.config(Memory())) as host:
        before = host.now()
        await host.sleep(0)
        assert host.now() >= before > 1_700_000_000
