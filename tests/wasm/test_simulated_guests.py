"""The random runs of tests/host/test_simulated_runs.py, with guests as their sync agents.

A guest is a puppet: all that it does is what its part in the run says, so the part sees what the guest got.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import HealthCheck, given, settings

import toolpost
from tests.host.test_simulated_runs import SOAK, Part, Plan, Program, Run, plans
from tests.host.test_simulated_runs import _quiet as _quiet  # pyright: ignore[reportPrivateUsage]: a fixture
from toolpost.config import Sandbox, load_config
from toolpost.host.agents import Agent
from toolpost.host.sync import SyncHost
from toolpost.wasm.engine import compiled
from toolpost.wasm.guest import Guest

EXAMPLES = 60


class Strings(SyncHost):
    """The host of a puppet."""

    def __init__(self, host: SyncHost, part: Part) -> None:
        vars(self).update(vars(host))
        self._mcp = host.tooling.get("mcp")
        self._end = part.program.end
        self._acting = part.act()
        self.tooling: Any = SimpleNamespace(get=self._get)
        self._told: dict[str, Any] = {}
        self._go_on(partial(next, self._acting))

    @property
    def params(self) -> dict[str, Any]:
        return {"act": "puppet", **self._told}

    def _get(self, name: str) -> object:
        if name != "mcp":
            came = json.loads(name, object_hook=as_value)
            is_error = isinstance(came, toolpost.ToolpostError)
            self._go_on(partial(self._acting.throw if is_error else self._acting.send, came))
        return self._mcp

    def _go_on(self, step: Callable[[], object]) -> None:
        try:
            self._told = {"call": step()}
        except StopIteration:
            self._told = {"end": self._end}


def as_value(told: dict[str, Any]) -> object:
    """What a puppet got, as far as its part looks at it."""
    match told:
        case {"error": kind, "text": text}:
            error: type[Exception] = getattr(toolpost, kind)
            return error.__new__(error, text)
        case {"is": "Shutdown"}:
            return toolpost.Shutdown()
        case {"is": _}:
            return SimpleNamespace(**told)
        case _:
            return told


class GuestPart(Part):
    """One agent of a run: a guest, where it would be a thread."""

    def __init__(self, name: str, program: Program, run: Run, troupe: Path) -> None:
        super().__init__(name, program, run)
        self._guest = Guest(name, compiled(troupe), Sandbox())

    def agent(self) -> Agent:
        if self.program.is_async:
            return super().agent()
        return Agent(self.name, self._in_guest, limit=self._guest.limit)

    def _in_guest(self, host: SyncHost) -> str | None:
        return self._guest(Strings(host, self))


@settings(max_examples=EXAMPLES * SOAK, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans)
def test_a_run_with_guests_keeps_every_promise_and_is_the_same_as_with_agents_in_python(
    plan: Plan, troupe: Path
) -> None:
    config = load_config(plan.config())
    run = Run(plan, config, partial(GuestPart, troupe=troupe))
    trace = run.play()
    run.check()

    assert Run(plan, config).play() == trace
