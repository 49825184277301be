"""`load_config`: source, then the environment's layer, then the walk; at the end all problems at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from toolpost.config.agents import read_agent
from toolpost.config.environment import Layer
from toolpost.config.extends import with_base
from toolpost.config.model import AgentTable, Config, Tunables
from toolpost.config.problems import Path, Problems, nearest
from toolpost.config.read import Raw, Source, read_source
from toolpost.config.toolings import Kinds, read_tooling
from toolpost.config.walk import BROKEN, Walk
from toolpost.errors import ConfigError
from toolpost.secret import Secret
from toolpost.tooling.registry import Kind

_TABLES = ("tooling", "agents", "tunables")
_TEST_TABLES = ("assertions", "test")


def load_config(
    source: Source = None,
    *,
    environ: Mapping[str, str] = os.environ,
    kinds: Mapping[str, Kind] | None = None,
    test: bool = False,
) -> Config:
    """A configuration, checked as a whole. Touches no network and no process.

    Reads the source, and looks whether the agents' scripts exist.

    Args:
        source: A path, `"-"` for standard input, or a mapping shaped like the TOML, in which secrets may
            be strings or `Secret`s; None is `toolpost.toml` in the current folder.
        environ: Where `TOOLPOST__…` variables and `${VAR}` come from.
        kinds: The kinds that `kind` may name; None is every built-in, registered and installed one.
        test: Keep the tables `[test]` and `[assertions]`, which other configurations refuse.

    Raises:
        ConfigError: With every problem found.
    """
    known, raw = Kinds.of(kinds), read_source(source)
    loaded = _load(with_base(raw, known) if test else raw, environ, known, test=test)
    # Raised here, where no local variable holds the raw tables: a traceback keeps its frames alive.
    if isinstance(loaded, list):
        raise ConfigError(loaded)
    return loaded


def _load(raw: Raw, environ: Mapping[str, str], kinds: Kinds, *, test: bool) -> Config | list[str]:
    try:
        loading = _Loading(raw, environ, kinds)
        config = loading.run(test=test)
    except RecursionError:
        return [f"{raw.label}: nested too deeply"]
    return loading.problems.lines() or config


class _Loading:
    """One run over one source."""

    def __init__(self, raw: Raw, environ: Mapping[str, str], kinds: Kinds) -> None:
        self.problems = Problems(raw.label)
        self._raw = raw
        self._environ = environ
        self._kinds = kinds
        self._secrets: list[Secret] = []  # alive until the problems are masked
        self._cannot_lock = False
        self._walk = Walk(
            problems=self.problems, folder=raw.folder, environ=environ, make_secret=self._make_secret
        )

    def run(self, *, test: bool) -> Config:
        """The configuration; only to be used where no problem was found."""
        self._check_tables(test=test)
        self._put_environment()
        walk, kinds, tables = self._walk, self._kinds, self._raw.table
        tunables = walk.struct(Tunables, tables.get("tunables", {}), ("tunables",))
        toolings = self._named("tooling")
        agents = self._named("agents")
        return Config(
            tunables=tunables,
            tooling={name: read_tooling(name, raw, walk=walk, kinds=kinds) for name, raw in toolings.items()},
            agents={
                name: read_agent(name, raw, walk=walk, toolings=toolings) for name, raw in agents.items()
            },
            folder=self._raw.folder,
            label=self._raw.label,
            warnings=self.problems.warnings,
            test=tables.get("test"),
            assertions=tables.get("assertions"),
        )

    def _check_tables(self, *, test: bool) -> None:
        known = (*_TABLES, *_TEST_TABLES) if test else _TABLES
        for name, raw in self._raw.table.items():
            if name in known:
                self._walk.table(raw, (name,))
            elif name in _TEST_TABLES:
                self.problems.add((name,), "belongs in a test file; run that with `toolpost test`")
            else:
                self.problems.add((name,), f"unknown table; known tables: {nearest(name, known)}")

    def _put_environment(self) -> None:
        tables = self._raw.table
        layer = Layer(self.problems, self._walk.fits, self._environ)
        # `kind` first: it says what the other keys of its tooling are
        layer.put_named("tooling", self._named("tooling"), self._kinds.hint, only="kind")
        layer.put_named("tooling", self._named("tooling"), self._kinds.hint)
        layer.put_named("agents", self._named("agents"), lambda _table, _keys: AgentTable)
        if layer.names("tunables"):
            tables.setdefault("tunables", {})
        layer.put_single("tunables", tables.get("tunables"), Tunables)
        layer.refuse_rest(_TABLES)

    def _named(self, top: str) -> dict[str, Any]:
        table: Any = self._raw.table.get(top)
        return cast("dict[str, Any]", table) if isinstance(table, dict) else {}

    def _make_secret(self, text: str, path: Path) -> Any:
        if self._cannot_lock:
            return BROKEN
        try:
            secret = Secret(
                text, allow_unlocked=self._named("tunables").get("allow_unlocked_secrets") is True
            )
        except ConfigError as error:
            self._cannot_lock = True  # one line for all of them
            self.problems.add(path, error.problems[0])
            return BROKEN
        if not secret.locked and all(each.locked for each in self._secrets):
            where = ("tunables", "allow_unlocked_secrets")
            self.problems.warn(where, "secrets are not locked in memory, and may be swapped to disk")
        self._secrets.append(secret)
        return secret
