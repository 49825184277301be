"""The way of a thread into the event loop and back: one hop there, one back.

A sync agent's thread stands still while the loop works for it. It can be interrupted (Ctrl-C in a main
thread), at any of its steps: what it waited for is then cancelled first, so that nothing goes on without it,
and what had come of it already is taken back (`undo`), so that nothing is lost with it.

In a simulated run one task serves an agent's thread, call after call, and pauses while the thread is in its
own code. It goes on with the thread's next call as an async agent's task does with its own, in the same
callback of the loop: so both kinds give the same run. Which thread runs the loop is for `turns.py` to say.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio

from toolpost.errors import HostClosed, UsageError
from toolpost.host.cancelling import Tasks, is_cancelled
from toolpost.host.simulation import SimulatedLoop

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

    def call(
        self, func: Callable[[], R], undo: Callable[[R], None] | None = None, *, polls: bool = False
    ) -> R:
        """The result of a plain function, called on the loop. `undo` is as for `cross`.

        One that `polls` lets others go on in a simulated run: else an agent that polls would wait for ever.
        """
        turns = self._turns
        if turns is None or self._closed or not (done := turns.in_place(func)):
            return self._cross(_Hop(func, undo), self._do)
        if polls and turns.has_to_wait():
            self.wait_for(asyncio.sleep, 0)
        return done[0]

    def wait_for(self, func: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of an async function, awaited on the loop."""

        async def bound() -> R:
            return await func(*args, **kwargs)

        return self.cross(bound)

    def cross(self, func: Callable[[], Awaitable[R]], undo: Callable[[R], None] | None = None) -> R:
        """The result of `func`, awaited on the loop. Where the thread is interrupted, `undo` gets it."""
        turns = self._turns
        if turns is None or self._closed or (player := turns.come()) is None:
            return self._cross(_Hop(func, undo), self._start)
        hop = _Hop(func, undo)
        hop.wake = player.go_on_soon
        if player.pause.is_over:  # it is another agent's thread, and that one has ended
            hop.settle_error(HostClosed("the call was cancelled: its agent has ended"))
        self._under_way[hop] = None
        try:
            turns.call(player, hop)
            return hop.result()
        except BaseException:
            if not hop.is_over:  # in what it was interrupted, it cannot wait for the loop
                hop.wake = _wake_nobody
                self._give_up(hop)
            raise
        finally:
            self._forget(hop)

    def _cross(self, hop: _Hop[R], start: Callable[[_Hop[R]], None]) -> R:
        self._check()
        settled = Latch()
        hop.wake = settled.set
        try:
            self._send(hop, start)
            settled.wait()
            result = hop.result()
            self._forget(hop)
            return result
        except BaseException:
            if not hop.is_over and self._give_up(hop):
                settled.wait()
            self._forget(hop)
            raise

    def close(self) -> None:
        """Wake every thread that still waits; that call and later ones raise. On the loop."""
        with self._lock:
            self._closed = True
            left = tuple(self._under_way)
        for hop in left:
            hop.settle_error(self._ending())

    def _send(self, hop: _Hop[R], start: Callable[[_Hop[R]], None]) -> None:
        with self._lock:
            if self._closed:
                hop.is_over = True
                raise self._ending()
            self._under_way[hop] = None
            self._loop.call_soon_threadsafe(start, hop)

    def _check(self) -> None:
        """Raise where this thread cannot call: nobody would ever answer it."""
        self._refuse_loop_thread()
        thread = threading.current_thread()
        if self._turns is not None and not (self._turns.is_lost(thread) or self._closed):
            raise UsageError(
                f"thread {thread.name!r} called a host in a simulated run, where only an agent's own"
                " thread may: make the call there, or run in real time"
            )

    def _start(self, hop: _Hop[Any]) -> None:
        try:
            self._tasks.start_soon(hop.run)
        except RuntimeError:  # the agent's tasks have ended between the hop and now
            hop.settle_error(self._ending())

    def _do(self, hop: _Hop[Any]) -> None:
        if self._closed:
            hop.settle_error(self._ending())
        else:
            hop.do()

    # -- an agent's thread -------------------------------------------------------------------------

    @property
    def is_simulated(self) -> bool:
        """Whether `serve` is needed."""
        return self._turns is not None

    async def serve(self, thread: threading.Thread) -> None:
        """In a simulated run: start an agent's thread, and answer its calls, to its end."""
        assert self._turns is not None, "the run is simulated"
        player = self._turns.begin(thread)
        try:
            while (hop := await player.pause) is not None:
                if await hop.work():
                    self._turns.due.append(player)
        finally:
            player.pause.is_over = True

    def leave(self, then: Callable[[], object]) -> None:
        """In an agent's thread, at its end: let the loop do `then`, or, in a simulated run, end `serve`."""
        if self._turns is not None:
            self._turns.leave()
        else:
            with suppress(RuntimeError):  # left behind, and the loop has closed since
                self._loop.call_soon_threadsafe(then)

    # -- interrupted -------------------------------------------------------------------------------

    def _give_up(self, hop: _Hop[R]) -> bool:
        """In the thread, which was interrupted; tells whether the loop will have to finish with this hop."""
        with self._lock:
            if not self._closed:
                self._loop.call_soon_threadsafe(hop.give_up)
            return not self._closed

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


def _wake_nobody() -> None:
    """For a thread that goes on already."""


class _Hop(Generic[R]):
    """One call from a thread, and what came of it."""

    __slots__ = (
        "_error",
        "_func",
        "_is_given_up",
        "_is_settled",
        "_result",
        "_scope",
        "_undo",
        "is_over",
        "wake",
    )

    def __init__(self, func: Callable[[], Any], undo: Callable[[R], None] | None) -> None:
        self._func = func
        """Plain for `do`, async for `run` and `work`."""
        self._undo = undo
        self.wake: Callable[[], object]
        """On the loop: let the thread go on, which has its answer."""
        self._scope: anyio.CancelScope | None = None  # made on the loop: it cannot be made elsewhere
        self._is_given_up = False
        self._is_settled = False
        """On the loop: the thread is woken, or about to be."""
        self.is_over = False
        """The thread has its error: there is nothing to give up. Only the thread sets it."""
        self._result: R | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """On the loop, at once: do it and wake the thread."""
        if self._is_given_up:
            return
        try:
            result = self._func()
        except BaseException as error:  # AgentStopped too belongs to the thread, not to the loop
            self.settle_error(error)
        else:
            if self._keep_result(result):
                self.wake()

    async def run(self) -> None:
        """On the loop, as a task of its own: do it and wake the thread."""
        if self._is_given_up:
            return
        try:
            with anyio.CancelScope() as self._scope:
                if await self.work():
                    self.wake()
        finally:
            self.settle_error(HostClosed("the call was cancelled: its agent has ended"))

    async def work(self) -> bool:
        """On the loop: do it. Tells whether the call is settled by that, and the thread to be woken."""
        try:
            result = await self._func()
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                self.settle_error(HostClosed("the call was cancelled: its agent has ended"))
                raise
            return self._keep_error(error)
        return self._keep_result(result)

    def result(self) -> R:
        """In the thread, once it is settled."""
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
            self.wake()

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
