"""`[test] extends`: a test file that stands on another config. Tables merge, everything else replaces.

A tooling that is given another kind is replaced as a whole, which is how a real server becomes a mock.
What the other file says stays true where it stands: its relative paths start at its own folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from toolpost.config.hints import bare, fields_of
from toolpost.config.model import AgentTable
from toolpost.config.read import Raw, read_source
from toolpost.config.toolings import Kinds
from toolpost.errors import ConfigError

Table = dict[str, Any]


def with_base(raw: Raw, kinds: Kinds, seen: tuple[Path, ...] = ()) -> Raw:
    """The tables of a file on top of those that it extends.

    Raises:
        ConfigError: The other file cannot be read, or the files extend each other in a circle.
    """
    test = raw.table.get("test")
    name = cast("Table", test).get("extends") if isinstance(test, dict) else None
    if name is None:
        return raw
    if not isinstance(name, str) or not name:
        raise ConfigError([f"{raw.label}: test.extends: expected the path of a config, found {name!r}"])
    path = raw.folder / name
    here = _real(path)
    if here in seen or here == _real(Path(raw.label)):
        circle = " -> ".join(each.name for each in (*seen, here))
        raise ConfigError([f"{raw.label}: test.extends: the files extend each other in a circle: {circle}"])
    try:
        base = with_base(read_source(path), kinds, (*seen, here))
    except ConfigError as error:
        raise ConfigError([f"{raw.label}: test.extends: {problem}" for problem in error.problems]) from None
    _anchor(base, kinds)
    merged = _merged(_without_said_anew(_without_replaced(base.table, raw.table), raw.table), raw.table)
    merged["test"] = {key: each for key, each in merged["test"].items() if key != "extends"}
    return Raw(merged, raw.folder, raw.label, [*raw.files, *base.files])


def _without_replaced(below: Table, above: Table) -> Table:
    """The base without the toolings that become another kind: the keys of one mean nothing to the other."""
    below_tables, above_tables = below.get("tooling"), above.get("tooling")
    if not (isinstance(below_tables, dict) and isinstance(above_tables, dict)):
        return below
    mine = cast("Table", above_tables)
    kept = {
        name: each
        for name, each in cast("Table", below_tables).items()
        if _kind(mine.get(name)) in (None, _kind(each))
    }
    return {**below, "tooling": kept}


_SAID_ONCE = {"agents": (("script", "entry"), ("entry", "script")), "assertions": (("outcome", "outcome"),)}
"""By table: a key, and the one of the base that it takes the place of, where merging would keep both."""


def _without_said_anew(below: Table, above: Table) -> Table:
    """The base without what the file says in another way: how an agent starts, how it must end."""
    for top, pairs in _SAID_ONCE.items():
        tables, own_tables = _named_tables(below.get(top)), _named_tables(above.get(top))
        for name in tables.keys() & own_tables.keys():
            for key, other in pairs:
                if key in own_tables[name]:
                    tables[name].pop(other, None)
    return below


def _kind(table: object) -> object:
    return cast("Table", table).get("kind") if isinstance(table, dict) else None


def _merged(below: Table, above: Table) -> Table:
    """One table over another. Inside `env` and the like too: to drop a key of the base, say it anew."""
    merged = dict(below)
    for key, each in above.items():
        lower = merged.get(key)
        both = isinstance(lower, dict) and isinstance(each, dict)
        merged[key] = _merged(cast("Table", lower), cast("Table", each)) if both else each
    return merged


def _anchor(base: Raw, kinds: Kinds) -> None:
    """Make the relative paths of the base absolute, since the merged config starts from another folder."""
    for agent in _tables(base.table.get("agents")):
        _anchor_table(agent, AgentTable, base.folder)
    for tooling in _tables(base.table.get("tooling")):
        name = tooling.get("kind")
        kind = kinds.find(name) if isinstance(name, str) else None
        if kind is not None and kind.params is not None:
            _anchor_table(tooling, kind.params, base.folder)


def _anchor_table(table: Table, struct: Any, folder: Path) -> None:
    for key, info in fields_of(struct).items():
        value = table.get(key)
        # a path that begins with a variable is the environment's business
        if bare(info.type, {})[1].get("path") and isinstance(value, str) and not value.startswith("${"):
            table[key] = os.path.normpath(folder / value)


def _tables(named: object) -> list[Table]:
    return list(_named_tables(named).values())


def _named_tables(named: object) -> dict[str, Table]:
    tables = cast("Table", named) if isinstance(named, dict) else {}
    return {name: cast("Table", each) for name, each in tables.items() if isinstance(each, dict)}


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
