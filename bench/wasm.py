"""What guests cost: their start, their calls beside those of an agent in Python, their memory.

Builds one guest, which takes some seconds. Its start is a run of it in which it does nothing: cold, it is
compiled first; cached, it was before. A call is a blocking call of a tool of a mock, in real time, timed
by the agent itself; the bar is four times what it costs an agent in Python.

    .venv/bin/python bench/wasm.py
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from pathlib import Path

import toolpost
from toolpost.wasm.build import build

AGENT = """
import time

import toolpost


def run(host: toolpost.SyncHost) -> str | None:
    count = host.params["calls"]
    if host.params["waits"]:
        host.recv()
    if count == 0:
        return None
    it = host.tooling.get("it")
    start = time.perf_counter()
    for _ in range(count):
        it.call_tool_blocking("echo", '{"n":1}')
    return str((time.perf_counter() - start) / count)
"""
CALLS = 2_000
ROUNDS = 5
"""Taken in turn; the best of each counts."""
GUESTS = 100
SETTLING_SECS = 2


def config(script: Path, names: list[str], *, calls: int = 0, waits: bool = False) -> toolpost.Config:
    steps = [{"name": "echo", "result": "hi"}] * calls
    mock = {"kind": "mock", "delay_ms": 0, "tool_calls": steps}
    agent = {"script": str(script), "params": {"calls": calls, "waits": waits}}
    return toolpost.load_config({"tooling": {"it": mock}, "agents": dict.fromkeys(names, agent)})


def seconds_to_start(script: Path) -> float:
    loaded = config(script, ["one"])
    start = time.perf_counter()
    toolpost.run(loaded)
    return time.perf_counter() - start


def seconds_per_call(script: Path) -> float:
    return float(toolpost.run(config(script, ["one"], calls=CALLS))["one"].text or "nan")


def memory() -> int:
    """What this process has in memory, in KiB. Of pages that several mappings share, each has its share."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def threads_of_guests() -> int:
    return sum(each.name.startswith("agent guest") for each in threading.enumerate())


async def print_many(script: Path) -> None:
    """A hundred guests that wait in `recv`, until they are cancelled."""
    names = [f"guest{number}" for number in range(GUESTS)]
    before, start = memory(), time.perf_counter()
    running = asyncio.create_task(toolpost.run_async(config(script, names, waits=True)))
    while threads_of_guests() < GUESTS:  # noqa: ASYNC110  # a thread tells nobody
        await asyncio.sleep(0.01)
    print(f"{GUESTS} guests, started in {time.perf_counter() - start:.2f} s")
    await asyncio.sleep(SETTLING_SECS)
    print(f"  memory of each that waits: {(memory() - before) / GUESTS / 1024:.1f} MiB")
    running.cancel()
    await asyncio.wait({running})


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = temporary
        source, guest = folder / "agent.py", folder / "agent.wasm"
        source.write_text(AGENT)
        start = time.perf_counter()
        build(source, guest)
        print(f"building a guest in Python: {time.perf_counter() - start:.1f} s")
        print(f"its start, cold:   {seconds_to_start(guest) * 1000:9.0f} ms")
        print(f"its start, cached: {seconds_to_start(guest) * 1000:9.1f} ms")
        rounds = [(seconds_per_call(source), seconds_per_call(guest)) for _ in range(ROUNDS)]
        in_python, in_guest = map(min, zip(*rounds, strict=True))
        print(f"a blocking call of a mock, in Python: {in_python * 1e6:6.0f} µs")
        print(f"a blocking call of a mock, in a guest: {in_guest * 1e6:5.0f} µs", end="")
        print(f"  ({1 / in_guest:,.0f} a second, {in_guest / in_python:.1f} times; the bar is 4)")
        asyncio.run(print_many(guest))


if __name__ == "__main__":
    main()
