"""One client against one server, in a process of its own, under its own environment's Python.

    python -m bench.cell '<a Spec as JSON>'        prints its figures as one line of JSON

Standard library only, besides the client. CPU is this process's own, of all its threads: the server's is not
in it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any, Literal, TypeAlias

from bench.client import Client, Target

AT_ONCE = 64
THREADS = 8
BIG = 64 * 1024
"""Characters of text in a large result."""
CONNECTING_CALLS = 1_000
WARM_UP = 100
UPDATES_SECS = 60.0
"""How long the updates may take to arrive before they count as lost."""

What: TypeAlias = Literal["cold", "rates", "threads"]
Figures: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class Spec:
    """What to measure."""

    client: str
    """A module of `bench.clients`, and after a colon its mode."""
    what: What
    command: list[str]
    url: str
    started_ns: int
    """When the process was started, by the monotonic clock, which all processes share."""
    seconds: float
    """The length of each timed phase."""
    updates: int
    counts_connections: bool

    @property
    def target(self) -> Target:
        return Target(self.command, self.url)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Meter:
    """Counts what is done, and what it costs."""

    def __init__(self) -> None:
        self.count = 0
        self._time, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        """This is the end of what counts."""
        self._seconds = time.perf_counter() - self._time
        self._cpu_seconds = time.process_time() - self._cpu

    def figures(self, name: str) -> Figures:
        return {
            f"{name}_per_s": self.count / self._seconds,
            f"{name}_cpu_us": self._cpu_seconds / self.count * 1e6,
        }

    @property
    def seconds(self) -> float:
        return self._seconds


# -- one after the other, and many at once ---------------------------------------------------------


async def calls(seconds: float, at_once: int, call: Callable[[], Awaitable[object]]) -> Meter:
    """So many tasks that call until the time is over."""
    meter = Meter()
    end = time.perf_counter() + seconds

    async def caller() -> None:
        while time.perf_counter() < end:
            await call()
            meter.count += 1

    await asyncio.gather(*(caller() for _ in range(at_once)))
    meter.stop()
    return meter


async def rates(spec: Spec, module: ModuleType, mode: str) -> Figures:
    """Every phase, one after the other, on one connection."""
    client: Client = module.Client(mode)
    figures: Figures = {}

    async def echo() -> None:
        if (said := await client.call("echo", {"message": "hi"})) != "hi":
            raise RuntimeError(f"the echo of 'hi' is {said!r}")

    async def blob() -> None:
        if (length := len(await client.call("blob", {"size": BIG}))) != BIG:
            raise RuntimeError(f"a text of {BIG} characters has {length}")

    begun = time.perf_counter()
    await client.open(spec.target)
    await echo()
    figures["first_ms"] = (time.perf_counter() - begun) * 1e3
    for _ in range(WARM_UP):
        await echo()
        await asyncio.gather(*(echo() for _ in range(AT_ONCE // 8)))
    figures["rss_mb"] = rss_mb()

    figures |= (await calls(spec.seconds, 1, echo)).figures("one")
    server = await stats(client)
    many = await calls(spec.seconds, AT_ONCE, echo)
    figures["server_share"] = ((await stats(client))["cpu_us"] - server["cpu_us"]) / 1e6 / many.seconds
    figures |= many.figures("many")
    figures |= (await calls(spec.seconds, AT_ONCE, blob)).figures("big")
    if (queued := getattr(client, "queued", None)) is not None:
        meter = Meter()
        meter.count = await queued("echo", {"message": "hi"}, AT_ONCE, spec.seconds)
        meter.stop()
        figures |= meter.figures("queued")
    if spec.counts_connections:
        before = (await stats(client))["connections"]
        for _ in range(CONNECTING_CALLS - 1):  # the last call is the one that asks
            await echo()
        figures["connections"] = (await stats(client))["connections"] - before
    if spec.updates:
        figures |= await updates(client, spec.updates)
    await client.close()
    return figures


async def updates(client: Client, wanted: int) -> Figures:
    """As many updates as the server can send, until the client has got each of them."""
    arrived = asyncio.Event()
    meter = Meter()

    def on_update() -> None:
        meter.count += 1
        if meter.count == wanted:
            meter.stop()
            arrived.set()

    await client.watch(on_update)
    meter = Meter()
    await client.call("emit", {"count": wanted})
    try:
        async with asyncio.timeout(UPDATES_SECS):
            await arrived.wait()
    except TimeoutError:
        return {"updates_lost": wanted - meter.count}
    figures = {"updates_lost": 0.0, **meter.figures("updates")}
    if (envelopes := getattr(client, "envelopes", None)) is not None:
        figures["envelopes_per_s"] = envelopes / meter.seconds
    return figures


async def stats(client: Client) -> dict[str, float]:
    """What the server has counted."""
    pairs = (pair.split("=") for pair in (await client.call("stats", {})).split())
    return {name: float(value) for name, value in pairs}


# -- from a new process, and from threads ----------------------------------------------------------


async def cold(spec: Spec, module: ModuleType, mode: str) -> Figures:
    """The first result, counted from the start of this process."""
    client: Client = module.Client(mode)
    await client.open(spec.target)
    await client.call("echo", {"message": "hi"})
    cold_ms = (time.monotonic_ns() - spec.started_ns) / 1e6
    await client.close()
    return {"cold_ms": cold_ms}


class Threads:
    """Threads that call until the time is over, all at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._begin = threading.Barrier(THREADS, self._start)
        self._end = threading.Barrier(THREADS, self._stop)

    def _start(self) -> None:
        self.meter = Meter()
        self._until = time.perf_counter() + self._seconds

    def _stop(self) -> None:
        self.meter.stop()

    def work(self, call: Callable[[], object]) -> None:
        """What each of them does."""
        for _ in range(WARM_UP // THREADS):
            call()
        self._begin.wait()
        count = 0
        while time.perf_counter() < self._until:
            call()
            count += 1
        with self._lock:
            self.meter.count += count
        self._end.wait()


async def from_threads(spec: Spec, module: ModuleType, mode: str, threads: Threads) -> None:
    """A client without a face for threads is called through `run_coroutine_threadsafe`."""
    client: Client = module.Client(mode)
    await client.open(spec.target)
    loop = asyncio.get_running_loop()

    def call() -> None:
        echo = client.call("echo", {"message": "hi"})
        asyncio.run_coroutine_threadsafe(awaited(echo), loop).result()

    workers = ThreadPoolExecutor(THREADS)
    await asyncio.gather(*(loop.run_in_executor(workers, threads.work, call) for _ in range(THREADS)))
    await client.close()


async def awaited(result: Awaitable[Any]) -> Any:
    return await result


# -- the process -----------------------------------------------------------------------------------


def rss_mb() -> float:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main() -> None:
    spec = Spec(**json.loads(sys.argv[1]))
    name, _, mode = spec.client.partition(":")
    begun = time.perf_counter()
    module = importlib.import_module(f"bench.clients.{name}")
    if spec.what == "rates" and hasattr(module, "preload"):
        module.preload()
    import_ms = (time.perf_counter() - begun) * 1e3
    logging.disable(logging.WARNING)
    if spec.what == "cold":
        figures = asyncio.run(cold(spec, module, mode))
    elif spec.what == "rates":
        figures = {"import_ms": import_ms, **asyncio.run(rates(spec, module, mode))}
    else:
        threads = Threads(spec.seconds)
        if hasattr(module.Client, "from_threads"):
            module.Client.from_threads(spec.target, THREADS, threads.work)
        else:
            asyncio.run(from_threads(spec, module, mode, threads))
        figures = threads.meter.figures("threads")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
