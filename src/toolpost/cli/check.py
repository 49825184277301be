"""`toolpost check`: is the config right, and, with `--connect`, do its servers answer?"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolpost.cli.options import ConfigOption, JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session, run_to_end
from toolpost.cli.terminal import table, write, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from toolpost.cli.house import House
    from toolpost.config import AgentConfig, Config, ToolingConfig
    from toolpost.model import JsonObject


EXAMPLES = """
Examples:

toolpost check

toolpost check --connect

toolpost check --connect --json | jq '.toolings | map_values(.error)'
"""


def check(
    ctx: typer.Context,
    connect: Annotated[bool, typer.Option("--connect", help="Connect to every server too.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Check the config and show what is in it.

    --connect asks every server, side by side: what it is, what it can do, how long it took.
    """
    Session.of(ctx, config, verbose, log_level).finish(
        lambda session: _check(session, connect=connect, as_json=as_json)
    )


def _check(session: Session, *, connect: bool, as_json: bool) -> int:
    from toolpost.secret import mask_json

    document = _described(session.config())
    is_live = connect and not as_json and sys.stdout.isatty() and bool(document["toolings"])
    if is_live:
        write(_heading(mask_json(document)))
        run_to_end(lambda: _connect_live(session, document["toolings"]))
    elif connect:
        run_to_end(lambda: _connect_all(session, document["toolings"], news=_nothing))
    document = mask_json(document)
    if as_json:
        write_json(document)
    else:
        write(_agents(document) if is_live else _for_people(document))
    failed = [name for name, tooling in document["toolings"].items() if "error" in tooling]
    if failed and not as_json:
        session.fail(f"{len(failed)} of {len(document['toolings'])} toolings cannot be used")
    return FAILED if failed else DONE


# -- what is in it ---------------------------------------------------------------------------------


def _described(config: Config) -> JsonObject:
    return {
        "config": config.label,
        "toolings": {name: _tooling(each) for name, each in config.tooling.items()},
        "agents": {name: _agent(each, config.folder) for name, each in config.agents.items()},
        "warnings": config.warnings,
    }


def _tooling(tooling: ToolingConfig) -> JsonObject:
    transport: Any = getattr(tooling.params, "transport", None)
    return {"kind": tooling.kind.name} | ({"transport": transport} if isinstance(transport, str) else {})


def _agent(agent: AgentConfig, folder: Path) -> JsonObject:
    if agent.script is None:
        program = {"entry": agent.entry}
    else:
        inside = agent.script.is_relative_to(folder)
        program = {"script": str(agent.script.relative_to(folder) if inside else agent.script)}
    return program | ({} if agent.toolings is None else {"toolings": agent.toolings})


# -- whether the servers answer --------------------------------------------------------------------


async def _connect_live(session: Session, toolings: dict[str, JsonObject]) -> int:
    from toolpost.cli.overview import live
    from toolpost.secret import mask_json

    shown: dict[str, JsonObject] = dict(toolings)

    def news() -> None:
        shown.update({name: mask_json(each) for name, each in toolings.items()})
        draw()

    with live(session, shown) as draw:
        return await _connect_all(session, toolings, news=news)


async def _connect_all(session: Session, toolings: dict[str, JsonObject], *, news: Callable[[], None]) -> int:
    """Connect to all side by side, and add to each what came of it."""
    import anyio

    from toolpost.cli.house import open_house

    async def connect(name: str, tooling: JsonObject) -> None:
        await _connect(session, house, name, tooling)
        news()

    async with (
        open_house(session, shows_dials=news is _nothing) as house,
        anyio.create_task_group() as tasks,
    ):
        for name, tooling in toolings.items():
            tasks.start_soon(connect, name, tooling)
    return DONE


def _nothing() -> None: ...


async def _connect(session: Session, house: House, name: str, tooling: JsonObject) -> None:
    from toolpost.errors import ToolpostError

    start = time.perf_counter()
    try:
        described = await house.describe(name)
        handle = house.tooling(name)
        tools = await handle.list_tools()
        resources = await handle.list_resources()
        took = round((time.perf_counter() - start) * 1000)
        counts = {"tools": len(tools), "resources": len(resources), "milliseconds": took}
        tooling.update(described | counts)
        session.remember_tools(name, [each.name for each in tools])
    except ToolpostError as error:
        tooling["error"] = str(error)
    except Exception as error:  # of a kind that is not ours; the others are still told of
        tooling["error"] = f"tooling {name!r}: {type(error).__name__}: {error}"


# -- for people ------------------------------------------------------------------------------------


def _for_people(document: JsonObject) -> str:
    from toolpost.cli.overview import kind_of, told

    toolings: dict[str, JsonObject] = document["toolings"]
    rows = [(name, kind_of(each), told(each)) for name, each in toolings.items()]
    listed = f"\ntoolings\n{table(rows, indent=2)}\n" if rows else ""
    return f"{_heading(document)}{listed}{_agents(document)}"


def _heading(document: JsonObject) -> str:
    return f"{document['config']}: good\n"


def _agents(document: JsonObject) -> str:
    agents: dict[str, JsonObject] = document["agents"]
    rows = [
        (name, each.get("script") or each.get("entry") or "", _grant(each)) for name, each in agents.items()
    ]
    return f"\nagents\n{table(rows, indent=2)}\n" if rows else ""


def _grant(agent: JsonObject) -> str:
    granted = agent.get("toolings")
    return "" if granted is None else f"may use: {', '.join(granted) or 'nothing'}"
