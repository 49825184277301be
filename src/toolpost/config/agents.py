"""`[agents.<name>]`: one table to one `AgentConfig`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from toolpost.config.model import AgentConfig, AgentTable
from toolpost.config.problems import Path as KeyPath
from toolpost.config.problems import nearest
from toolpost.config.walk import BROKEN, Walk


def read_agent(name: str, raw: object, *, walk: Walk, toolings: Collection[str]) -> Any:
    """The agent, or `BROKEN` with its problems noted.

    Args:
        name: The table's name.
        raw: The table.
        walk: Where problems go.
        toolings: The names that `toolings` may list.
    """
    path = ("agents", name)
    walk.check_name(name, path)
    agent = walk.struct(AgentTable, raw, path)
    if not isinstance(raw, dict):
        return BROKEN
    table = cast("dict[str, Any]", raw)
    _check_start(table, path, walk)
    _check_toolings(table.get("toolings"), path, walk, toolings)
    if agent is BROKEN:
        return BROKEN
    _check_preopens(agent, path, walk)
    return AgentConfig(
        name=name,
        script=_script(agent.script, table, path, walk),
        entry=agent.entry,
        params=agent.params,
        toolings=agent.toolings,
        sandbox=agent.sandbox,
    )


def _check_start(table: dict[str, Any], path: KeyPath, walk: Walk) -> None:
    script, entry = table.get("script"), table.get("entry")
    if script is None and entry is None:
        walk.problems.add(path, "missing; expected script or entry")
    if script is not None and entry is not None:
        walk.problems.add(path, "script and entry exclude each other; keep one")
    is_guest = isinstance(script, str) and script.endswith(".wasm")
    if table.get("sandbox") is not None and not is_guest:
        # silence would look like safety
        walk.problems.add((*path, "sandbox"), "only a guest (a .wasm script) can be confined")


def _check_toolings(names: Any, path: KeyPath, walk: Walk, known: Collection[str]) -> None:
    for at, name in enumerate(cast("list[Any]", names) if isinstance(names, list) else []):
        if isinstance(name, str) and name not in known:
            here = (*path, "toolings", at)
            walk.problems.add(here, f"unknown tooling {name!r}; known toolings: {nearest(name, known)}")


def _check_preopens(agent: AgentTable, path: KeyPath, walk: Walk) -> None:
    for seen_as, preopen in (agent.sandbox.preopens if agent.sandbox else {}).items():
        if not Path(preopen.path).is_dir():
            here = (*path, "sandbox", "preopens", seen_as, "path")
            walk.problems.add(here, f"no such folder; relative paths start in {walk.folder}")


def _script(script: str | None, table: dict[str, Any], path: KeyPath, walk: Walk) -> Path | None:
    if script is None:
        return None
    found, here = Path(script), (*path, "script")
    try:
        if found.is_dir():
            walk.problems.add(here, "expected a file, found a folder")
        elif not found.exists():
            # as it is written: what a variable gave is not shown
            written = "" if walk.problems.origin(here) else f" {table['script']!r}"
            walk.problems.add(here, f"no such file{written}; relative paths start in {walk.folder}")
    except OSError as error:
        walk.problems.add(here, f"cannot be reached: {error.strerror}")
    return found
