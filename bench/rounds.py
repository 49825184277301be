"""Rounds by turns: each client once on each transport, in an order that changes with every round."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.cell import Figures, What
from bench.cells import ENVIRONMENTS, TRANSPORTS, CellFailed, measure, python_of
from bench.summary import BASE, OURS, Summary

CLIENTS = (OURS, f"{OURS}:untraced", *ENVIRONMENTS, "raw")
QUICK_CLIENTS = (OURS, BASE, "raw")
THREADED = (OURS, BASE)


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    clients: Sequence[str]
    rounds: int
    seconds: float
    """The length of each timed phase."""
    updates: int


class Progress:
    """Says on stderr what is done, and when."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._begun:4.0f} s] {text}", file=sys.stderr, flush=True)


def run(plan: Plan, progress: Progress) -> Summary:
    """Measure every cell of every round."""
    summary = Summary(about=about(plan.clients))
    clients: list[str] = []
    for client in plan.clients:
        if python_of(client) is not None:
            clients.append(client)
        else:
            summary.notes.append(f"{client} is left out: it is not installed (`make peers` says why)")
            progress.say(summary.notes[-1])
    for number in range(plan.rounds):
        summary.rounds.append({})
        for transport in TRANSPORTS:
            for client in _turned(clients, number):
                _measure_client(summary, client, transport, plan, progress)
    return summary


def _turned(clients: list[str], number: int) -> list[str]:
    """Another one begins each time, and every other time they come backwards."""
    first = number % len(clients)
    turned = clients[first:] + clients[:first]
    return turned[::-1] if number % 2 else turned


def _measure_client(summary: Summary, client: str, transport: str, plan: Plan, progress: Progress) -> None:
    number = len(summary.rounds)
    kinds: list[What] = ["cold", "rates"]
    if client in THREADED:
        kinds.append("threads")
    for what in kinds:
        try:
            figures = measure(
                client,
                transport,
                what,
                seconds=plan.seconds,
                updates=plan.updates,
                counts_connections=transport == "sse" and number == 1,  # exact: once is enough
            )
        except CellFailed as error:
            summary.notes.append(f"{client}, {transport}, {what}, round {number}: {error}")
            progress.say(summary.notes[-1])
            continue
        summary.add(transport, client, figures)
        progress.say(f"round {number} of {plan.rounds}, {transport}, {client}: {_told(figures)}")


def _told(figures: Figures) -> str:
    if "cold_ms" in figures:
        return f"first result after {figures['cold_ms']:,.0f} ms"
    name = "many" if "many_per_s" in figures else "threads"
    return f"{figures[f'{name}_per_s']:,.0f} calls/s, {figures[f'{name}_cpu_us']:,.0f} µs CPU per call"


def about(clients: Sequence[str]) -> dict[str, str]:
    """The machine, named only by its cores, and what was measured on it."""
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    known = {"cores": str(os.cpu_count()), "Python": platform.python_version(), "Node.js": node}
    for client in clients:
        distribution = ENVIRONMENTS.get(client)
        if distribution is not None and (python := python_of(client)) is not None:
            name = {"sdk": "mcp", "pydantic-ai": "pydantic-ai-slim"}.get(distribution, distribution)
            known[name] = _version(str(python), name)
    return known


def _version(python: str, distribution: str) -> str:
    program = "from importlib.metadata import version as v; import sys; print(v(sys.argv[1]), v('mcp'))"
    done = subprocess.run([python, "-c", program, distribution], capture_output=True, text=True, check=True)
    own, _, sdk = done.stdout.strip().partition(" ")
    return own if distribution == "mcp" else f"{own} (on mcp {sdk})"
