"""`toolpost resources NAME`: what a server has to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    from toolpost.host.handle import Tooling
    from toolpost.model import JsonObject

EXAMPLES = """
Examples:

toolpost resources memory

toolpost resources everything --templates
"""


def resources(
    ctx: typer.Context,
    name: ToolingArgument = None,
    templates: Annotated[
        bool, typer.Option("--templates", help="List the patterns of URIs instead, such as file:///{path}.")
    ] = False,
    as_json: JsonOption = False,
    stdio: StdioOption = None,
    http: HttpOption = None,
    token_env: TokenEnvOption = None,
    pass_env: PassEnvOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """List the resources of a tooling.

    `toolpost read` shows one, `toolpost watch` tells of changes.
    """
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _resources(session, name, templates=templates, as_json=as_json)
    )


def _resources(session: Session, word: str | None, *, templates: bool, as_json: bool) -> int:
    name = session.only_target(word)
    return run_to_end(lambda: _list(session, name, templates=templates, as_json=as_json))


async def _list(session: Session, name: str, *, templates: bool, as_json: bool) -> int:
    from toolpost.cli.house import open_house
    from toolpost.model import to_json
    from toolpost.secret import mask_json

    async with open_house(session) as house:
        tooling = house.tooling(name)
        if templates:
            documents = await _templates(tooling)
        else:
            documents = [to_json(each) for each in await tooling.list_resources()]
        documents = [mask_json(each) for each in documents]
        if as_json:
            write_json(documents)
        elif documents:
            write_line(table([row(each) for each in documents]))
        else:
            what = "resource templates" if templates else "resources"
            session.talk.say(f"tooling {name!r} has no {what}")
    return DONE


async def _templates(tooling: Tooling) -> list[JsonObject]:
    from toolpost.cli.pages import fields, list_all

    found = await list_all(tooling, "resources/templates/list", "resourceTemplates")
    return [
        fields(
            each,
            uri_template="uriTemplate",
            name="name",
            title="title",
            description="description",
            mime_type="mimeType",
        )
        for each in found
    ]


def row(resource: JsonObject) -> tuple[str, str, str]:
    """A resource or a template: its URI, its type, and what it is."""
    uri = str(resource.get("uri") or resource.get("uri_template"))
    said = str(resource.get("description") or resource.get("title") or resource.get("name") or "")
    return uri, str(resource.get("mime_type") or ""), said
