"""`toolpost test PATH…`: cases from test files, each judged."""

from __future__ import annotations

from typing import Annotated

import typer

from toolpost.cli.options import JsonOption, LevelOption, VerboseOption
from toolpost.cli.plan import Plan
from toolpost.cli.session import Session

EXAMPLES = """
Examples:

toolpost test

toolpost test tests/agents -k '*order*' -x

toolpost test --junit report.xml --trace-dir traces

toolpost test --seeds 200

toolpost test --watch
"""


def run_tests(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            show_default=False,
            help="A test file, or a folder: every *.test.toml in it. Default: this folder.",
        ),
    ] = None,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "-k",
            metavar="GLOB",
            show_default=False,
            help="Only files of such a path or name; repeat for more.",
        ),
    ] = None,
    unwanted: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="GLOB", show_default=False, help="No files of such a path or name."
        ),
    ] = None,
    fails_fast: Annotated[
        bool, typer.Option("-x", "--fail-fast", help="Stop at the first that does not pass.")
    ] = False,
    is_shown: Annotated[
        bool,
        typer.Option(
            "-s",
            "--show-output",
            help="Show what agents print at once; at a terminal, breakpoint() works and no time is up.",
        ),
    ] = False,
    watches: Annotated[
        bool, typer.Option("--watch", help="Stay, and run again what a change touches.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            show_default=False,
            help="Another order of what happens at one simulated instant.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            show_default=False,
            help="Each test under the seeds 0 to N-1, up to one that fails.",
        ),
    ] = None,
    as_json: JsonOption = False,
    junit: Annotated[
        str | None, typer.Option(metavar="FILE", show_default=False, help="Write JUnit XML too, for CI.")
    ] = None,
    trace_dir: Annotated[
        str | None,
        typer.Option(metavar="DIR", show_default=False, help="Write each test's trace to a file there."),
    ] = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Run tests of agents: files that are a config, and say what is expected of its agents.

    Each runs in a fresh host; none can hurt this process. Ctrl-C ends --watch with the latest status.

    Exit status: 0 all passed, 1 some failed, 2 some could not be run, or there are none.
    """
    plan = Plan(
        paths=paths or ["."],
        wanted=wanted or [],
        unwanted=unwanted or [],
        fails_fast=fails_fast,
        is_shown=is_shown,
        as_json=as_json,
        junit=junit,
        trace_dir=trace_dir,
        watches=watches,
        seed=seed,
        seeds=seeds,
    )
    Session.of(ctx, None, verbose, log_level).finish(lambda session: _test(session, plan))


def _test(session: Session, plan: Plan) -> int:
    from toolpost.cli.rounds import run_once, watch

    return watch(session, plan) if plan.watches else run_once(session, plan)
