"""What the fixtures of the pytest plugin give. It knows nothing of pytest."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TypeAlias

from toolpost.config import Config, load_config
from toolpost.config.load import load_config_with
from toolpost.config.read import read_source, read_text
from toolpost.errors import UsageError
from toolpost.model import Json, JsonObject
from toolpost.testing.builder import MockBuilder
from toolpost.testing.host_under_test import Clock, HostUnderTest, Pace
from toolpost.trace.log import Trace

ConfigUnderTest: TypeAlias = str | os.PathLike[str] | Mapping[str, Json] | Config | None
"""A path, a mapping shaped like the TOML, a loaded `Config`, or the TOML itself: a string with a line's end,
`[` or `=` in it. None is nothing but the mocks of the test."""

TIMEOUT_SECS = 30.0


class MockFactory:
    """What `toolpost_mock` gives."""

    def __init__(self) -> None:
        self._mocks: dict[str, MockBuilder] = {}

    def __call__(self, name: str, /) -> MockBuilder:
        """The mock that stands for the tooling of this name; within a test the same one each time."""
        return self._mocks.setdefault(name, MockBuilder(name))

    def to_tables(self) -> dict[str, JsonObject]:
        """The table `[tooling.<name>]` of each.

        Raises:
            UsageError: Nothing says what a step of one brings.
        """
        return {name: mock.to_table() for name, mock in self._mocks.items()}

    def __repr__(self) -> str:
        return f"<mocks: {', '.join(self._mocks) or 'none'}>"


class HostFactory:
    """What `toolpost_host` gives."""

    def __init__(self, mocks: MockFactory) -> None:
        self._mocks = mocks
        self._hosts: list[HostUnderTest] = []
        self.latest_trace: Trace | None = None
        """Of the host that was run or opened last."""

    def __call__(
        self,
        config: ConfigUnderTest = None,
        /,
        *,
        timeout: float = TIMEOUT_SECS,
        clock: Clock = "auto",
        seed: int = 0,
    ) -> HostUnderTest:
        """A host on a config, in which the mocks of the test stand in place of the toolings of their names.

        Args:
            config: A path, a mapping shaped like the TOML, a `Config`, or the TOML itself: a string with a
                line's end, `[` or `=` in it. None is nothing but the mocks.
            timeout: Seconds of real time that agents may take to come to their ends.
            clock: Whether `run` simulates time; `auto` does so where every tooling's kind can be.
            seed: Chooses among what happens at one simulated instant; 0 is first come, first served.
        """
        pace = Pace(timeout=timeout, clock=clock, seed=seed)
        host = HostUnderTest(lambda: self._config(config), pace=pace, on_trace=self._see)
        self._hosts.append(host)
        return host

    def close(self) -> None:
        """Close the hosts that are still open."""
        for host in reversed(self._hosts):
            host.close()

    def __repr__(self) -> str:
        return f"<hosts: {len(self._hosts)}>"

    def _see(self, trace: Trace) -> None:
        self.latest_trace = trace

    def _config(self, source: ConfigUnderTest) -> Config:
        mocks = self._mocks.to_tables()
        if source is None and not mocks:
            raise UsageError(
                "there is nothing to open: give toolpost_host a config, or script a mock by toolpost_mock"
            )
        return config_with(mocks, source)


def config_with(mocks: Mapping[str, JsonObject], source: ConfigUnderTest) -> Config:
    """A config in which mocks stand in place of the toolings of their names.

    Raises:
        ConfigError: It cannot be used; holds every problem.
    """
    if isinstance(source, Config):
        doubles = load_config({"tooling": mocks}, environ={}).tooling
        return dataclasses.replace(source, tooling=source.tooling | doubles)
    if isinstance(source, str) and any(each in source for each in "\n[="):
        return load_config_with(mocks, lambda: read_text(source))
    return load_config_with(mocks, lambda: read_source({} if source is None else source))
