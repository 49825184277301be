"""`toolpost run`: the config's agents, side by side, to their ends."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from toolpost.cli import interrupts
from toolpost.cli.options import ConfigOption, JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session
from toolpost.cli.terminal import OutputLost, printable

if TYPE_CHECKING:
    from toolpost.cli.live_trace import LiveTrace
    from toolpost.config import Config
    from toolpost.host.host import RunReport
    from toolpost.trace.log import Trace


EXAMPLES = """
Examples:

toolpost run

toolpost run --trace run.jsonl

toolpost run --simulate --seed 7

toolpost run -c night.toml --json | jq -c .kind
"""


def run(
    ctx: typer.Context,
    as_json: JsonOption = False,
    trace: Annotated[
        str | None,
        typer.Option(metavar="FILE", show_default=False, help="Write the trace to this file, live."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="In virtual time: mocks only, nothing is waited for.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            show_default=False,
            help="With --simulate: another order of what is ready at once.",
        ),
    ] = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Run the agents of the config, side by side, to their ends.

    --json prints the trace, live, one object a line; what agents print goes to stderr then.
    --trace FILE keeps it: `toolpost trace FILE` shows it as a table.
    """
    Session.of(ctx, config, verbose, log_level).finish(
        lambda session: _run(session, Plan(as_json=as_json, file=trace, simulate=simulate, seed=seed))
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The options of one invocation."""

    as_json: bool
    file: str | None
    simulate: bool
    seed: int | None


def _run(session: Session, plan: Plan) -> int:
    from toolpost.cli.live_trace import printed_trace, saved_trace
    from toolpost.errors import UsageError

    file = plan.file
    if plan.seed is not None and not plan.simulate:
        raise UsageError("--seed is for a simulated run; add --simulate")

    def tell(error: Exception) -> None:
        session.fail(f"the trace in {file!r} is not whole: {getattr(error, 'strerror', None) or error}")

    config = session.config()
    with ExitStack() as stack:
        saved = None if file is None else stack.enter_context(saved_trace(file, on_lost=tell))
        printed = stack.enter_context(printed_trace()) if plan.as_json else None
        writers = [each for each in (saved, printed) if each is not None]
        _print_by_line()
        status = _told(session, _report(config, plan, writers, printed))
        for each in writers:
            each.close()
    if printed is not None and printed.error is not None:
        raise _lost(printed.error)
    return FAILED if status == DONE and saved is not None and saved.error is not None else status


def _report(config: Config, plan: Plan, writers: Sequence[LiveTrace], printed: LiveTrace | None) -> RunReport:
    """Run the agents. A reader of the printed trace that leaves ends the run, as it does any program's."""
    import asyncio

    from toolpost.host.host import new_runner, run_async

    def start(trace: Trace) -> None:
        for each in writers:
            each.start(trace)

    async def run_and_write() -> RunReport:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(_error: Exception) -> None:
            loop.call_soon_threadsafe(task.cancel)

        with nullcontext() if printed is None else printed.telling(end):
            return await run_async(config, on_trace=start, handle_signals=True)

    try:
        with new_runner(simulate=plan.simulate, seed=plan.seed or 0) as runner:
            return runner.run(run_and_write())
    except asyncio.CancelledError:
        if printed is None or printed.error is None:
            raise
        raise _lost(printed.error) from None


def _lost(error: Exception) -> Exception:
    return OutputLost(error) if isinstance(error, OSError) else error


def _told(session: Session, report: RunReport) -> int:
    """Tell how each agent ended; gives the exit status."""
    for name, outcome in report.outcomes.items():
        style = "31" if outcome.kind == "failed" else "32"
        kind, _, text = str(outcome).partition(": ")
        said = f": {printable(text)}" if text else ""
        session.talk.say(f"agent {name!r} {session.talk.paint(kind, style)}{said}")
    if report.interrupted:
        session.fail("the agents were shut down", label="interrupted")
        return interrupts.STATUS
    failed = any(outcome.kind == "failed" for outcome in report.outcomes.values())
    return FAILED if failed else DONE


def _print_by_line() -> None:
    """What agents print is read while they run, on a pipe too."""
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(line_buffering=True)
