"""The way of a thread into the event loop and back: one hop there, one back.

A sync agent's thread stands still while the loop works for it. It can be interrupted (Ctrl-C in a main
thread): what it waited for is then cancelled first, so that nothing goes on without it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from toolpost.errors import HostClosed, UsageError
from toolpost.host.cancelling import is_cancelled

P = ParamSpec("P")
R = TypeVar("R")


class Bridge:
    """Runs functions on the loop for the threads of one agent."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tasks: TaskGroup, ending: Callable[[], BaseException]
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._ending = ending
        """What a call raises once its agent has ended."""
        self._lock = threading.Lock()
        self._under_way: set[_Hop[object]] = set()
        self._closed = False

    def call(self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a plain function, called on the loop."""

        async def plain() -> R:
            return func(*args, **kwargs)

        return self.wait_for(plain)

    def wait_for(self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of an async function, awaited on the loop."""
        self._refuse_loop_thread()

        async def bound() -> R:
            return await func(*args, **kwargs)

        hop = _Hop(bound)
        with self._lock:
            if self._closed:
                raise self._ending()
            self._under_way.add(hop)  # pyright: ignore[reportArgumentType]: only its waiting is used
            self._loop.call_soon_threadsafe(self._start, hop)
        try:
            return hop.wait(self._loop)
        finally:
            with self._lock:
                self._under_way.discard(hop)

    def close(self) -> None:
        """Wake every thread that still waits; that call and later ones raise. On the loop."""
        with self._lock:
            self._closed = True
            left = tuple(self._under_way)
        for hop in left:
            hop.settle_error(self._ending())

    def _start(self, hop: _Hop[R]) -> None:
        try:
            self._tasks.start_soon(hop.run)
        except RuntimeError:  # the agent's tasks have ended between the hop and now
            hop.settle_error(self._ending())

    def _refuse_loop_thread(self) -> None:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            return
        if here is self._loop:
            raise UsageError(
                "a sync host was called on its own event loop, which would stand still for ever;"
                " use `async def run(host)` and await its calls"
            )


class _Hop(Generic[R]):
    """One call from a thread: a lock that the thread waits for, and what came of it."""

    def __init__(self, func: Callable[[], Awaitable[R]]) -> None:
        self._func = func
        self._scope: anyio.CancelScope | None = None  # made on the loop: it cannot be made elsewhere
        self._is_given_up = False
        self._done = threading.Lock()
        self._done.acquire()
        self._settled = False
        self._result: R | None = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        """On the loop."""
        try:
            with anyio.CancelScope() as self._scope:
                if self._is_given_up:
                    self._scope.cancel()
                self._result = await self._func()
                self._settle()
        except Exception as error:
            self.settle_error(error)
        except BaseException as error:  # AgentStopped belongs to the thread, not to the loop
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            self.settle_error(error)
        finally:
            self.settle_error(HostClosed("the call was cancelled: its agent has ended"))

    def wait(self, loop: asyncio.AbstractEventLoop) -> R:
        """In the thread."""
        try:
            self._done.acquire()
        except BaseException:
            loop.call_soon_threadsafe(self._give_up)
            self._done.acquire()
            raise
        if self._error is not None:
            raise self._error
        return cast("R", self._result)

    def _give_up(self) -> None:
        """On the loop: the thread was interrupted, perhaps before this has begun."""
        self._is_given_up = True
        if self._scope is not None:
            self._scope.cancel()

    def settle_error(self, error: BaseException) -> None:
        """On the loop. The first settling counts."""
        if not self._settled:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        if not self._settled:
            self._settled = True
            self._done.release()
