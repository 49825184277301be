"""`toolpost call NAME TOOL …`: one call of one tool, its answer on standard output as the tool gave it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolpost.cli.names import complete_tool
from toolpost.cli.options import (
    ConfigOption,
    Direct,
    HttpOption,
    LevelOption,
    OutputOption,
    PassEnvOption,
    StdioOption,
    TokenEnvOption,
    ToolingArgument,
    VerboseOption,
)
from toolpost.cli.session import DONE, FAILED, Session, run_to_end
from toolpost.cli.terminal import one_line, write_json, write_line

if TYPE_CHECKING:
    from toolpost.cli.arguments import Word
    from toolpost.cli.waiting import Waiting
    from toolpost.host.handle import Tooling
    from toolpost.model import JsonObject, Tool, ToolResult
    from toolpost.tooling.port import Progress

EXAMPLES = """
Examples:

toolpost call memory search_nodes query=Ada

toolpost call calendar book guests=2 where.city=Turin tags=food tags=sun

toolpost call images draw prompt=@lathe.md options:='{"size": 512}' -o pictures/

toolpost call --stdio 'npx -y @scope/some-server' get-sum a=2 b=3
"""


_HINTED = 8
"""So many names are told of where one is not known."""


def call(
    ctx: typer.Context,
    name: ToolingArgument = None,
    tool: Annotated[
        str | None,
        typer.Argument(
            metavar="TOOL", help="One of its tools.", autocompletion=complete_tool, show_default=False
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENTS",
            help="key=value, key:=JSON, key=@file ...; or one JSON object; or - for one on stdin.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long the call may take.")
    ] = None,
    output: OutputOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", "--raw", help="Print the whole result as JSON, for programs.")
    ] = False,
    stdio: StdioOption = None,
    http: HttpOption = None,
    token_env: TokenEnvOption = None,
    pass_env: PassEnvOption = None,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Call a tool and print its answer.

    Values have the types of the tool's schema: 2 is a number where it wants one, and a string where it wants
    that. Repeat a key for a list; a.b=1 leads inside. What is missing or wrong is told before the call.

    -o saves images, audio and embedded resources; several go side by side, or into a folder.
    """
    direct = Direct(stdio=stdio, http=http, token_env=token_env, pass_env=pass_env)
    wish = _Wish(timeout=timeout, output=output, as_json=as_json)
    Session.of(ctx, config, verbose, log_level, direct).finish(
        lambda session: _call(session, [name, tool, *(arguments or [])], wish)
    )


@dataclass(frozen=True, kw_only=True)
class _Wish:
    """How the call is to be made, and what is to become of its result."""

    timeout: float | None
    output: str | None
    as_json: bool


def _call(session: Session, words: Sequence[str | None], wish: _Wish) -> int:
    """Everything that can be wrong without a server shows here, and standard input is read."""
    from toolpost.cli.arguments import read_words
    from toolpost.cli.saving import check_target
    from toolpost.errors import UsageError
    from toolpost.host.handle import tool_call

    name, rest = session.target(words)
    if not rest:
        raise UsageError(f"TOOL is missing; `toolpost tools` lists the tools of {name!r}")
    tool, *texts = rest
    given = read_words(texts, config_is_stdin=session.reads_stdin)
    session.check_tooling(name)
    check_target(wish.output)
    tool_call(tool, given if isinstance(given, str) else {}, wish.timeout)
    return run_to_end(lambda: _send(session, name, tool, given, wish))


async def _send(session: Session, name: str, tool: str, given: str | list[Word], wish: _Wish) -> int:
    from toolpost.cli.house import open_house
    from toolpost.cli.waiting import waiting
    from toolpost.model import to_json

    shown: list[Waiting] = []

    def on_progress(progress: Progress) -> None:
        for each in shown:
            each.told(progress)

    async with open_house(session, on_progress=on_progress) as house:
        tooling = house.tooling(name)
        tools = await _list_tools(session, tooling, wish.timeout)
        listed = next((each for each in tools if each.name == tool), None)
        arguments = _fitting(session, listed, name, given)
        hint = "" if listed else _hint(tool, tools)
        async with waiting(session.talk, tool) as line:
            shown.append(line)
            result = await _answer(tooling, tool, arguments, wish.timeout, hint)
        if wish.as_json:
            write_json(to_json(result))
        else:
            _print(session, result, wish.output)
        if wish.output is not None:  # last: what fails here has taken nothing away
            _save(session, result, wish.output)
    if result.is_error and not wish.as_json:
        session.fail(f"tool {result.name!r} reported a failure{hint}")
    return FAILED if result.is_error else DONE


# -- before ----------------------------------------------------------------------------------------


async def _list_tools(session: Session, tooling: Tooling, timeout: float | None) -> list[Tool]:
    """The server's tools; none where it cannot say. The call's own limit holds for this too."""
    import anyio

    from toolpost.errors import RequestTimeout, ServerError

    with anyio.move_on_after(timeout):
        try:
            tools = await tooling.list_tools()
        except ServerError as error:
            session.talk.say(f"note: the arguments are sent unchecked: {one_line(str(error))}")
            return []
        session.remember_tools(tooling.name(), [each.name for each in tools])
        return tools
    raise RequestTimeout(f"tooling {tooling.name()!r}: list_tools: no answer within {timeout:g} s")


def _fitting(
    session: Session, listed: Tool | None, tooling: str, given: str | list[Word]
) -> str | JsonObject:
    """The arguments, in the types of the schema, once it is clear that they fit it.

    Raises:
        UsageError: They do not.
    """
    from toolpost.cli.arguments import build, parsed
    from toolpost.cli.fitting import UnusableSchema, problems
    from toolpost.cli.input_schema import InputSchema
    from toolpost.errors import UsageError

    schema: Any = {} if listed is None else listed.input_schema
    arguments = given if isinstance(given, str) else build(given, InputSchema(schema))
    if listed is None:
        return arguments
    try:
        found = problems(parsed(arguments) if isinstance(arguments, str) else arguments, schema)
    except UnusableSchema as error:
        session.talk.say(f"note: the arguments are sent unchecked: the schema of {listed.name!r}: {error}")
        return arguments
    if found:
        lines = f" {found[0]}" if len(found) == 1 else "\n  ".join(["", *found])
        raise UsageError(f"tooling {tooling!r}: tool {listed.name!r} was not called:{lines}")
    return arguments


def _hint(tool: str, tools: Sequence[Tool]) -> str:
    """What to do about a tool that the server does not list, should it not know it either."""
    from toolpost.config.problems import nearest

    if not tools:
        return ""
    names = nearest(tool, [each.name for each in tools]).split(", ")
    more = "" if len(names) <= _HINTED else f", … ({len(names)}; `toolpost tools` lists them)"
    return f"\n  (the server lists no such tool; nearest first: {', '.join(names[:_HINTED])}{more})"


async def _answer(
    tooling: Tooling, tool: str, arguments: str | JsonObject, timeout: float | None, hint: str
) -> ToolResult:
    from toolpost.errors import ServerError, ToolpostError

    try:
        return await tooling.call_tool_blocking(tool, arguments, timeout=timeout)
    except ServerError as error:
        raise ToolpostError(f"{error}{hint}") from None


# -- after -----------------------------------------------------------------------------------------


def _print(session: Session, result: ToolResult, target: str | None) -> None:
    from toolpost.cli.saving import parts_of

    if result.value:
        write_line(result.value)
    others = [str(block.get("type")) for block in result.content if block.get("type") != "text"]
    saved = 0 if target is None else len(parts_of(result.content))
    if len(others) > saved:
        blocks = "a block that is" if len(others) == 1 else f"{len(others)} blocks that are"
        what = "--json shows everything" if saved else "-o saves, --json shows everything"
        session.talk.say(f"not shown: {blocks} no text ({', '.join(others)}); {what}")


def _save(session: Session, result: ToolResult, target: str) -> None:
    from toolpost.cli.saving import parts_of, save

    parts = parts_of(result.content)
    for file in save(parts, target, result.name):
        session.talk.say(f"saved {file}")
    if not parts:
        session.talk.say("nothing to save: the result holds no image, audio or embedded resource")
