"""The application: which commands there are. It only wires; each command has a file of its own."""

from __future__ import annotations

import typer

from toolpost.cli import call, check, run, tools
from toolpost.cli.options import ConfigOption, LevelOption, Shared, VerboseOption, VersionOption

app = typer.Typer(
    name="toolpost",
    add_completion=False,
    no_args_is_help=True,
    # an error's report must not show local variables: they may hold secrets
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def toolpost(
    ctx: typer.Context,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
    version: VersionOption = False,
) -> None:
    """Tool servers for agents: run agents on them, or use them from here.

    Exit status: 0 done, 1 a server, tool or agent failed, 2 usage or config, 130 interrupted.
    """
    ctx.obj = Shared(config=config, verbose=verbose, log_level=log_level)


app.command("run")(run.run)
app.command("check")(check.check)
app.command("tools")(tools.tools)
app.command("call")(call.call)
