"""One case under many seeds, until one fails: what passes in one order of events may fail in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

from toolpost.errors import ConfigError
from toolpost.testing.case import Case
from toolpost.testing.report import could_not_run
from toolpost.testing.result import Result
from toolpost.testing.run import OnStuck, run_case
from toolpost.trace.events import TraceEvent
from toolpost.trace.log import Trace
from toolpost.trace.table import table

BEFORE = 3
"""Records that are shown before two traces part."""
AFTER = 12
"""Records that are shown from there on."""
WIDTH = 78
"""Columns of one of two traces."""


def run_seeds(case: Case, seeds: Sequence[int], *, on_stuck: OnStuck | None = None) -> tuple[Result, Trace]:
    """Run a case under one seed after the other, until it fails.

    Gives what `run_case` does for the last one that ran, with the time of all; and where an earlier one
    passed, the report shows the two traces side by side from where they part.

    Args:
        case: What to run. It must be simulated, or the seeds would change nothing: else that is an error.
        seeds: At least one.
        on_stuck: As for `run_case`.
    """
    if not case.is_simulated:
        return could_not_run(case.name, ConfigError([f"{case.name}: {_why_real(case)}"])), Trace()
    result, trace = run_case(case, seed=seeds[0], on_stuck=on_stuck)
    seconds, simulated_secs = result.seconds, result.simulated_secs or 0.0
    first, ran = trace, 1
    for seed in seeds[1:]:
        if result.status != "passed" or result.is_stuck:
            break
        result, trace = run_case(case, seed=seed, on_stuck=on_stuck)
        seconds, simulated_secs, ran = (
            seconds + result.seconds,
            simulated_secs + (result.simulated_secs or 0),
            ran + 1,
        )
    report = result.report
    if result.status == "failed" and ran > 1:
        report = "\n".join([*_parting(first, trace, seeds[0], result.seed), "", report])
    return msgspec.structs.replace(
        result, report=report, seconds=seconds, simulated_secs=simulated_secs, seeds=ran
    ), trace


def _why_real(case: Case) -> str:
    if case.settings.clock == "real":
        return 'seeds change nothing where clock = "real"; leave that out of [test]'
    names = ", ".join(map(repr, case.config.real_toolings))
    return f"seeds change nothing in a run with real toolings, and these are: {names}"


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
