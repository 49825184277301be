"""Gates: steps that wait until something has been seen in the run, by any agent, at any time.

All gates of a tooling are known before the first agent starts, so they go along with the trace from its
beginning: a new record is shown to those that are still closed, and nothing is ever scanned again. Gates
look and consume nothing; equal ones are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from toolpost.expect.event import EventPattern
from toolpost.secret import get_logger
from toolpost.trace.events import TraceEvent
from toolpost.trace.log import Trace

_log = get_logger("toolpost.mock")


class Gates:
    """The gates of one tooling."""

    def __init__(self, tooling: str, patterns: Iterable[EventPattern], trace: Trace | None) -> None:
        self._tooling = tooling
        self._has_trace = trace is not None
        self._warned = False
        self._closed = {pattern: anyio.Event() for pattern in dict.fromkeys(patterns)}
        self._detach: Callable[[], None] = lambda: None
        for record in trace or ():
            self._see(record)
        if trace is not None and self._closed:
            self._detach = trace.tap(self._see)

    async def wait(self, gate: EventPattern | None) -> None:
        """Wait until a gate is open; None is no gate."""
        if gate is None:
            return
        if not self._has_trace:
            self._warn()
            return
        if (opened := self._closed.get(gate)) is not None:
            await opened.wait()

    def is_open(self, gate: EventPattern) -> bool:
        """Whether what the gate waits for has been seen."""
        return not self._has_trace or gate not in self._closed

    def _see(self, record: TraceEvent) -> None:
        opened = [gate for gate in self._closed if gate.matches(record)]
        for gate in opened:
            self._closed.pop(gate).set()
        if not self._closed:
            self._detach()

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            _log.warning(
                "tooling %r: there is no trace to wait on (trace=False), so its gates are open", self._tooling
            )
