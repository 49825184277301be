"""`toolpost tools NAME`: what a server offers."""

from __future__ import annotations

import typer

from toolpost.cli.options import (
    ConfigOption,
    Direct,
    HttpOption,
    JsonOption,
    LevelOption,
    PassEnvOption,
    StdioOption,
    TokenEnvOption,
    ToolingArgument,
    VerboseOption,
)
from toolpost.cli.session import DONE, Session, run_to_end
from toolpost.cli.terminal import table, write_json, write_line

EXAMPLES = """
Examples:

toolpost tools memory

toolpost tools --stdio 'npx -y @modelcontextprotocol/server-everything'
"""


def tools(
    ctx: typer.Context,
    name: ToolingArgument = None,
    as_json: JsonOption = False,
    stdio: StdioOption = None,
    http: HttpOption = None,
    token_env: TokenEnvOption = None,
    pass_env: PassEnvOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """List the tools of a tooling.

    --json gives their schemas too.
    """
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _tools(session, name, as_json=as_json)
    )


def _tools(session: Session, word: str | None, *, as_json: bool) -> int:
    name = session.only_target(word)
    return run_to_end(lambda: _list(session, name, as_json=as_json))


async def _list(session: Session, name: str, *, as_json: bool) -> int:
    from toolpost.cli.house import open_house
    from toolpost.model import to_json
    from toolpost.secret import mask_json

    async with open_house(session) as house:
        found = await house.tooling(name).list_tools()
        session.remember_tools(name, [tool.name for tool in found])
        documents = [mask_json(to_json(tool)) for tool in found]
        if as_json:
            write_json(documents)
        elif documents:
            rows = [(str(each["name"]), str(each.get("description") or "")) for each in documents]
            write_line(table(rows))
        else:
            session.talk.say(f"tooling {name!r} has no tools")
    return DONE
