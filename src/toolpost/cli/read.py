"""`toolpost read NAME URI`: the content of one resource."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolpost.cli.options import (
    ConfigOption,
    Direct,
    HttpOption,
    JsonOption,
    LevelOption,
    OutputOption,
    PassEnvOption,
    StdioOption,
    TokenEnvOption,
    ToolingArgument,
    VerboseOption,
)
from toolpost.cli.session import DONE, Session, run_to_end
from toolpost.cli.terminal import printable, write_bytes, write_json, write_line

if TYPE_CHECKING:
    from toolpost.cli.saving import Part
    from toolpost.host.handle import Tooling
    from toolpost.model import ResourceContent

EXAMPLES = """
Examples:

toolpost read memory memory://knowledge-graph

toolpost read everything demo://resource/dynamic/blob/1 -o blob.gz

toolpost read memory memory://knowledge-graph | jq .entities
"""


def read(
    ctx: typer.Context,
    name: ToolingArgument = None,
    uri: Annotated[
        str | None,
        typer.Argument(metavar="URI", help="One of its resources.", show_default=False),
    ] = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
    stdio: StdioOption = None,
    http: HttpOption = None,
    token_env: TokenEnvOption = None,
    pass_env: PassEnvOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Print the content of a resource.

    To a pipe or a file it goes byte by byte; a terminal gets text only, in colours where the type is known.
    -o - sends it to standard output as it is, terminal or not.
    """
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _read(session, [name, uri], output=output, as_json=as_json)
    )


def _read(session: Session, words: Sequence[str | None], *, output: str | None, as_json: bool) -> int:
    from toolpost.cli.saving import check_target
    from toolpost.errors import UsageError

    name, rest = session.target(words)
    if len(rest) != 1:
        missing = f"URI is missing; `toolpost resources` lists the resources of {name!r}"
        raise UsageError(f"{rest[1]!r} is one word too many" if rest else missing)
    if output is not None and as_json:
        raise UsageError("-o and --json are two ways out; give one of them")
    session.check_tooling(name)
    check_target(None if output == "-" else output)
    return run_to_end(lambda: _send(session, name, rest[0], output=output, as_json=as_json))


async def _send(session: Session, name: str, uri: str, *, output: str | None, as_json: bool) -> int:
    from toolpost.cli.house import open_house
    from toolpost.cli.waiting import waiting
    from toolpost.model import to_json

    async with open_house(session) as house:
        await house.describe(name)  # connects, which has a line of progress of its own
        async with waiting(session.talk, f"reading {uri}"):
            content = await _content(house.tooling(name), uri)
        if as_json:
            write_json(to_json(content))
        else:
            deliver(session, content, output)
    return DONE


async def _content(tooling: Tooling, uri: str) -> ResourceContent:
    from toolpost.errors import ResourceNotFound, ToolpostError

    try:
        return await tooling.read_resource(uri)
    except ResourceNotFound as error:
        hint = "`toolpost resources` lists what there is; with --templates, patterns of more"
        raise ToolpostError(f"{error}\n  ({hint})") from None


def deliver(session: Session, content: ResourceContent, output: str | None) -> None:
    """Where the content belongs: to a file, to a pipe as it is, or to a terminal for people.

    Raises:
        UsageError: It is binary, and a terminal would show it.
    """
    from toolpost.cli.saving import contents_of, save
    from toolpost.errors import UsageError

    parts = [_part(content), *contents_of(content.parts)]
    if output is not None and output != "-":
        for file in save(parts, output, "resource"):
            session.talk.say(f"saved {file}")
        return
    if sys.stdout.isatty() and output is None:
        if content.encoding == "base64":
            raise UsageError(
                f"resource {content.uri!r} is binary ({content.mime_type or 'of unknown type'},"
                f" {len(parts[0].data)} bytes), and no terminal shows that;"
                " save it with -o FILE, or send it through a pipe"
            )
        _show(content)
    else:
        write_bytes(parts[0].data)
    if len(parts) > 1:
        session.talk.say(
            f"the first of {len(parts)} contents; -o FOLDER/ saves each, --json shows all of them"
        )


def _part(content: ResourceContent) -> Part:
    from toolpost.cli.saving import Part, decoded

    if content.encoding == "base64":
        return Part(decoded(content.content), content.mime_type, content.uri)
    return Part(content.content.encode("utf-8", "surrogatepass"), content.mime_type, content.uri)


def _show(content: ResourceContent) -> None:
    from toolpost.cli.highlight import highlighted

    # a file's own escape sequences must not move this terminal's cursor
    text = printable(content.content)
    write_line(highlighted(text, mime_type=content.mime_type, uri=content.uri))
