"""What a soak is made of: the toolings, and how much of everything."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESOURCES = 30
"""Of each tooling. Agents choose among them: some are followed by one, some by many."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much of everything; the defaults are those of the command line."""

    seed: int = 1
    calls: int = 100_000
    agents: int = 50
    subscriptions: int = 200
    seconds: float = 300.0
    """The calls are spread over this time."""
    faults: int = 300
    """Spread over the calls: on a machine that is slow, servers are troubled less often."""
    window: int = 20
    """Calls that an agent has open at most."""
    limit_secs: float = 5.0
    """Of a request. How long servers are stopped, slow or away is measured by it."""
    see_secs: float = 120.0
    """How long after the last change subscriptions may take to see it."""
    silent_secs: float = 120.0
    """A call that has no answer for so long will get none."""

    @property
    def judges_memory(self) -> bool:
        """Whether a run is long enough to have a level of memory."""
        return self.seconds >= 120


@dataclass(frozen=True)
class Kind:
    """One of the five toolings: how it is reached, and what its server speaks."""

    name: str
    transport: str
    era: str
    answers_in_streams: bool = False

    def command(self, folder: Path, port: int | None = None) -> list[str]:
        """What runs its server."""
        command = [sys.executable, "-m", "tests.soak.serve", self.transport, self.era, str(folder)]
        command += [] if port is None else ["--port", str(port)]
        return command + ["--streams"] * self.answers_in_streams

    def table(self, folder: Path, port: int | None = None) -> dict[str, Any]:
        """Its table in the config."""
        if port is not None:
            return {"kind": "mcp", "transport": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        program, *args = self.command(folder)
        return {"kind": "mcp", "transport": "stdio", "command": program, "args": args, "cwd": str(ROOT)}


KINDS = (
    Kind("stdio-2025", "stdio", "2025-11-25"),
    Kind("stdio-2026", "stdio", "2026-07-28"),
    Kind("http-2025", "http", "2025-11-25"),
    Kind("http-2026", "http", "2026-07-28"),
    Kind("streams-2025", "http", "2025-11-25", answers_in_streams=True),
)


def tunables(options: Options) -> dict[str, Any]:
    limit_secs = options.limit_secs
    return {
        "open_calls_bound": options.window,  # so a place that is not given back is missed
        "inbox_bound": 4,  # so changes fold while an agent is busy
        "tooling_request_timeout_secs": limit_secs,
        "tooling_connect_timeout_secs": 2 * limit_secs,
        "tooling_connect_backoff_start_ms": 20,
        "tooling_connect_backoff_cap_secs": limit_secs,
    }


def uri(number: int) -> str:
    return f"soak://resource/{number}"
