"""What a simulated run costs: calls per second, and what a sync agent pays for its thread.

The calls per second stay the same from one agent to a thousand: a run costs as much as happens in it. What a
host call costs a sync agent more than an async one is to be no more than two bare hand-offs: two threads that
hand the turn to each other and back, by two locks, and do nothing else. Where others are ready at the same
instant, threads have to change as well, and a change costs more where there is work in between.

    .venv/bin/python bench/simulation.py
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import toolpost

AGENTS = {1: 1_000, 10: 100, 100: 100, 1_000: 10}
"""How many agents, and how many calls each of them makes."""
STEPS = 10_000
DELAY_MS = 1_000
CALLS = 300
"""Of each kind, in one round: so few that most rounds are not disturbed by whatever else the machine does."""
ROUNDS = 15

Agents: TypeAlias = Sequence[Callable[[Any], Any]]


def mock(steps: int, delay_ms: float) -> dict[str, Any]:
    """A config with one mock, whose script is that long."""
    calls = [{"name": "echo", "result": "hi"}] * steps
    return {"tooling": {"it": {"kind": "mock", "delay_ms": delay_ms, "tool_calls": calls}}}


def timed(config: toolpost.Config, agents: dict[str, Any]) -> float:
    """The seconds that a simulated run takes."""
    start = time.perf_counter()
    outcomes = toolpost.run(config, agents=agents, simulate=True)
    seconds = time.perf_counter() - start
    assert {str(outcome) for outcome in outcomes.values()} == {"completed"}, outcomes
    return seconds


def caller(calls: int, *, is_async: bool) -> Callable[[Any], Any]:
    """An agent that makes blocking calls, one after the other."""

    def run(host: toolpost.SyncHost) -> None:
        it = host.tooling.get("it")
        for _ in range(calls):
            it.call_tool_blocking("echo")

    async def run_async(host: toolpost.Host) -> None:
        it = host.tooling.get("it")
        for _ in range(calls):
            await it.call_tool_blocking("echo")

    return run_async if is_async else run


def print_calls_per_second() -> None:
    """A line for each number of agents; the calls per second should stay the same."""
    print(f"{'':>17} {'async':>18} {'sync':>18}")
    print(f"{'agents':>8} {'calls':>8}" + 2 * f" {'seconds':>8} {'calls/s':>9}")
    for agents, calls in AGENTS.items():
        config = toolpost.load_config(mock(agents * calls, delay_ms=10))
        line = f"{agents:>8} {agents * calls:>8}"
        for is_async in (True, False):
            crew = {f"agent{number}": caller(calls, is_async=is_async) for number in range(agents)}
            seconds = timed(config, crew)
            line += f" {seconds:>8.2f} {agents * calls / seconds:>9.0f}"
        print(line)


def print_long_script() -> None:
    """What waiting costs, where all of it is virtual."""
    config = toolpost.load_config(mock(STEPS, DELAY_MS))
    for is_async in (True, False):
        seconds = timed(config, {"agent": caller(STEPS, is_async=is_async)})
        what = "async" if is_async else "sync"
        print(
            f"{STEPS} steps with delay_ms = {DELAY_MS}, {what} agent:"
            f" {STEPS * DELAY_MS / 1000:.0f} s simulated in {seconds:.1f} s"
        )


# -- what a thread costs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Of one call, or one hand-off, in microseconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def __truediv__(self, other: Cost | int) -> Cost:
        if isinstance(other, int):
            return Cost(self.wall / other, self.cpu / other)
        return Cost(self.wall / other.wall, self.cpu / other.cpu)


def median(costs: Iterable[Cost]) -> Cost:
    """Of each of the two clocks by itself."""
    walls, cpus = zip(*((each.wall, each.cpu) for each in costs), strict=True)
    return Cost(statistics.median(walls), statistics.median(cpus))


class Stopwatch:
    """Around some calls of the same kind."""

    def __enter__(self) -> Stopwatch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall, self._cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu

    def cost(self, calls: int) -> Cost:
        """Of each of so many."""
        return Cost(self._wall / calls * 1e6, self._cpu / calls * 1e6)


def bare_hand_off() -> Cost:
    """One hand-off to another thread and back, by two locks."""
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()

    def other() -> None:
        for _ in range(CALLS):
            there.acquire()
            back.release()

    thread = threading.Thread(target=other)
    thread.start()
    with Stopwatch() as watch:
        for _ in range(CALLS):
            there.release()
            back.acquire()
    thread.join()
    return watch.cost(CALLS)


def sleeps(host: toolpost.SyncHost) -> None:
    """A sync agent that has its turn as often as the one that is measured."""
    for _ in range(CALLS):
        host.sleep(0)


async def sleeps_async(host: toolpost.Host) -> None:
    """An async one."""
    for _ in range(CALLS):
        await host.sleep(0)


def queued(host: Any) -> Callable[[], object]:
    """A queued call and its answer."""
    it = host.tooling.get("it")

    def call() -> object:
        it.call_tool("echo")
        return host.recv()

    async def call_async() -> object:
        await it.call_tool("echo")
        return await host.recv()

    return call_async if isinstance(host, toolpost.Host) else call


@dataclass(frozen=True)
class Case:
    """What is measured, in a sync agent and in an async one."""

    call: Callable[[Any], Callable[[], Any]]
    """Gives, for a host, what an agent does again and again."""
    is_plain: bool = False
    beside: Agents = ()
    """Those that a sync agent runs beside."""
    beside_async: Agents = ()
    sync_calls: int = 1
    """How many calls of sync agents one round of it has."""


CASES = {
    "now": Case(lambda host: host.now, is_plain=True),
    "is_open": Case(lambda host: partial(host.tooling.get("it").is_open, "none"), is_plain=True),
    "sleep": Case(lambda host: partial(host.sleep, 0)),
    "cancel": Case(lambda host: partial(host.tooling.get("it").cancel, "none")),
    "list_tools": Case(lambda host: host.tooling.get("it").list_tools),
    "call_tool_blocking": Case(lambda host: partial(host.tooling.get("it").call_tool_blocking, "echo")),
    "call_tool and recv": Case(queued, sync_calls=2),
    "sleep, in turn with a sync agent": Case(
        lambda host: partial(host.sleep, 0), beside=(sleeps,), beside_async=(sleeps_async,), sync_calls=2
    ),
    "sleep, in turn with an async agent": Case(
        lambda host: partial(host.sleep, 0), beside=(sleeps_async,), beside_async=(sleeps_async,)
    ),
}


def cost_of(case: Case, *, is_async: bool) -> Cost:
    """What one round of it costs in the loop of an agent."""
    watch = Stopwatch()

    def run(host: toolpost.SyncHost) -> None:
        call = case.call(host)
        with watch:
            for _ in range(CALLS):
                call()

    async def run_async(host: toolpost.Host) -> None:
        call = case.call(host)
        with watch:
            for _ in range(CALLS):
                if case.is_plain:
                    call()
                else:
                    await call()

    others = case.beside_async if is_async else case.beside
    crew = {f"other{number}": other for number, other in enumerate(others)}
    timed(toolpost.load_config(mock(2 * CALLS, 0)), crew | {"agent": run_async if is_async else run})
    return watch.cost(CALLS)


def print_host_calls() -> None:
    """A line for each case; the ratio is what a sync agent pays more for a call, in bare hand-offs.

    Each ratio is taken within one round, and shown is the median: what disturbs one disturbs the others.
    """
    costs: dict[str, list[tuple[Cost, Cost]]] = {name: [] for name in CASES}
    ratios: dict[str, list[Cost]] = {name: [] for name in CASES}
    bares: list[Cost] = []
    for _ in range(ROUNDS):
        for name, case in CASES.items():
            sync, bare, plain = cost_of(case, is_async=False), bare_hand_off(), cost_of(case, is_async=True)
            bares.append(bare)
            costs[name].append((sync, plain))
            ratios[name].append((sync - plain) / bare / case.sync_calls)
    bare = median(bares)
    print(f"{'microseconds':<35} {'sync':>14} {'async':>14} {'ratio':>12}")
    print(f"{'':<35}" + 2 * f" {'wall':>7}{'cpu':>7}" + f" {'wall':>6}{'cpu':>6}")
    print(f"{'bare hand-off':<35} {bare.wall:>7.1f}{bare.cpu:>7.1f}")
    for name in CASES:
        sync, plain = (median(each) for each in zip(*costs[name], strict=True))
        ratio = median(ratios[name])
        print(
            f"{name:<35} {sync.wall:>7.1f}{sync.cpu:>7.1f} {plain.wall:>7.1f}{plain.cpu:>7.1f}"
            f" {ratio.wall:>6.1f}{ratio.cpu:>6.1f}"
        )


def main() -> None:
    """All of it takes about a minute."""
    timed(toolpost.load_config(mock(1, 0)), {"agent": caller(1, is_async=True)})  # imports what others need
    print_calls_per_second()
    print()
    print_long_script()
    print()
    print_host_calls()


if __name__ == "__main__":
    main()
