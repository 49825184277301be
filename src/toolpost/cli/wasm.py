"""`toolpost wasm`: agents as WebAssembly components, built and looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolpost.cli.light import LightGroup
from toolpost.cli.options import JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session
from toolpost.cli.terminal import write_json, write_line

EXAMPLES = """
Examples:

toolpost wasm build agent.py

toolpost wasm inspect agent.wasm
"""
BUILD_EXAMPLES = """
Examples:

toolpost wasm build agent.py

toolpost wasm build brain/agent.py -o brain.wasm
"""
INSPECT_EXAMPLES = """
Examples:

toolpost wasm inspect agent.wasm

toolpost wasm inspect agent.wasm --json
"""

app = typer.Typer(cls=LightGroup, no_args_is_help=True)


@app.callback()
def wasm() -> None:
    """Build an agent as a sandboxed WebAssembly component (a guest), or look at one."""


@app.command("build", epilog=BUILD_EXAMPLES)
def build(
    ctx: typer.Context,
    agent: Annotated[Path, typer.Argument(metavar="FILE", help="The agent, a Python file with `run`.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            show_default=False,
            help="The component; default: FILE with .wasm.",
        ),
    ] = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Make a guest of an agent in Python.

    Takes componentize-py, and about ten seconds. Modules beside FILE that it imports go in.

    A component that is there already is replaced.
    """
    Session.of(ctx, None, verbose, log_level).finish(lambda session: _build(session, agent, out))


def _build(session: Session, agent: Path, out: Path | None) -> int:
    from toolpost.wasm.build import build

    made = out or agent.parent / f"{agent.stem}.wasm"
    build(agent, made)
    session.talk.say(f"built {made}, {made.stat().st_size:,} bytes")
    return DONE


@app.command("inspect", epilog=INSPECT_EXAMPLES)
def inspect(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A component.")],
    as_json: JsonOption = False,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Show a component's imports, exports and size, and whether this host runs it.

    Exit status 1 if it does not.
    """
    Session.of(ctx, None, verbose, log_level).finish(lambda _: _inspect(file, as_json=as_json))


def _inspect(file: Path, *, as_json: bool) -> int:
    from toolpost.wasm.inspect import for_people, inspect

    described = inspect(file)
    if as_json:
        write_json(described)
    else:
        write_line(for_people(described))
    return FAILED if described["problems"] else DONE
