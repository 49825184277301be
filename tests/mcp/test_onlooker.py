"""Who looks on is told how far a call has come, and the agents and the trace are not."""

from __future__ import annotations

import sys
from typing import Any

import anyio

from tests import real
from toolpost.config import load_config
from toolpost.host.core import Core
from toolpost.tooling.port import Progress
from toolpost.trace.events import State

CATALOG = str(real.SERVERS / "own" / "catalog.py")


async def test_progress_and_states_reach_who_looks_on() -> None:
    table: dict[str, Any] = {
        "kind": "mcp",
        "transport": "stdio",
        "command": sys.executable,
        "args": [CATALOG],
        "request_timeout_secs": 0,  # without a limit there is no clock to restart, and still progress
    }
    seen: list[Progress] = []
    states: list[State] = []
    core = Core(
        load_config({"tooling": {"shop": table}}),
        trace=False,
        extras={},
        on_state=states.append,
        on_progress=seen.append,
    )
    await core.open()
    try:
        with anyio.fail_after(20):
            seat = await core.open_main()
            result = await seat.find("shop").call_tool_blocking("steps")
    finally:
        await core.close()

    assert result.value == "done"
    assert seen[0] == Progress(tool="steps", progress=1, message="step 1")
    assert seen[-1] == Progress(tool="steps", progress=4, total=4, message="step 4")
    assert [each.state for each in states] == ["dialing", "ready", "closed"]
