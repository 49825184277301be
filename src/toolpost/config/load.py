"""From a source to a configuration: the environment's layer, the walk, and then all problems at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from toolpost.config.agents import read_agent
from toolpost.config.environment import Layer, without_overrides
from toolpost.config.extends import with_base
from toolpost.config.model import AgentAssertions, AgentTable, CaseConfig, CaseSettings, Config, Tunables
from toolpost.config.problems import Path, Problems, nearest
from toolpost.config.read import Raw, Source, read_source, with_toolings
from toolpost.config.toolings import Kinds, read_tooling
from toolpost.config.walk import BROKEN, Walk
from toolpost.errors import ConfigError
from toolpost.secret import Secret
from toolpost.tooling.registry import Kind

_TABLES = ("tooling", "agents", "tunables")
_CASE_TABLES = ("assertions", "test")

CheckAssertions: TypeAlias = Callable[[Mapping[str, Any]], Iterator[tuple[Path, str]]]
"""From the table `[assertions]` to its problems, each with its place in that table."""


def load_config(
    source: Source = None,
    *,
    environ: Mapping[str, str] = os.environ,
    kinds: Mapping[str, Kind] | None = None,
) -> Config:
    """A configuration, checked as a whole. Touches no network and no process.

    Reads the source, and looks whether the agents' scripts exist.

    Args:
        source: A path, `"-"` for standard input, or a mapping shaped like the TOML, in which secrets may
            be strings or `Secret`s; None is `toolpost.toml` in the current folder.
        environ: Where `TOOLPOST__…` variables and `${VAR}` come from.
        kinds: The kinds that `kind` may name; None is every built-in, registered and installed one.

    Raises:
        ConfigError: With every problem found.
    """
    loaded = _load(read_source(source), environ, Kinds.of(kinds), _Loading.run)
    # Raised here, where no local variable holds the raw tables: a traceback keeps its frames alive.
    if isinstance(loaded, list):
        raise ConfigError(loaded)
    return loaded


def load_config_with(
    tooling: Mapping[str, Any],
    read: Callable[[], Raw],
    *,
    environ: Mapping[str, str] = os.environ,
    kinds: Mapping[str, Kind] | None = None,
) -> Config:
    """A configuration in which these tables `[tooling.<name>]` stand in place of those of their names.

    What is replaced is not looked at: a variable that it names need not be set. Of the environment's layer
    only real toolings are reached.

    Raises:
        ConfigError: With every problem found.
    """
    known, raw = Kinds.of(kinds), with_toolings(read(), tooling)
    loaded = _load(raw, _environ_of_test(environ, raw, known), known, _Loading.run)
    if isinstance(loaded, list):
        raise ConfigError(loaded)
    return loaded


def load_case_config(
    source: Source,
    *,
    check_assertions: CheckAssertions,
    environ: Mapping[str, str] = os.environ,
    kinds: Mapping[str, Kind] | None = None,
) -> CaseConfig:
    """A test file: as `load_config`, with its tables `[test]` and `[assertions]`, on top of what it extends.

    Of the environment's layer only real toolings are reached.

    Raises:
        ConfigError: With every problem found, those of `check_assertions` too.
    """
    known = Kinds.of(kinds)
    raw = with_base(read_source(source), known)
    loaded = _load(
        raw, _environ_of_test(environ, raw, known), known, lambda each: each.run_case(check_assertions)
    )
    if isinstance(loaded, list):
        raise ConfigError(loaded)
    return loaded


T = TypeVar("T")


def _environ_of_test(environ: Mapping[str, str], raw: Raw, kinds: Kinds) -> Mapping[str, str]:
    """A test is the same whoever runs it: variables that are meant for real servers reach no double."""
    toolings: Any = raw.table.get("tooling")
    tables = cast("dict[str, Any]", toolings) if isinstance(toolings, dict) else {}
    return without_overrides(environ, but=[name for name, each in tables.items() if kinds.is_real(each)])


def _load(raw: Raw, environ: Mapping[str, str], kinds: Kinds, run: Callable[[_Loading], T]) -> T | list[str]:
    try:
        loading = _Loading(raw, environ, kinds)
        loaded = run(loading)
    except RecursionError:
        return [f"{raw.label}: nested too deeply"]
    return loading.problems.lines() or loaded


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

    def run(self) -> Config:
        """The configuration; only to be used where no problem was found."""
        self._check_tables(_TABLES)
        return self._config()

    def run_case(self, check_assertions: CheckAssertions) -> CaseConfig:
        """The test file; only to be used where no problem was found."""
        self._check_tables((*_TABLES, *_CASE_TABLES))
        config = self._config()
        settings = self._walk.struct(CaseSettings, self._raw.table.get("test", {}), ("test",))
        assertions = self._named("assertions")
        self._check_assertions(assertions, check_assertions)
        if not self.problems and settings.clock == "virtual" and config.real_toolings:
            names = ", ".join(map(repr, config.real_toolings))
            self.problems.add(("test", "clock"), f'"virtual" cannot be: these toolings are real: {names}')
        return CaseConfig(config=config, settings=settings, assertions=assertions, files=self._raw.files)

    def _config(self) -> Config:
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
            import_path=[self._raw.folder, *(each.parent for each in self._raw.files[1:])],
        )

    def _check_tables(self, known: Collection[str]) -> None:
        for name, raw in self._raw.table.items():
            if name in known:
                self._walk.table(raw, (name,))
            elif name in _CASE_TABLES:
                self.problems.add((name,), "belongs in a test file; run that with `toolpost test`")
            else:
                self.problems.add((name,), f"unknown table; known tables: {nearest(name, known)}")

    def _check_assertions(self, assertions: dict[str, Any], check: CheckAssertions) -> None:
        if not self._raw.table.get("assertions", {}):
            self.problems.add(("assertions",), "missing: a test that expects nothing would always pass")
        agents = self._named("agents")
        for name, raw in assertions.items():
            if name not in agents:
                known = nearest(name, agents)
                self.problems.add(("assertions", name), f"unknown agent; known agents: {known}")
            self._walk.struct(AgentAssertions, raw, ("assertions", name))
        for path, problem in check(assertions):
            self.problems.add(("assertions", *path), problem)

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
