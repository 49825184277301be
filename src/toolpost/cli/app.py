"""The application: which commands there are. It only wires; each command has a file of its own."""

from __future__ import annotations

import typer

from toolpost.cli import (
    call,
    check,
    completion,
    import_,
    init,
    prompts,
    read,
    resources,
    run,
    schema,
    test,
    tools,
    trace,
    wasm,
    watch,
)
from toolpost.cli.light import LightCommand, LightGroup
from toolpost.cli.options import ConfigOption, LevelOption, Shared, VerboseOption, VersionOption

EXAMPLES = """
Examples:

toolpost tools --stdio 'npx -y @modelcontextprotocol/server-memory'

toolpost call memory search_nodes query=Ada

toolpost COMMAND --help
"""

app = typer.Typer(
    name="toolpost",
    cls=LightGroup,
    add_completion=False,
    no_args_is_help=True,
    # an error's report must not show local variables: they may hold secrets
    pretty_exceptions_enable=False,
    epilog=EXAMPLES,
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


app.command("run", epilog=run.EXAMPLES)(run.run)
app.command("test", cls=LightCommand, epilog=test.EXAMPLES)(test.run_tests)
app.command("trace", epilog=trace.EXAMPLES)(trace.trace)
app.command("check", epilog=check.EXAMPLES)(check.check)
app.command("tools", epilog=tools.EXAMPLES)(tools.tools)
app.command("call", epilog=call.EXAMPLES)(call.call)
app.command("resources", epilog=resources.EXAMPLES)(resources.resources)
app.command("read", epilog=read.EXAMPLES)(read.read)
app.command("watch", epilog=watch.EXAMPLES)(watch.watch)
app.command("prompts", epilog=prompts.EXAMPLES)(prompts.prompts)
app.command("init", epilog=init.EXAMPLES)(init.init)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command("schema", epilog=schema.EXAMPLES)(schema.schema)
app.add_typer(wasm.app, name="wasm", epilog=wasm.EXAMPLES)
app.command("completion", epilog=completion.EXAMPLES)(completion.completion)
