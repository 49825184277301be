"""A case: one test file, loaded. It is a normal config, and what is expected of its agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolpost.config import CaseSettings, Config, load_case_config
from toolpost.config.problems import Path as KeyPath
from toolpost.expect.assertions import Expectations, parse_expectations, parse_outcome
from toolpost.expect.event import parse_event_item
from toolpost.expect.pattern import PatternError
from toolpost.model import Json


@dataclass(frozen=True, kw_only=True)
class Case:
    """One test file."""

    name: str
    """Its path, as it was given."""
    config: Config
    settings: CaseSettings
    expectations: tuple[Expectations, ...]
    files: tuple[Path, ...]
    """Those that it was read from: itself, what it extends, and the agents' scripts."""

    @property
    def is_simulated(self) -> bool:
        """Whether it runs in simulated time."""
        return self.settings.clock != "real" and not self.config.real_toolings


def load_case(path: Path) -> Case:
    """The case of a test file.

    Raises:
        ConfigError: It cannot be used; holds every problem.
    """
    loaded = load_case_config(path, check_assertions=check_assertions)
    scripts = (agent.script for agent in loaded.config.agents.values())
    return Case(
        name=str(path),
        config=loaded.config,
        settings=loaded.settings,
        expectations=tuple(parse_expectations(name, each) for name, each in loaded.assertions.items()),
        files=(*loaded.files, *(script for script in scripts if script is not None)),
    )


def check_assertions(table: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong with the patterns in `[assertions]`, and where in it."""
    for agent, raw in table.items():
        if not isinstance(raw, dict):
            continue  # told by the walk over the tables
        keys = cast("dict[str, Any]", raw)
        if (outcome := keys.get("outcome")) is not None:
            yield from _problem(parse_outcome, outcome, (agent, "outcome"))
        events: Any = keys.get("events")
        if outcome == "asserted" and not _can_settle(events):
            yield (agent, "outcome"), '"asserted" needs events: the agent is stopped once they are settled'
        for index, each in enumerate(cast("list[Any]", events) if isinstance(events, list) else ()):
            yield from _problem(parse_event_item, each, (agent, "events", index))


def _can_settle(events: Any) -> bool:
    """Whether there is one that must happen; a `$while` alone need not."""
    items = cast("list[Any]", events) if isinstance(events, list) else []
    return any(not isinstance(each, dict) or "$while" not in each for each in items)


def _problem(
    parse: Callable[[Json, KeyPath], object], source: Json, path: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    try:
        parse(source, path)
    except PatternError as error:
        yield error.path, error.problem
