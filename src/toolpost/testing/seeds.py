"""One case under many seeds, until one fails: what passes in one order of events may fail in another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

import msgspec

from toolpost.testing.case import Case
from toolpost.testing.result import Result
from toolpost.trace.events import TraceEvent
from toolpost.trace.log import Trace
from toolpost.trace.table import table

BEFORE = 3
"""Records that are shown before two traces part."""
AFTER = 12
"""Records that are shown from there on."""
WIDTH = 78
"""Columns of one of two traces."""


def run_seeds(
    case: Case, seeds: Sequence[int], run: Callable[[int | None], tuple[Result, Trace]]
) -> tuple[Result, Trace]:
    """Run a case under one seed after the other, until it fails.

    Gives what came of the last one that ran, with the time of all; and where an earlier one passed, the
    report shows the two traces side by side from where they part.

    Args:
        case: What to run. Where it is not simulated, seeds change nothing: it runs once.
        seeds: None at all is the case's own.
        run: Runs it once, as `run_case` does; None is the case's own seed.
    """
    if not seeds or not case.is_simulated:
        return run(None)
    result, trace = run(seeds[0])
    first, count = trace, 1
    seconds, simulated_secs = result.seconds, result.simulated_secs or 0.0
    while result.status == "passed" and not result.is_stuck and count < len(seeds):
        result, trace = run(seeds[count])
        count += 1
        seconds += result.seconds
        simulated_secs += result.simulated_secs or 0.0
    report = result.report
    if result.status == "failed" and count > 1:
        report = "\n".join([*_parting(first, trace, seeds[0], result.seed), "", report])
    whole = msgspec.structs.replace(
        result, report=report, seconds=seconds, simulated_secs=simulated_secs, seeds=count
    )
    return whole, trace


def _parting(
    passed: Sequence[TraceEvent], failed: Sequence[TraceEvent], seed: int, failing_seed: int
) -> Iterator[str]:
    """Two traces beside each other, from a little before their first difference."""
    left, right = table(passed, width=WIDTH)[1:], table(failed, width=WIDTH)[1:]
    parts = next((at for at, pair in enumerate(zip_longest(left, right)) if pair[0] != pair[1]), None)
    yield f"seed {failing_seed} fails, and seed {seed} passes; their traces part at record {parts}"
    start = max(0, (parts or 0) - BEFORE)
    rows = list(zip_longest(left[start:], right[start:], fillvalue=""))[: BEFORE + AFTER]
    wide = max((len(each) for each, _ in rows), default=0)
    yield f"  {f'seed {seed}':<{wide}}   {f'seed {failing_seed}'}"
    for at, (mine, other) in enumerate(rows, start):
        mark = "│" if parts is None or at < parts else "┃"
        yield f"  {mine:<{wide}} {mark} {other}".rstrip()
