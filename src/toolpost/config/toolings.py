"""`[tooling.<name>]`: one table to one `ToolingConfig`, by the kind that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolpost.config.model import ToolingConfig
from toolpost.config.problems import Path, folded, nearest
from toolpost.config.walk import BROKEN, Walk
from toolpost.tooling.registry import Kind, find_kind, kind_names


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds that a configuration may name."""

    find: Callable[[str], Kind | None]
    names: Callable[[], list[str]]

    @classmethod
    def of(cls, kinds: Mapping[str, Kind] | None) -> Kinds:
        """Those of a table; without one every kind that is built in, registered or installed."""
        if kinds is None:
            return cls(find_kind, kind_names)
        return cls(kinds.get, lambda: sorted(kinds))

    def hint(self, table: Mapping[str, Any], keys: list[str]) -> Any:
        """The type of a tooling's table, for a variable that names `keys` in it.

        None where the kind is unknown: `read_tooling` tells of that.
        """
        if len(keys) == 1 and folded(keys[0]) == "kind":
            return dict[str, str]
        name = table.get("kind")
        try:
            kind = self.find(name) if isinstance(name, str) else None
        except Exception:  # told of by `read_tooling`
            return None
        return kind and (kind.params or dict[str, Any])

    def is_real(self, table: object) -> bool:
        """Whether a tooling's table names a kind that cannot be simulated."""
        name = cast("dict[str, Any]", table).get("kind") if isinstance(table, dict) else None
        try:
            kind = self.find(name) if isinstance(name, str) else None
        except Exception:  # told of by `read_tooling`
            return False
        return kind is not None and not kind.is_simulated


def read_tooling(name: str, raw: object, *, walk: Walk, kinds: Kinds) -> Any:
    """The tooling, or `BROKEN` with its problems noted."""
    path = ("tooling", name)
    walk.check_name(name, path)
    table = walk.table(raw, path)
    kind = None if table is BROKEN else _kind(table.get("kind"), (*path, "kind"), walk, kinds)
    if kind is None:
        return BROKEN
    rest = {key: each for key, each in table.items() if key != "kind" and each is not None}
    params = rest if kind.params is None else walk.struct(kind.params, rest, path)
    _check(kind, rest, path, walk, is_broken=params is BROKEN)
    return BROKEN if params is BROKEN else ToolingConfig(name=name, kind=kind, params=params)


def _kind(name: Any, path: Path, walk: Walk, kinds: Kinds) -> Kind | None:
    if name is None:
        walk.problems.add(path, f"missing; known kinds: {nearest('', kinds.names())}")
        return None
    if walk.value(str, name, path) is BROKEN:
        return None
    try:
        kind = kinds.find(name)
    except Exception as error:  # another's package: whatever its import raises
        walk.problems.add(path, f"kind {name!r} cannot be loaded: {error!r}")
        return None
    if kind is None:
        known = nearest(name, kinds.names())
        walk.problems.add(path, f"unknown kind {name!r}; known kinds: {known}")
    return kind


def _check(kind: Kind, table: dict[str, Any], path: Path, walk: Walk, *, is_broken: bool) -> None:
    if kind.check is None:
        return
    try:
        pairs = list(kind.check(table))
    except Exception:
        if not is_broken:
            raise
        return  # it stumbled over what the walk has told of
    for key, problem in pairs:
        walk.problems.add_below(path, key, problem)
