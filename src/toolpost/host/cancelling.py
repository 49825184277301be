"""Whose doing a `CancelledError` is: a cancellation of this task, or an error like any other.

A task group ends with all its tasks when one of them raises `CancelledError`. So what comes out of code that
is not ours, a backend's or an agent's, must not pass unless somebody has really cancelled this task.
"""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Whether this task has been cancelled; else what it awaited has cancelled itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
