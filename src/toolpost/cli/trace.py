"""`toolpost trace FILE`: a run that was written down, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolpost.cli.options import JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, Session
from toolpost.cli.terminal import width, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolpost.trace.events import TraceEvent

EXAMPLES = """
Examples:

toolpost trace run.jsonl

toolpost trace run.jsonl --agent ada

toolpost run --json | toolpost trace -
"""


def trace(
    ctx: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", show_default=False, help="What `run --trace` wrote; - is stdin."),
    ],
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="Only what this agent did.")
    ] = None,
    as_json: JsonOption = False,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Show what happened in a run, one record a line.

    Queued calls and subscriptions are numbered in the order of their opening: #1, #2 and so on.
    """
    Session.of(ctx, None, verbose, log_level).finish(
        lambda session: _trace(session, file, agent=agent, as_json=as_json)
    )


def _trace(session: Session, file: str, *, agent: str | None, as_json: bool) -> int:
    from toolpost.cli.live_trace import json_line, stdout_is_utf8
    from toolpost.trace.table import WIDTH, table

    label = "<stdin>" if file == "-" else file
    records = _read(file, label)
    places = range(len(records)) if agent is None else _places_of(agent, records, label)
    if as_json:
        is_utf8 = stdout_is_utf8()
        write("".join(f"{json_line(records[place], is_utf8=is_utf8)}\n" for place in places))
    elif records:
        lines = table(records, places, width=width() or WIDTH, shows_gaps=False)
        write("".join(f"{line}\n" for line in lines))
    else:
        session.talk.say(f"{label} has no records")
    return DONE


def _read(file: str, label: str) -> list[TraceEvent]:
    from toolpost.errors import UsageError
    from toolpost.trace.file import read_trace

    is_stdin = file == "-"
    try:
        source = 0 if is_stdin else file
        with open(source, encoding="utf-8-sig", newline="\n", closefd=not is_stdin) as lines:
            return read_trace(lines, label)
    except OSError as error:
        raise UsageError(f"{label} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{label} is no text in UTF-8: {error}") from None


def _places_of(agent: str, records: Sequence[TraceEvent], label: str) -> list[int]:
    """Where the agent's records stand.

    Raises:
        UsageError: There are none.
    """
    from toolpost.config.problems import nearest
    from toolpost.errors import UsageError

    agents: list[str | None] = [getattr(each, "agent", None) for each in records]
    found = [place for place, name in enumerate(agents) if name == agent]
    if not found:
        known = nearest(agent, {name for name in agents if name is not None})
        raise UsageError(f"{label} has no agent {agent!r}; it has: {known}")
    return found
