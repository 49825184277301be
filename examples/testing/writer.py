"""Saves a draft, waits for the verdict on it, and has it printed."""

from __future__ import annotations

from toolpost import ResourceUpdated, SyncHost


def run(host: SyncHost) -> str:
    desk = host.tooling.get("desk")
    desk.subscribe_resource("mem://verdict")
    desk.call_tool_blocking("save", {"text": "a lathe turns"})
    match host.recv().event:
        case ResourceUpdated(content="good"):
            return desk.call_tool_blocking("print").value
        case other:
            raise RuntimeError(f"not a good verdict: {other}")
