"""All agents of these tests in one component, since building takes long: `params.part` says which plays."""

from __future__ import annotations

from importlib import import_module
from inspect import iscoroutinefunction
from typing import Any

import toolpost

# What is imported while a component is built is all that is ever there.
PARTS = (
    *("acts", "clerk", "courier", "editor", "follower", "librarian"),
    *("racer", "reader", "sentry", "walker", "walker_async", "writer"),
)
RUN_OF: dict[str, Any] = {name: import_module(name).run for name in PARTS}


def run(host: toolpost.SyncHost) -> Any:
    part = RUN_OF[host.params.get("part", "acts")]
    if not iscoroutinefunction(part):
        return part(host)
    of_guests: Any = toolpost
    return of_guests.guest(part)().run()
