"""Cancelling: whose doing a `CancelledError` is, and tasks that do not heed one.

A task group ends with all its tasks when one of them raises `CancelledError`, and waits for ever for one that
swallows it. So what comes out of code that is not ours, a backend's or an agent's, must not pass unless
somebody has really cancelled this task; and such code runs in tasks that can be left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any, Protocol

from toolpost.host.standing import shown, stack_of_task
from toolpost.secret import get_logger

_log = get_logger("toolpost.host")


class Work(Protocol):
    """What is done for somebody: a scope, or a future."""

    def cancel(self) -> object:
        """End it."""
        ...


def is_cancelled() -> bool:
    """Whether this task has been cancelled; else what it awaited has cancelled itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Tasks:
    """Tasks with one owner, who ends them and does not wait for ever."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._running: dict[asyncio.Task[object], None] = {}
        self._closed = False

    def start_soon(self, func: Callable[..., Coroutine[Any, Any, object]], *args: object) -> None:
        """Start a task.

        Raises:
            RuntimeError: The owner has ended.
        """
        if self._closed:
            raise RuntimeError(f"{self._owner} has ended")
        task = asyncio.create_task(func(*args))
        self._running[task] = None
        task.add_done_callback(self._ended)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """End this one too, that somebody else has started. What comes of it is theirs."""
        self._running[task] = None
        task.add_done_callback(self._forget)

    async def close(self, within: float) -> None:
        """Cancel what is left; after `within` seconds it is reported and left behind."""
        self._closed = True
        # one turn: a task that is cancelled before its first never awaits what it was given
        await asyncio.sleep(0)
        for task in await end_tasks(self._running, within):
            _log.error(
                "a task of %s swallows its cancellation and is left behind, standing at\n%s",
                self._owner,
                shown(stack_of_task(task)),
            )

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._running.pop(task, None)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._forget(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of %s raised", self._owner, exc_info=error)


async def end_tasks(tasks: Collection[asyncio.Task[Any]], within: float) -> set[asyncio.Task[Any]]:
    """Cancel tasks; gives those that have not ended after `within` seconds. They are left behind."""
    if not tasks:
        return set()
    for task in tasks:
        task.cancel()
    _, left = await asyncio.wait(tuple(tasks), timeout=within)
    for task in left:
        leave_behind(task)
    return left


def leave_behind(task: asyncio.Task[Any]) -> None:
    """Never wait for this task again: it keeps neither `asyncio.run` nor the process from its end.

    It runs on while its loop does. It must not be collected later: its code, which swallows every exception,
    would swallow `GeneratorExit` too, and could loop for ever in doing so.
    """
    import ctypes  # here: hardly any run needs it

    asyncio._unregister_task(task)  # documented, for those who extend asyncio
    held = ctypes.py_object(task)
    ctypes.pythonapi.Py_IncRef(held)
    task.add_done_callback(lambda _: ctypes.pythonapi.Py_DecRef(held))
