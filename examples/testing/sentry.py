"""Watches an alarm, and rings whenever it says something, until it is told to stop."""

from __future__ import annotations

import math

from toolpost import ResourceUpdated, Shutdown, SyncHost


def run(host: SyncHost) -> None:
    house = host.tooling.get("house")
    house.subscribe_resource("mem://alarm")
    while True:
        match host.recv(math.inf).event:
            case ResourceUpdated(content=alarm):
                house.call_tool_blocking("ring", {"why": alarm})
            case Shutdown():
                return
            case other:
                host.log(f"not an alarm: {other}", level="warning")
