"""Virtual time, one order, and what the simulation leaves to real time."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.to_thread
import pytest

from toolpost.config import load_config
from toolpost.errors import UsageError
from toolpost.host import simulation
from toolpost.host.agents import Agent, Outcome
from toolpost.host.core import Core
from toolpost.host.simulation import SimulatedLoop, Stalled
from toolpost.trace.events import Call, Closed
from toolpost.trace.log import Trace


def simulate(main: Callable[[], Coroutine[Any, Any, Any]], seed: int = 0) -> Any:
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        return runner.run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


# -- time ------------------------------------------------------------------------------------------


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> list[float]:
        seen = [now()]
        for seconds in (1, 3600, 86400 * 365):
            await asyncio.sleep(seconds)
            seen.append(now())
        return seen

    assert simulate(main) == [0, 1, 3601, 3601 + 86400 * 365]


def test_time_stands_still_while_anything_is_ready() -> None:
    async def main() -> float:
        for _ in range(100):
            await asyncio.sleep(0)
        return now()

    assert simulate(main) == 0


def test_time_outs_are_virtual() -> None:
    async def main() -> float:
        with anyio.move_on_after(1000):
            await anyio.sleep_forever()
        return now()

    assert simulate(main) == 1000


def test_of_timers_at_one_instant_the_first_set_fires_first() -> None:
    fired: list[int] = []

    async def main() -> None:
        for number in range(100):
            asyncio.get_running_loop().call_at(5, fired.append, number)
        await asyncio.sleep(5)

    simulate(main)

    assert fired == list(range(100))


def test_a_seed_chooses_among_timers_at_one_instant_and_never_against_time() -> None:
    def order(seed: int) -> list[int]:
        fired: list[int] = []

        async def main() -> None:
            for number in range(20):
                asyncio.get_running_loop().call_at(1 + number // 10, fired.append, number)
            await asyncio.sleep(3)

        simulate(main, seed)
        return fired

    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(1, 20)}) > 10
    assert all(set(order(seed)[:10]) == set(range(10)) for seed in range(1, 20))


def test_a_stall_is_told_at_once() -> None:
    with pytest.raises(Stalled, match="nothing is ready and no timer is due"):
        simulate(anyio.sleep_forever)


# -- what is foreign -------------------------------------------------------------------------------


@pytest.fixture
def released() -> threading.Event:
    return threading.Event()


async def in_executor(work: Callable[[], object]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, work)


async def in_thread(work: Callable[[], object]) -> None:
    await asyncio.to_thread(work)


async def in_anyio_thread(work: Callable[[], object]) -> None:
    await anyio.to_thread.run_sync(work)


async def in_own_thread(work: Callable[[], object]) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        work()
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run).start()
    await done.wait()


async def on_a_socket(work: Callable[[], object]) -> None:
    mine, theirs = socket.socketpair()
    mine.setblocking(False)

    def answer() -> None:
        work()
        theirs.sendall(b"x")

    thread = threading.Thread(target=answer)
    thread.start()
    assert await asyncio.get_running_loop().sock_recv(mine, 1) == b"x"
    thread.join()
    mine.close()
    theirs.close()


FOREIGN = {
    "run_in_executor": in_executor,
    "to_thread": in_thread,
    "anyio": in_anyio_thread,
    "a thread": in_own_thread,
    "a socket": on_a_socket,
}


@pytest.mark.parametrize("way", FOREIGN)
def test_what_waits_for_the_world_outside_is_not_timed_out_by_a_jump(
    way: str, released: threading.Event
) -> None:
    async def main() -> float:
        async with asyncio.timeout(3600):
            # the world outside needs some real time: as long as it takes another thread to be scheduled twice
            threading.Timer(0.05, released.set).start()
            await FOREIGN[way](released.wait)
        return now()

    assert simulate(main) < 3600


@pytest.mark.parametrize("way", FOREIGN)
def test_once_it_is_back_time_jumps_again(way: str) -> None:
    async def main() -> None:
        await FOREIGN[way](lambda: None)
        await asyncio.sleep(10**6)

    simulate(main)


def test_a_pool_from_before_the_run_is_foreign_while_it_works_and_only_then() -> None:
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()

    async def main() -> float:
        async with asyncio.timeout(3600):
            await asyncio.wrap_future(pool.submit(threading.Event().wait, 0.05))
        after = now()
        await asyncio.sleep(10**6)
        return after

    with pool:
        assert simulate(main) < 3600


def test_pools_are_as_before_once_the_last_simulation_has_ended() -> None:
    before = ThreadPoolExecutor.submit

    async def main() -> None:
        await asyncio.to_thread(lambda: simulate(lambda: asyncio.sleep(1)))
        assert ThreadPoolExecutor.submit is not before

    simulate(main)

    assert ThreadPoolExecutor.submit is before


def test_callbacks_from_other_threads_are_not_lost_under_any_seed() -> None:
    async def main() -> int:
        loop, came = asyncio.get_running_loop(), list[int]()

        def send() -> None:
            for number in range(500):
                loop.call_soon_threadsafe(came.append, number)

        await asyncio.gather(*(asyncio.to_thread(send) for _ in range(3)))
        await asyncio.sleep(1)
        return len(came)

    assert [simulate(main, seed) for seed in range(4)] == [1500] * 4


def test_what_is_due_in_centuries_is_not_waited_for() -> None:
    with pytest.raises(Stalled):
        simulate(lambda: asyncio.sleep(sys.maxsize))


def test_a_process_is_waited_for() -> None:
    async def main() -> float:
        async with asyncio.timeout(3600):
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
            assert await process.wait() == 0
        after = now()
        await asyncio.sleep(10**6)
        return after

    assert simulate(main) < 3600


BLOCKED_SECS = 0.5
"""Long enough that nothing but what means to comes near it, on a busy machine too."""


# -- agents ----------------------------------------------------------------------------------------

MOCK: dict[str, Any] = {
    "tooling": {
        "mcp": {
            "kind": "mock",
            "delay_ms": 1000,
            "tool_calls": [{"name": "echo", "result": str(number)} for number in range(100)],
        }
    }
}


def run(
    *agents: Callable[[Any], Any], seed: int = 0, config: dict[str, Any] = MOCK
) -> tuple[list[Outcome], Trace]:
    """Runs functions as agents in a simulated run."""

    async def main() -> tuple[list[Outcome], Trace]:
        core = Core(load_config(MOCK), trace=True, extras={})
        await core.open()
        try:
            crew = [Agent(f"agent{number}", function) for number, function in enumerate(agents)]
            outcomes = await core.run_agents(crew, asyncio.Event())
        finally:
            await core.close()
        assert core.trace is not None
        return [outcomes[agent.name] for agent in crew], core.trace

    return simulate(main, seed)


def blocking(host: Any) -> str:
    mcp = host.tooling.get("mcp")
    for _ in range(5):
        mcp.call_tool_blocking("echo")
    return str(host.now() - simulation.EPOCH)


async def awaiting(host: Any) -> str:
    mcp = host.tooling.get("mcp")
    for _ in range(5):
        await mcp.call_tool_blocking("echo")
    return str(host.now() - simulation.EPOCH)


def queueing(host: Any) -> str:
    mcp = host.tooling.get("mcp")
    for _ in range(5):
        mcp.call_tool("echo")
    return ",".join(host.recv().event.value for _ in range(5))


async def sleeping(host: Any) -> str:
    await host.sleep(2)
    await asyncio.sleep(3)
    return str(host.now() - simulation.EPOCH)


def test_sync_and_async_agents_share_one_virtual_clock() -> None:
    outcomes, _ = run(blocking, awaiting, sleeping)

    assert [outcome.text for outcome in outcomes] == ["5.0", "5.0", "5.0"]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_same_seed_gives_the_same_trace_byte_for_byte(seed: int) -> None:
    crew = (blocking, awaiting, queueing, sleeping, queueing)

    traces = {tuple(run(*crew, seed=seed)[1].json_lines()) for _ in range(10)}

    assert len(traces) == 1


def test_seeds_change_who_goes_first() -> None:
    def who_called(seed: int) -> tuple[str, ...]:
        _, trace = run(blocking, awaiting, seed=seed)
        return tuple(record.agent for record in trace if isinstance(record, Call))

    assert len({who_called(seed) for seed in range(20)}) > 10


def test_queued_calls_of_one_instant_come_in_order_under_seed_0_and_in_any_under_others() -> None:
    def order(seed: int) -> str | None:
        ((outcome,), _) = run(queueing, seed=seed)
        return outcome.text

    assert order(0) == "0,1,2,3,4"
    orders = {order(seed) for seed in range(1, 30)}
    assert len(orders) > 10
    assert all(sorted(str(each).split(",")) == ["0", "1", "2", "3", "4"] for each in orders)


def test_a_thread_that_an_agent_starts_may_not_call_the_host() -> None:
    def agent(host: Any) -> str:
        errors: list[BaseException] = []

        def call() -> None:
            try:
                host.now()
            except UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=call, name="helper")
        thread.start()
        thread.join()
        (error,) = errors
        return str(error)

    ((outcome,), _) = run(agent)

    assert outcome.text is not None
    assert "thread 'helper' called a host in a simulated run" in outcome.text


async def polls(host: Any) -> str:
    await host.tooling.get("mcp").call_tool("echo")
    while (envelope := host.try_recv()) is None:  # noqa: ASYNC110  it is what this is about
        await asyncio.sleep(0)
    return envelope.event.value


def polls_by_sleeping(host: Any) -> str:
    host.tooling.get("mcp").call_tool("echo")
    while (envelope := host.try_recv()) is None:
        host.sleep(0)
    return envelope.event.value


def polls_in_place(host: Any) -> str:
    host.tooling.get("mcp").call_tool("echo")
    while (envelope := host.try_recv()) is None:
        pass
    return envelope.event.value


@pytest.mark.parametrize("agent", [polls, polls_by_sleeping, polls_in_place])
@pytest.mark.parametrize("seed", [0, 1])
def test_time_passes_for_who_polls(agent: Callable[[Any], Any], seed: int) -> None:
    ((outcome,), _) = run(agent, seed=seed)

    assert outcome.text == "0"


def test_the_tasks_of_a_group_are_cancelled_in_one_order() -> None:
    async def agent(host: Any) -> None:
        mcp = host.tooling.get("mcp")

        async def child(number: int) -> None:
            try:
                await asyncio.sleep(100)
            finally:
                await mcp.cancel(str(number))

        async def fails() -> None:
            await asyncio.sleep(1)
            raise ValueError

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(child(number))
            group.create_task(fails())

    assert len({tuple(run(agent)[1].json_lines()) for _ in range(20)}) == 1


def test_an_agent_that_raises_hurts_no_other() -> None:
    def fails(_host: Any) -> None:
        raise ValueError("no luck")

    outcomes, _ = run(blocking, fails, awaiting)

    assert [str(outcome) for outcome in outcomes] == [
        "exited: 5.0",
        "failed: ValueError: no luck",
        "exited: 5.0",
    ]


def test_an_agent_that_makes_no_host_call_just_ends() -> None:
    outcomes, trace = run(lambda _host: None)

    assert [str(outcome) for outcome in outcomes] == ["completed"]
    assert [record.kind for record in trace] == ["outcome"]


@pytest.mark.parametrize("keyword", ["sync", "async"])
def test_of_a_cancel_and_an_answer_at_one_instant_exactly_one_wins(keyword: str) -> None:
    async def cancels(host: Any) -> str:
        mcp = host.tooling.get("mcp")
        uuid = await mcp.call_tool("echo")
        await host.sleep(1)
        was_open = mcp.is_open(uuid)
        await mcp.cancel(uuid)
        return f"{was_open}, {host.try_recv()}"

    def cancels_in_thread(host: Any) -> str:
        mcp = host.tooling.get("mcp")
        uuid = mcp.call_tool("echo")
        host.sleep(1)
        was_open = mcp.is_open(uuid)
        mcp.cancel(uuid)
        return f"{was_open}, {host.try_recv()}"

    reasons: set[str] = set()
    for seed in range(30):
        ((outcome,), trace) = run(cancels if keyword == "async" else cancels_in_thread, seed=seed)
        (reason,) = [record.reason for record in trace if isinstance(record, Closed)]
        reasons.add(reason)
        assert outcome.text in ("True, None", f"{reason == 'cancelled'}, None"), "nothing is left to be taken"

    assert reasons == {"ended", "cancelled"}


def test_a_long_computation_is_waited_for_and_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(simulation, "BLOCKED_SECS", BLOCKED_SECS)
    told = threading.Event()
    caplog.handler.addFilter(lambda _record: told.set() or True)

    def agent(host: Any) -> str:
        while not told.is_set():
            pass
        return str(host.now() - simulation.EPOCH)

    ((outcome,), _) = run(agent)

    assert outcome.text == "0.0"
    (record,) = caplog.records
    assert "agent agent0 has made no host call for 0.5 s of real time" in record.getMessage()
    assert f"of {__file__}, in agent: while not told.is_set():" in record.getMessage()


def test_an_async_agent_that_holds_up_the_loop_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(simulation, "BLOCKED_SECS", BLOCKED_SECS)
    told = threading.Event()
    caplog.handler.addFilter(lambda _record: told.set() or True)

    async def agent(host: Any) -> str:
        while not told.is_set():
            pass
        return str(host.now() - simulation.EPOCH)

    ((outcome,), _) = run(agent)

    assert outcome.text == "0.0"
    (record,) = caplog.records
    assert "agent agent0 has let nobody else run for 0.5 s of real time" in record.getMessage()
    assert f"of {__file__}, in agent: while not told.is_set():" in record.getMessage()


def test_an_agent_that_waits_for_the_world_outside_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(host: Any) -> str:
        for _ in range(2):
            with anyio.fail_after(3600):
                await asyncio.to_thread(threading.Event().wait, 0.05)
        await host.sleep(10**6)
        return "done"

    with caplog.at_level(logging.WARNING):
        ((outcome,), _) = run(agent)

    assert outcome.text == "done"
    (record,) = caplog.records
    assert "agent 'agent0' waits for a job in an executor" in record.getMessage()
