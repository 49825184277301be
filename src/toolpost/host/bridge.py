"""The way of a thread into the event loop and back: one hop there, one back.

A sync agent's thread stands still while the loop works for it. It can be interrupted (Ctrl-C in a main
thread), at any of its steps: what it waited for is then cancelled first, so that nothing goes on without it,
and what had come of it already is taken back (`undo`), so that nothing is lost with it.

In a simulated run a call also gives the thread's turn back, and its answer is the thread's next turn. There
one task serves a thread for as long as it makes calls: it does what the thread came for, and hands it the
turn with the answer. So a sync agent goes on in the order in which an async one would, and its call costs two
switches of threads more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio

from toolpost.errors import HostClosed, UsageError
from toolpost.host.cancelling import Tasks, is_cancelled
from toolpost.host.simulation import SimulatedLoop, Turns

P = ParamSpec("P")
R = TypeVar("R")


class Latch:
    """Set once, on one thread; waited for by one other. A wait that is interrupted can be taken up again."""

    __slots__ = ("_lock", "is_set")

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
        self._is_handing_over = False
        self._next: _Hop[Any] | None = None
        """What the thread came with that has just had its turn."""

    def call(self, func: Callable[[], R], undo: Callable[[R], None] | None = None) -> R:
        """The result of a plain function, called on the loop. `undo` is as for `cross`."""
        if self._turns is not None and not self._closed and (done := self._turns.in_place(func)):
            return done[0]
        return self._cross(_Hop(func, undo, self._wake, is_plain=True))

    def wait_for(self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of an async function, awaited on the loop."""

        async def bound() -> R:
            return await func(*args, **kwargs)

        return self.cross(bound)

    def cross(self, func: Callable[[], Awaitable[R]], undo: Callable[[R], None] | None = None) -> R:
        """The result of `func`, awaited on the loop. Where the thread is interrupted, `undo` gets it."""
        return self._cross(_Hop(func, undo, self._wake))

    def _cross(self, hop: _Hop[R]) -> R:
        self._check(hop.thread)
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
        if self._turns is not None:  # at the very end: what follows runs while the loop wakes up
            self._turns.give_back(lambda: self._start(hop))

    def _check(self, thread: threading.Thread) -> None:
        """Raise where this thread cannot call: nobody would ever answer it."""
        turns = self._turns
        if turns is None or not (thread is turns.running or turns.is_lost(thread) or self._closed):
            self._refuse_loop_thread()
            if turns is not None:
                raise UsageError(
                    f"thread {thread.name!r} called a host in a simulated run, where only an agent's own"
                    " thread may: make the call there, or run in real time"
                )

    def _wake(self, hop: _Hop[Any]) -> None:
        """On the loop: let a thread go on that has its answer."""
        if self._turns is None:
            hop.settled.set()
        else:
            self._turns.hand_over_soon(hop.thread, hop.settled.set)

    def _start(self, hop: _Hop[R]) -> None:
        if self._is_handing_over:
            self._next = hop
            return
        try:
            if self._turns is None:
                self._tasks.start_soon(hop.run)
            else:
                self._tasks.start_soon(self._serve, self._turns, hop)
        except RuntimeError:  # the agent's tasks have ended between the hop and now
            hop.settle_error(self._ending())

    async def _serve(self, turns: Turns, first: _Hop[Any]) -> None:
        """In a simulated run: answer a thread's calls, one after the other, until none follows at once."""
        hop: _Hop[Any] | None = first
        while hop is not None and await hop.work():
            try:
                if hop.is_plain:
                    await turns.let_others_go()
            finally:  # cancelled or not, the thread has its answer
                self._is_handing_over = True
                turns.hand_over(hop.thread, hop.settled.set)
                self._is_handing_over = False
                hop, self._next = self._next, None

    def _give_up(self, hop: _Hop[R]) -> None:
        """In the thread, which was interrupted: returns when the loop has finished with this hop."""
        with self._lock:
            if self._closed:
                return
            self._loop.call_soon_threadsafe(hop.give_up)
        hop.settled.wait()

    def _forget(self, hop: _Hop[R]) -> None:
        self._under_way.pop(hop, None)  # one step, which needs no lock

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

    __slots__ = (
        "_error",
        "_func",
        "_is_given_up",
        "_is_settled",
        "_result",
        "_scope",
        "_undo",
        "_wake",
        "is_over",
        "is_plain",
        "settled",
        "thread",
    )

    def __init__(
        self,
        func: Callable[[], Awaitable[R] | R],
        undo: Callable[[R], None] | None,
        wake: Callable[[_Hop[R]], None],
        *,
        is_plain: bool = False,
    ) -> None:
        self._func = func
        self._undo = undo
        self._wake = wake
        self._scope: anyio.CancelScope | None = None  # made on the loop: it cannot be made elsewhere
        self._is_given_up = False
        self.thread = threading.current_thread()
        self.is_plain = is_plain
        """Nothing is awaited in it."""
        self.settled = Latch()
        self._is_settled = False
        """On the loop: the thread is woken, or about to be."""
        self.is_over = False
        """The thread has its error: there is nothing to give up. Only the thread sets it."""
        self._result: R | None = None
        self._error: BaseException | None = None

    async def run(self) -> None:
        """On the loop, as a task of its own: do it and wake the thread."""
        if self._is_given_up:
            return
        try:
            with anyio.CancelScope() as self._scope:
                if await self.work():
                    self._wake(self)
        finally:
            self.settle_error(HostClosed("the call was cancelled: its agent has ended"))

    async def work(self) -> bool:
        """On the loop: do it. Tells whether the call is settled by that, and the thread to be woken."""
        try:
            made = self._func()
            result = cast("R", made) if self.is_plain else await cast("Awaitable[R]", made)
        except BaseException as error:  # AgentStopped too belongs to the thread, not to the loop
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                self.settle_error(HostClosed("the call was cancelled: its agent has ended"))
                raise
            return self._keep_error(error)
        return self._keep_result(result)

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
        if self._keep_error(error):
            self._wake(self)

    def _keep_error(self, error: BaseException) -> bool:
        if self._is_settled:
            return False
        self._error = error
        self._is_settled = True
        return True

    def _keep_result(self, result: R) -> bool:
        if self._is_given_up or self._is_settled:  # it came all the same, and nobody waits for it
            self._take_back(result)
            return False
        self._result = result
        self._is_settled = True
        return True

    def _take_back(self, result: R) -> None:
        if self._undo is not None:
            self._undo(result)
