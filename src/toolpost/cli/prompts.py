"""`toolpost prompts NAME`: the prompts that a server offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from toolpost.model import JsonObject

EXAMPLES = """
Examples:

toolpost prompts everything

toolpost prompts everything --json | jq -r '.[].name'
"""


def prompts(
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
    """List the prompts of a tooling, with their arguments."""
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _prompts(session, name, as_json=as_json)
    )


def _prompts(session: Session, word: str | None, *, as_json: bool) -> int:
    name = session.only_target(word)
    return run_to_end(lambda: _list(session, name, as_json=as_json))


async def _list(session: Session, name: str, *, as_json: bool) -> int:
    from toolpost.cli.house import open_house
    from toolpost.cli.pages import fields, list_all
    from toolpost.secret import mask_json

    async with open_house(session) as house:
        found = await list_all(house.tooling(name), "prompts/list", "prompts")
        documents = [
            mask_json(
                fields(each, name="name", title="title", description="description", arguments="arguments")
            )
            for each in found
        ]
        if as_json:
            write_json(documents)
        elif documents:
            write_line(table([row(each) for each in documents]))
        else:
            session.talk.say(f"tooling {name!r} has no prompts")
    return DONE


def row(prompt: JsonObject) -> tuple[str, str]:
    """A prompt as `name city [country]`, and what it is for."""
    from toolpost.cli.pages import objects

    words = [str(prompt.get("name"))]
    for argument in objects(prompt.get("arguments")):
        name = str(argument.get("name"))
        words.append(name if argument.get("required") is True else f"[{name}]")
    return " ".join(words), str(prompt.get("description") or prompt.get("title") or "")
