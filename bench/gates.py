"""What waiting gates cost: ten times the trace must cost ten times, however many gates wait.

Each gate is shown each record once, when it is written. So the time for one record stays the same while the
trace grows, and grows with the number of gates. The gates here never open: that is their dearest case.

    .venv/bin/python bench/gates.py
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

from toolpost.expect.event import EventPattern, parse_event
from toolpost.mock.gates import Gates
from toolpost.trace.events import Call, Inbound, TraceEvent
from toolpost.trace.log import Trace

SIZES = {0: (1_000, 10_000), 100: (200, 2_000), 1_000: (30, 300)}
"""By number of gates, how many records are written: few, and ten times as many."""
ROUNDS = 3
"""The best of them counts: whatever else the machine does can only make one slower."""


@dataclass(frozen=True)
class Measured:
    """What it took to write a trace."""

    gates: int
    records: int
    seconds: float

    @property
    def ns_per_record(self) -> float:
        return self.seconds / self.records * 1e9


def never_open(count: int) -> list[EventPattern]:
    """Gates that look into every call of a tool, and wait for one that nobody makes."""
    return [
        parse_event(
            {"kind": "call", "op": "call_tool", "detail": {"name": "^echo$", "arguments": {"n": -1 - number}}}
        )
        for number in range(count)
    ]


def run_of(count: int) -> Iterator[TraceEvent]:
    """What an agent leaves in the trace that calls and receives by turns."""
    for number in range(count):
        if number % 2:
            yield Inbound(agent="main", id=str(number), event="tool-result", payload={"value": "hi"})
        else:
            detail = {"tooling": "it", "name": "echo", "arguments": {"n": number}}
            yield Call(agent="main", op="call_tool", detail=detail)


def measure(gates: int, records: int) -> Measured:
    """The time to write that many records while that many gates wait."""
    best = float("inf")
    run = list(run_of(records))
    for _ in range(ROUNDS):
        trace = Trace()
        waiting = Gates("it", never_open(gates), trace)
        gc.collect()
        start = time.perf_counter()
        for record in run:
            trace.append(record)
        best = min(best, time.perf_counter() - start)
        assert not any(map(waiting.is_open, never_open(gates)))
    return Measured(gates, records, best)


def main() -> None:
    """Print a line for each size; `ratio` is to the line before, which has a tenth of the records."""
    print(f"{'gates':>6} {'records':>8} {'seconds':>9} {'ns per record':>14} {'ratio':>7}")
    for gates, sizes in SIZES.items():
        before: Measured | None = None
        for records in sizes:
            now = measure(gates, records)
            ratio = "" if before is None else f"{now.seconds / before.seconds:.1f}"
            print(f"{gates:>6} {records:>8} {now.seconds:>9.4f} {now.ns_per_record:>14.0f} {ratio:>7}")
            before = now


if __name__ == "__main__":
    main()
