"""What a simulated run costs: calls per second, and what a sync agent pays for its thread.

The calls per second stay the same from one agent to a thousand: a run costs as much as happens in it. A sync
agent's call that waits costs two switches of threads; two threads that only hand the turn to each other and
back, by two locks, are what it is measured by.

    .venv/bin/python bench/simulation.py
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import toolpost

AGENTS = {1: 1_000, 10: 100, 100: 100, 1_000: 10}
"""How many agents, and how many calls each of them makes."""
STEPS = 10_000
DELAY_MS = 1_000
HAND_OFFS = 300
"""In one round: so few that some rounds are not disturbed by whatever else the machine does."""
ROUNDS = 20
"""The best of them counts."""


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


def bare_hand_off() -> float:
    """Seconds of one hand-off to another thread and back, by two locks."""
    there, back = threading.Lock(), threading.Lock()
    there.acquire()
    back.acquire()

    def other() -> None:
        for _ in range(HAND_OFFS):
            there.acquire()
            back.release()

    thread = threading.Thread(target=other)
    thread.start()
    start = time.perf_counter()
    for _ in range(HAND_OFFS):
        there.release()
        back.acquire()
    seconds = time.perf_counter() - start
    thread.join()
    return seconds / HAND_OFFS


class Fastest:
    """The best time of each thing that was measured, in microseconds."""

    def __init__(self) -> None:
        self.by_name: dict[str, float] = {}

    def keep(self, name: str, seconds: float) -> None:
        """Of one hand-off or call."""
        self.by_name[name] = min(self.by_name.get(name, float("inf")), seconds * 1e6)


def print_host_calls() -> None:
    """A line for each call; `ratio` is what a sync agent pays more than an async one, in bare hand-offs.

    The first two wait for nothing, and need no hand-off where nobody else could go on.
    """
    best = Fastest()

    def in_thread(host: toolpost.SyncHost) -> None:
        it = host.tooling.get("it")
        calls: dict[str, Callable[[], object]] = {
            "host.now()": host.now,
            "is_open": lambda: it.is_open("none"),
            "host.sleep(0)": lambda: host.sleep(0),
            "cancel": lambda: it.cancel("none"),
        }
        best.keep("bare", bare_hand_off())
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(HAND_OFFS):
                call()
            best.keep(f"sync {name}", (time.perf_counter() - start) / HAND_OFFS)

    async def in_task(host: toolpost.Host) -> None:
        it = host.tooling.get("it")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "host.sleep(0)": lambda: host.sleep(0),
            "cancel": lambda: it.cancel("none"),
        }
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(HAND_OFFS):
                await call()
            best.keep(f"async {name}", (time.perf_counter() - start) / HAND_OFFS)

    config = toolpost.load_config(mock(0, 0))
    for _ in range(ROUNDS):  # by turns: what disturbs one disturbs the other
        timed(config, {"agent": in_thread})
        timed(config, {"agent": in_task})
    bare = best.by_name.pop("bare")
    print(f"{'microseconds':<16} {'sync':>7} {'async':>7} {'ratio':>7}")
    print(f"{'bare hand-off':<16} {bare:>7.1f}")
    for name in ("host.now()", "is_open", "host.sleep(0)", "cancel"):
        sync, plain = best.by_name[f"sync {name}"], best.by_name.get(f"async {name}", 0.0)
        print(f"{name:<16} {sync:>7.1f} {f'{plain:.1f}' if plain else '':>7} {(sync - plain) / bare:>7.1f}")


def main() -> None:
    """All of it takes about half a minute."""
    timed(toolpost.load_config(mock(1, 0)), {"agent": caller(1, is_async=True)})  # imports what others need
    print_calls_per_second()
    print()
    print_long_script()
    print()
    print_host_calls()


if __name__ == "__main__":
    main()
