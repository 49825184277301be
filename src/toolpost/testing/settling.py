"""Agents that are expected to be `asserted`: each is stopped once all of its events have happened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from toolpost.expect.assertions import Expectations
from toolpost.host.agents import ASSERTED
from toolpost.host.core import Core
from toolpost.trace.events import TraceEvent


@contextmanager
def settling(core: Core, expectations: Iterable[Expectations]) -> Generator[None]:
    """Follow the trace of a house, from before its first agent starts. On its loop."""
    asserted = [each for each in expectations if each.outcome is not None and each.outcome.kind == "asserted"]
    detach = [_stop_once_settled(core, each) for each in asserted]
    try:
        yield
    finally:
        for each in detach:
            each()


def _stop_once_settled(core: Core, expected: Expectations) -> Callable[[], None]:
    cursor, loop = expected.follow(), asyncio.get_running_loop()
    assert core.trace is not None, "a case is always recorded"

    def see(record: TraceEvent) -> None:
        if expected.concerns(record) and cursor.take(record) and cursor.unmet is None:
            detach()
            # behind the call that is under way, and before any other that the agent can make
            loop.call_soon(core.end_agent, expected.agent, ASSERTED)

    detach = core.trace.tap(see)
    return detach
