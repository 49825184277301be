"""Running guests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import toolpost
from toolpost.config import load_config
from toolpost.host.agents import load_agents
from toolpost.host.core import Core

BOX: dict[str, Any] = {"kind": "mock", "delay_ms": 0}


def config(script: Path | str, params: Mapping[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """One agent, `ada`, on two mocks, of which it is granted `box`."""
    agent = {"script": str(script), "params": dict(params or {}), "toolings": ["box"], **keys}
    return {"tooling": {"box": BOX, "safe": BOX}, "agents": {"ada": agent}}


def outcome(
    script: Path | str, params: Mapping[str, Any] | None = None, *, simulate: bool = False, **keys: Any
) -> toolpost.Outcome:
    """How that agent ends."""
    return toolpost.run(config(script, params, **keys), simulate=simulate)["ada"]


async def outcomes_when(
    tables: dict[str, Any], act: Callable[[Core, asyncio.Event], Awaitable[None]]
) -> dict[str, toolpost.Outcome]:
    """How the agents of a config end when this is done meanwhile; the event shuts the house down."""
    loaded = load_config(tables)
    core, stop = Core(loaded, trace=True, extras={}), asyncio.Event()
    await core.open()
    try:
        running = asyncio.create_task(core.run_agents(load_agents(loaded), stop))
        await act(core, stop)
        return await running
    finally:
        await core.close()
