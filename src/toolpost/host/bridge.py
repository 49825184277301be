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
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, cast

import anyio

from toolpost.errors import HostClosed, UsageError
from toolpost.host.cancelling import Tasks, Work, is_cancelled
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


class Landing:
    """Where the calls of all threads arrive on the loop. To wake it is a system call: one for many calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._came: deque[tuple[Callable[[_Hop[Any]], None], _Hop[Any]]] = deque()
        self._is_woken = False

    def put(self, start: Callable[[_Hop[Any]], None], hop: _Hop[Any]) -> None:
        """In any thread: have `start` called with `hop`, on the loop.

        Raises:
            RuntimeError: The loop has closed.
        """
        if threading.current_thread() is threading.main_thread():
            # An interrupt could come between any two steps, and nobody would wake the loop any more.
            self._loop.call_soon_threadsafe(start, hop)
            return
        self._came.append((start, hop))
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:
                self._is_woken = False
                raise

    def _take(self) -> None:
        self._is_woken = False  # before: what comes from now on, and is not taken below, wakes it again
        try:
            for _ in range(len(self._came)):
                start, hop = self._came.popleft()
                start(hop)
        except BaseException:  # an interrupt, in the loop's own thread: the others are not forgotten for it
            self._loop.call_soon(self._take)
            raise


class Bridge:
    """Runs functions on the loop for the threads of one agent."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tasks: Tasks,
        ending: Callable[[], BaseException],
        is_stopped: Callable[[], bool],
        landing: Landing,
    ) -> None:
        self._loop = loop
        self._landing = landing
        self._tasks = tasks
        self._ending = ending
        """What a call raises once its agent has ended."""
        self._is_stopped = is_stopped
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

    def cross(
        self,
        func: Callable[[], Awaitable[R]],
        undo: Callable[[R], None] | None = None,
        *,
        begins: bool = False,
    ) -> R:
        """The result of `func`, awaited on the loop. Where the thread is interrupted, `undo` gets it.

        One that `begins` may be called outside of a task, and a future that it gives needs none.
        """
        turns = self._turns
        if turns is None or self._closed or (player := turns.come()) is None:
            return self._cross(_Hop(func, undo), self._begin if begins else self._start)
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
            hop.is_given_up = True  # first, in one step: another interrupt may come in any of the next
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
            self._landing.put(start, hop)

    def _check(self) -> None:
        """Raise where this thread cannot call: nobody would ever answer it."""
        self._refuse_loop_thread()
        thread = threading.current_thread()
        if self._turns is not None and not (self._turns.is_lost(thread) or self._closed):
            raise UsageError(
                f"thread {thread.name!r} called a host in a simulated run, where only an agent's own"
                " thread may: make the call there, or run in real time"
            )

    def _begin(self, hop: _Hop[Any]) -> None:
        if self._closed:
            hop.settle_error(self._ending())
        elif not hop.begin(self._ending_if_stopped):
            self._start(hop)

    def _start(self, hop: _Hop[Any]) -> None:
        try:
            self._tasks.start_soon(hop.run)
        except RuntimeError:  # the agent's tasks have ended between the hop and now
            hop.settle_error(self._ending())

    def _ending_if_stopped(self) -> BaseException | None:
        return self._ending() if self._is_stopped() else None

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
        "_begun",
        "_error",
        "_func",
        "_is_settled",
        "_result",
        "_undo",
        "_work",
        "is_given_up",
        "is_over",
        "wake",
    )

    def __init__(self, func: Callable[[], Any], undo: Callable[[R], None] | None) -> None:
        self._func = func
        """Plain for `do`, async for `run` and `work`."""
        self._undo = undo
        self._begun: Awaitable[R] | None = None
        """What came of `begin`, and is to be awaited."""
        self.wake: Callable[[], object]
        """On the loop: let the thread go on, which has its answer."""
        self._work: Work | None = None
        """What is done, once that has begun."""
        self.is_given_up = False
        """The thread was interrupted: what comes from now on is taken back. Set on both sides."""
        self._is_settled = False
        """On the loop: the thread is woken, or about to be."""
        self.is_over = False
        """The thread has its error: there is nothing to give up. Only the thread sets it."""
        self._result: R | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        """On the loop, at once: do it and wake the thread."""
        if self.is_given_up:
            return
        try:
            result = self._func()
        except BaseException as error:  # AgentStopped too belongs to the thread, not to the loop
            self.settle_error(error)
        else:
            if self._keep_result(result):
                self.wake()

    def begin(self, ending: Callable[[], BaseException | None]) -> bool:
        """On the loop, at once: begin. Where that needs no task, wake the thread when it is done.

        Args:
            ending: What the thread is told in place of a cancellation, if that was the agent's end.
        """
        if self.is_given_up:
            return True
        begun: Awaitable[R] = self._func()
        if not isinstance(begun, asyncio.Future):
            self._begun = begun
            return False
        coming: asyncio.Future[R] = begun
        self._work = coming
        coming.add_done_callback(partial(self._take_outcome, ending))
        return True

    def _take_outcome(self, ending: Callable[[], BaseException | None], outcome: asyncio.Future[Any]) -> None:
        try:
            result = outcome.result()
        except asyncio.CancelledError as error:
            self.settle_error(ending() or error)
        except BaseException as error:
            self.settle_error(error)
        else:
            if self._keep_result(result):
                self.wake()
            else:  # it was given up, and is waited for all the same
                self.settle_error(HostClosed("the call was interrupted"))

    async def run(self) -> None:
        """On the loop, as a task of its own: do it and wake the thread."""
        if self.is_given_up and self._begun is None:
            return
        try:
            with anyio.CancelScope() as self._work:
                if self.is_given_up:  # what has begun is awaited all the same, to be told
                    self._work.cancel()
                if await self.work():
                    self.wake()
        finally:
            self.settle_error(HostClosed("the call was cancelled: its agent has ended"))

    async def work(self) -> bool:
        """On the loop: do it. Tells whether the call is settled by that, and the thread to be woken."""
        try:
            result = await (self._begun or self._func())
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
        self.is_given_up = True
        if self._is_settled:
            if self._error is None:
                self._take_back(cast("R", self._result))
        elif self._work is not None:
            self._work.cancel()
        elif self._begun is None:  # else its task, which is about to begin, sees to it
            self.settle_error(HostClosed("the call was interrupted"))

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
        if self.is_given_up or self._is_settled:  # it came all the same, and nobody waits for it
            self._take_back(result)
            return False
        self._result = result
        self._is_settled = True
        return True

    def _take_back(self, result: R) -> None:
        if self._undo is not None:
            self._undo(result)
