"""The way of a thread into the event loop and back: one hop there, one back.

A sync agent's thread stands still while the loop works for it. It can be interrupted (Ctrl-C in a main
thread), at any of its steps: what it waited for is then cancelled first, so that nothing goes on without it,
and what had come of it already is taken back (`undo`), so that nothing is lost with it.

In a simulated run a call also gives the thread's turn back, and its answer is the thread's next turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio

from toolpost.errors import HostClosed, UsageError
from toolpost.host.cancelling import Tasks, is_cancelled
from toolpost.host.simulation import SimulatedLoop

P = ParamSpec("P")
R = TypeVar("R")


class Latch:
    """Set once, on one thread; waited for by one other. A wait that is interrupted can be taken up again."""

    def __init__(self) -> None:
        self.is_set = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            self._lock.release()

    def wait(self) -> None:
        # An interrupt between getting the lock and returning would make a second `acquire` wait for ever.
        # (`threading.Event` is no better: an interrupt can leave the lock inside it taken.)
        while not self.is_set:
            self._lock.acquire()


class Bridge:
    """Runs functions on the loop for the threads of one agent."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tasks: Tasks, ending: Callable[[], BaseException]
    ) -> None:
        self._loop = loop
        self._tasks = tasks
        self._ending = ending
        """What a call raises once its agent has ended."""
        self._turns = loop.turns if isinstance(loop, SimulatedLoop) else None
        self._lock = threading.Lock()
        self._under_way: dict[_Hop[Any], None] = {}
        self._closed = False

    def call(self, func: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a plain function, called on the loop."""

        async def plain() -> R:
            return func(*args, **kwargs)

        return self.cross(plain)

    def wait_for(self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of an async function, awaited on the loop."""

        async def bound() -> R:
            return await func(*args, **kwargs)

        return self.cross(bound)

    def cross(self, func: Callable[[], Awaitable[R]], undo: Callable[[R], None] | None = None) -> R:
        """The result of `func`, awaited on the loop. Where the thread is interrupted, `undo` gets it."""
        self._refuse_loop_thread()
        hop = _Hop(func, undo, self._waker())
        try:
            self._send(hop)
            result = hop.wait()
            self._forget(hop)
            return result
        except BaseException:
            if not hop.is_over:
                self._give_up(hop)
            self._forget(hop)
            raise

    def close(self) -> None:
        """Wake every thread that still waits; that call and later ones raise. On the loop."""
        with self._lock:
            self._closed = True
            left = tuple(self._under_way)
        for hop in left:
            hop.settle_error(self._ending())

    def _send(self, hop: _Hop[R]) -> None:
        with self._lock:
            if self._closed:
                hop.is_over = True
                raise self._ending()
            self._under_way[hop] = None
            if self._turns is None:
                self._loop.call_soon_threadsafe(self._start, hop)
            else:
                self._turns.give_back(lambda: self._start(hop))

    def _waker(self) -> Callable[[Latch], None]:
        """How the thread that calls gets to know that its answer is there."""
        turns, thread = self._turns, threading.current_thread()
        if turns is None:
            return Latch.set
        if not turns.may_call(thread) and not self._closed:
            raise UsageError(
                f"thread {thread.name!r} called a host in a simulated run, where only an agent's own thread"
                " may: make the call there, or run in real time"
            )
        return lambda latch: turns.hand_over_soon(thread, latch.set)

    def _start(self, hop: _Hop[R]) -> None:
        try:
            self._tasks.start_soon(hop.run)
        except RuntimeError:  # the agent's tasks have ended between the hop and now
            hop.settle_error(self._ending())

    def _give_up(self, hop: _Hop[R]) -> None:
        """In the thread, which was interrupted: returns when the loop has finished with this hop."""
        with self._lock:
            if self._closed:
                return
            self._loop.call_soon_threadsafe(hop.give_up)
        hop.settled.wait()

    def _forget(self, hop: _Hop[R]) -> None:
        with self._lock:
            self._under_way.pop(hop, None)

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
    """One call from a thread: a latch that the thread waits for, and what came of it."""

    def __init__(
        self,
        func: Callable[[], Awaitable[R]],
        undo: Callable[[R], None] | None,
        wake: Callable[[Latch], None],
    ) -> None:
        self._func = func
        self._undo = undo
        self._wake = wake
        self._scope: anyio.CancelScope | None = None  # made on the loop: it cannot be made elsewhere
        self._is_given_up = False
        self.settled = Latch()
        self._is_settled = False
        """On the loop: the thread is woken, or about to be."""
        self.is_over = False
        """The thread has its error: there is nothing to give up. Only the thread sets it."""
        self._result: R | None = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        """On the loop."""
        if self._is_given_up:
            return
        try:
            with anyio.CancelScope() as self._scope:
                result = await self._func()
                self._settle_result(result)
        except Exception as error:
            self.settle_error(error)
        except BaseException as error:  # AgentStopped belongs to the thread, not to the loop
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            self.settle_error(error)
        finally:
            self.settle_error(HostClosed("the call was cancelled: its agent has ended"))

    def wait(self) -> R:
        """In the thread."""
        self.settled.wait()
        if self._error is not None:
            self.is_over = True
            raise self._error
        return cast("R", self._result)

    def give_up(self) -> None:
        """On the loop: the thread was interrupted, before this has begun, after it was done, or between."""
        self._is_given_up = True
        if self._is_settled:
            if self._error is None:
                self._take_back(cast("R", self._result))
        elif self._scope is None:
            self.settle_error(HostClosed("the call was interrupted"))
        else:
            self._scope.cancel()

    def settle_error(self, error: BaseException) -> None:
        """On the loop. The first settling counts."""
        if not self._is_settled:
            self._error = error
            self._settle()

    def _settle_result(self, result: R) -> None:
        if self._is_given_up or self._is_settled:  # it came all the same, and nobody waits for it
            self._take_back(result)
        else:
            self._result = result
            self._settle()

    def _settle(self) -> None:
        self._is_settled = True
        self._wake(self.settled)

    def _take_back(self, result: R) -> None:
        if self._undo is not None:
            self._undo(result)
