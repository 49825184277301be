"""A soak from its beginning to its verdict."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import socket
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import toolpost
from tests.soak.adversary import Adversary, Victim
from tests.soak.agent import SoakAgent, Stage
from tests.soak.memory import Memory
from tests.soak.plan import KINDS, Kind, Options, tunables
from tests.soak.processes import held, held_in_the_end, servers_of
from tests.soak.report import Report, judged
from toolpost.host.agents import Agent
from toolpost.host.core import Core

IN_THREADS = 5
"""Every so many-th agent is a sync one."""
PROGRESS_SECS = 10.0
PORTS = (10_000, 32_768)


def soak(options: Options, tell: Callable[[str], object] = lambda _: None) -> Report:
    """Run it, telling progress by lines."""
    with tempfile.TemporaryDirectory(prefix="toolpost-soak-") as folder, ExitStack() as stack:
        victims = [_victim(kind, Path(folder)) for kind in KINDS]
        for victim in victims:
            stack.callback(victim.clear)
            victim.start()
        config = toolpost.load_config(
            {
                "tooling": {each.kind.name: each.table() for each in victims},
                "tunables": tunables(options),
            }
        )
        complaints = stack.enter_context(_logged_errors())
        asyncio.run(_warm_up(config))
        before = held()
        stage, memory = Stage(options), Memory()
        agents = _crew(options, stage)
        adversary = Adversary(victims, options, stage)
        adversary.begin()
        try:
            progress = partial(_progress, options, agents, adversary, memory, tell)
            with memory.sampled(progress, PROGRESS_SECS):
                outcomes = asyncio.run(_run(config, agents, adversary.part))
        finally:
            adversary.stop()
        gc.collect()
        after = held_in_the_end(before)
        for victim in victims:
            victim.end()
        return judged(
            options,
            agents=agents,
            outcomes=outcomes,
            last=stage.last,
            done=[each.world.done() for each in victims],
            faults=adversary.done,
            memory=memory,
            held=(before, after),
            left=_left(victims),
            logged=complaints,
        )


def _victim(kind: Kind, folder: Path) -> Victim:
    return Victim(kind, folder / kind.name, _free_port() if kind.transport == "http" else None)


def _free_port() -> int:
    """One that nobody is given by chance while our server is down: outgoing connections get higher ones."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port := random.randrange(*PORTS)))
            except OSError:
                continue
            return port


def _crew(options: Options, stage: Stage) -> list[SoakAgent]:
    def share(whole: int, number: int) -> int:
        return whole // options.agents + (number < whole % options.agents)

    return [
        SoakAgent(
            f"agent-{number}",
            options,
            stage,
            calls=share(options.calls, number),
            subscriptions=share(options.subscriptions, number),
        )
        for number in range(options.agents)
    ]


async def _warm_up(config: toolpost.Config) -> None:
    """Each tooling once: what is imported or started for good is there when the counting begins."""
    async with toolpost.open_host(config, trace=False) as host:
        for name in config.tooling:
            await host.tooling.get(name).list_tools()


async def _run(
    config: toolpost.Config, agents: list[SoakAgent], before_the_end: Callable[[], None]
) -> dict[str, str]:
    """The outcome of each agent, as text."""
    # The house itself, and not `run_async`, which keeps a trace: that grows as long as a run lasts.
    core = Core(config, trace=False, extras={})
    await core.open()
    try:
        crew = [
            Agent(each.name, each.in_task if number % IN_THREADS else each.in_thread)
            for number, each in enumerate(agents)
        ]
        outcomes = await core.run_agents(crew, asyncio.Event())
        before_the_end()
        return {name: str(outcome) for name, outcome in outcomes.items()}
    finally:
        await core.close()


def _left(victims: list[Victim]) -> list[int]:
    """The servers that are there though toolpost has ended."""
    return [pid for victim in victims for pid in servers_of(victim.folder)]


def _progress(
    options: Options,
    agents: list[SoakAgent],
    adversary: Adversary,
    memory: Memory,
    tell: Callable[[str], object],
) -> None:
    calls, waiting = sum(each.record.calls for each in agents), sum(len(each.record.open) for each in agents)
    faults = adversary.done.total() - adversary.done["changes"]
    tell(
        f"{calls:,} of {options.calls:,} calls, {waiting} open; {faults} faults; {memory.latest_mib:.0f} MiB"
    )


@contextmanager
def _logged_errors() -> Generator[list[str]]:
    """What toolpost, or the loop that it runs on, logs as an error: nothing that we do to servers is one."""
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(f"logged: {logging.Formatter().format(record)}")

    handler = Handler(logging.ERROR)
    loggers = [logging.getLogger("toolpost"), logging.getLogger("asyncio")]
    for each in loggers:
        each.addHandler(handler)
    try:
        yield found
    finally:
        for each in loggers:
            each.removeHandler(handler)
