"""`toolpost check`: is the config right, and, with `--connect`, do its servers answer?"""

from __future__ import annotations

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


def check(
    ctx: typer.Context,
    connect: Annotated[bool, typer.Option("--connect", help="Connect to every server too.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Check the config and show what is in it."""
    Session.of(ctx, config, verbose, log_level).finish(
        lambda session: _check(session, connect=connect, as_json=as_json)
    )


def _check(session: Session, *, connect: bool, as_json: bool) -> int:
    from toolpost.secret import mask_json

    document = _described(session.config())
    if connect:
        run_to_end(lambda: _connect_all(session, document["toolings"]))
    document = mask_json(document)
    if as_json:
        write_json(document)
    else:
        write(_for_people(document))
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


async def _connect_all(session: Session, toolings: dict[str, JsonObject]) -> int:
    """Connect to all side by side, and add to each what came of it."""
    import anyio

    from toolpost.cli.house import open_house

    async with open_house(session) as house, anyio.create_task_group() as tasks:
        for name, tooling in toolings.items():
            tasks.start_soon(_connect, house, name, tooling)
    return DONE


async def _connect(house: House, name: str, tooling: JsonObject) -> None:
    from toolpost.errors import ToolpostError

    try:
        tooling.update(await house.describe(name))
        handle = house.tooling(name)
        tooling["tools"] = len(await handle.list_tools())
        tooling["resources"] = len(await handle.list_resources())
    except ToolpostError as error:
        tooling["error"] = str(error)
    except Exception as error:  # of a kind that is not ours; the others are still told of
        tooling["error"] = f"tooling {name!r}: {type(error).__name__}: {error}"


# -- for people ------------------------------------------------------------------------------------


def _for_people(document: JsonObject) -> str:
    toolings: dict[str, JsonObject] = document["toolings"]
    agents: dict[str, JsonObject] = document["agents"]
    parts = [f"{document['config']}: good\n"]
    if toolings:
        rows = [(name, _kind(each), _server(each)) for name, each in toolings.items()]
        parts.append(f"\ntoolings\n{table(rows, indent=2)}\n")
    if agents:
        rows = [
            (name, each.get("script") or each.get("entry") or "", _grant(each))
            for name, each in agents.items()
        ]
        parts.append(f"\nagents\n{table(rows, indent=2)}\n")
    return "".join(parts)


def _kind(tooling: JsonObject) -> str:
    transport = tooling.get("transport")
    return f"{tooling['kind']} ({transport})" if transport else str(tooling["kind"])


def _server(tooling: JsonObject) -> str:
    if "error" in tooling:
        return f"FAILED: {' '.join(str(tooling['error']).split())}"
    if "tools" not in tooling:
        return ""
    counts = f"{_count(tooling['tools'], 'tool')}, {_count(tooling['resources'], 'resource')}"
    if "protocol" not in tooling:
        return counts
    server = f"{tooling.get('server') or 'a server'} {tooling.get('version') or ''}".rstrip()
    return f"{server}, protocol {tooling['protocol']}, {counts}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _grant(agent: JsonObject) -> str:
    granted = agent.get("toolings")
    return "" if granted is None else f"may use: {', '.join(granted) or 'nothing'}"
