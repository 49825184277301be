"""`toolpost tools NAME`: what a server offers."""

from __future__ import annotations

from typing import Annotated

import typer

from toolpost.cli.options import ConfigOption, JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, Session, run_to_end
from toolpost.cli.terminal import table, write_json, write_line


def tools(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A tooling of the config.")],
    as_json: JsonOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """List the tools of a tooling."""
    Session.of(ctx, config, verbose, log_level).finish(lambda session: _tools(session, name, as_json=as_json))


def _tools(session: Session, name: str, *, as_json: bool) -> int:
    session.check_tooling(name)
    return run_to_end(lambda: _list(session, name, as_json=as_json))


async def _list(session: Session, name: str, *, as_json: bool) -> int:
    from toolpost.cli.house import open_house
    from toolpost.model import to_json
    from toolpost.secret import mask_json

    async with open_house(session) as house:
        found = await house.tooling(name).list_tools()
        documents = [mask_json(to_json(tool)) for tool in found]
        if as_json:
            write_json(documents)
        elif documents:
            rows = [(str(each["name"]), str(each.get("description") or "")) for each in documents]
            write_line(table(rows))
        else:
            session.talk.say(f"tooling {name!r} has no tools")
    return DONE
