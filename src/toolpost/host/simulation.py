"""A run as a simulation: virtual time, and one order of everything.

`SimulatedLoop` is an asyncio loop whose clock stands still while anything is ready, and jumps to the next
timer when nothing is. Nothing else knows of it: the loop is the clock.

The threads of sync agents take turns with the loop (`Turns`): one runs, all others stand still. So what
happens is a function of the config, the agents and the seed. The seed chooses among what is ready at one
virtual instant: which actor's callback runs first, which of two timers that are due fires first. Seed 0 is
first come, first served. An actor is an agent or a pump; what one does keeps its order under every seed.

The clock jumps only when nothing *foreign* is pending: a socket, a process, an executor's job, a thread that
an agent has started. While something is, the run goes at the pace of real time, since a jump would fire the
time-outs of whoever waits for it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import heapq
import math
import random
import selectors
import sys
import threading
import time
import uuid
from asyncio import events
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import Any, TypeVar, cast

from toolpost.host.standing import own_line, stack_of_thread
from toolpost.secret import get_logger

EPOCH = 1_704_067_200.0
"""What a simulated run's clock shows at its start: 2024-01-01, 00:00 UTC, in seconds since 1970."""
NEVER_SECS = 1e10
"""Three hundred years: what is due later is not waited for."""
SPINS = 1000
"""After so many rounds at one instant in which nothing was recorded, somebody polls: then time passes."""
RESOLUTION_SECS = 1e-9
"""Timers that are closer together than this are at one instant."""
YIELDING = 0.1
"""How likely an actor lets all others go first after one of its callbacks."""
POLL_SECS = 0.05
"""How long a run at real pace waits before it looks again whether what is foreign has gone."""
BLOCKED_SECS = 1.0
"""Real time that an agent's thread may take between two host calls before a warning tells where it stands."""

ACTOR: ContextVar[tuple[str, ...]] = ContextVar("toolpost actor", default=())
"""Whose doing the current callback is: an agent's name, and behind it the pump's number; () is the house."""

_log = get_logger("toolpost.simulation")
_pools: Any = concurrent.futures.thread  # what it keeps of its threads has no public name
_pool_threads: Any = _pools._threads_queues
"""Every thread of a `ThreadPoolExecutor`, and the queue of its jobs."""
_OURS = ("toolpost ", "agent ")
"""How our threads are called: those of other runs in this process too."""
T = TypeVar("T")


class Stalled(RuntimeError):
    """Nothing is ready, and no timer is due: the loop would wait for ever."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. It begins at 0, in seconds."""

    def __init__(self, seed: int = 0) -> None:
        self._virtual_now = 0.0
        self._timers = 0
        self._jobs: dict[object, tuple[str, ...]] = {}
        self._processes: list[tuple[asyncio.SubprocessTransport, tuple[str, ...]]] = []
        self._own_threads = set(threading.enumerate())
        self._warned = False
        self.tasks_made = 0
        self._spun = 0
        """Rounds, and calls in place, at this instant since anything was recorded."""
        self.turns_of_loop = 0
        """How often the loop has gone round."""
        self._random = random.Random(seed) if seed else None
        self._ids = random.Random(f"ids of {seed}")
        self._virtual_selector = _Selector(self)
        self.turns = Turns(self)
        self.on_stall: Callable[[], None] | None = None
        """Called when nothing is ready and no timer is due; it makes something ready, or the loop raises."""
        super().__init__(self._virtual_selector)
        if self._random is not None:
            self._ready = _Ready(self._random)
        self.set_task_factory(cast("Any", _Task))

    # -- what a run takes from it ------------------------------------------------------------------

    def new_id(self) -> str:
        """The next UUID of this seed."""
        return str(uuid.UUID(int=self._ids.getrandbits(128), version=4))

    def shuffled(self, items: Sequence[T]) -> Sequence[T]:
        """In the order of chance."""
        return items if self._random is None else self._random.sample(items, len(items))

    @property
    def has_ready(self) -> bool:
        """Whether anything but the current callback can run at this instant."""
        due = self._virtual_now + self._clock_resolution
        return bool(self._ready) or (bool(self._scheduled) and self._scheduled[0].when() <= due)

    def run_forever(self) -> None:
        pulse = _Pulse(self)
        self._own_threads.add(pulse)
        pulse.start()
        try:
            super().run_forever()
        finally:
            pulse.stop()
            self._own_threads.discard(pulse)

    # -- the clock ---------------------------------------------------------------------------------

    def time(self) -> float:
        return self._virtual_now

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_closed()
        self._timers += 1
        timer = _Timer(when, callback, args, self, context)
        timer.rank = self._timers if self._random is None else self._random.random()
        if when - self._virtual_now < NEVER_SECS:  # else it is never due, and time would pass for it alone
            heapq.heappush(self._scheduled, timer)
            timer._scheduled = True
        return timer

    def idle(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing is ready: let time pass until something is, at most `timeout` virtual seconds."""
        foreign = self._foreign()  # before the look: what it does before it goes is seen then
        found = self._virtual_selector.poll(0)
        if found:
            return found
        if foreign is not None:
            self._warn_of(foreign)
            return self._pass_real_time(timeout)
        if timeout is not None:
            # asyncio itself waits a day at most
            due = self._scheduled[0].when() - self._virtual_now if self._scheduled else timeout
            self._pass(max(timeout, due))
        elif self.on_stall is None or not self._recovers(self.on_stall):
            raise Stalled("nothing is ready and no timer is due: everything waits for something else")
        return []

    def _recovers(self, on_stall: Callable[[], None]) -> bool:
        on_stall()
        return bool(self._ready or self._scheduled)

    def _pass_real_time(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        start = time.monotonic()
        found = self._virtual_selector.poll(POLL_SECS if timeout is None else min(timeout, POLL_SECS))
        passed = time.monotonic() - start
        self._pass(passed if timeout is None else min(passed, timeout))
        return found

    def note_progress(self) -> None:
        """Something was recorded: nobody merely polls."""
        self._spun = 0

    def spin(self) -> None:
        """One more round at this instant. Somebody who polls would go on for ever: time passes then."""
        self._spun += 1
        if self._spun > SPINS and self._scheduled:
            self._pass(max(0.0, self._scheduled[0].when() - self._virtual_now))

    def _pass(self, seconds: float) -> None:
        self._spun = 0
        self._virtual_now += seconds
        # a timer is due up to this much early: by less than numbers of this size can tell apart, never
        self._clock_resolution = max(RESOLUTION_SECS, 2 * math.ulp(self._virtual_now))
        if isinstance(self._ready, _Ready) and not self._ready:
            self._ready.begin_instant()

    # -- what is foreign ---------------------------------------------------------------------------

    def _foreign(self) -> tuple[str, tuple[str, ...]] | None:
        """What goes on outside of the simulation, and whose doing it is; None if nothing does."""
        for actor in self._jobs.values():
            return "a job in an executor", actor
        self._processes = [each for each in self._processes if each[0].get_returncode() is None]
        for _, actor in self._processes:
            return "a process", actor
        for actor in self._virtual_selector.owners():
            return "a socket or a pipe", actor
        for thread, jobs in tuple(_pool_threads.items()):
            if thread.is_alive() and (jobs.qsize() or _is_busy(thread)):
                return f"a job in the pool of {thread.name!r}", ()
        ours = self.turns.under_way + sum(thread.is_alive() for thread in self._own_threads)
        if threading.active_count() > ours:  # counted first: agents may have thousands
            for thread in threading.enumerate():
                if not self._is_own(thread):
                    return f"the thread {thread.name!r}", ()
        return None

    def _is_own(self, thread: threading.Thread) -> bool:
        if thread in self._own_threads or self.turns.has(thread) or thread in _pool_threads:
            return True
        idle: Any = getattr(thread, "idle_workers", ())  # anyio's, between its jobs
        return thread in idle or thread.name.startswith(_OURS)

    def _warn_of(self, foreign: tuple[str, tuple[str, ...]]) -> None:
        if not self._warned:
            self._warned = True
            what, actor = foreign
            whose = f"agent {actor[0]!r}" if actor else "somebody"
            _log.warning(
                "%s waits for %s, which the simulation knows nothing of: until it is back, time passes as it"
                " does outside, and runs may differ",
                whose,
                what,
            )

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        job = super().run_in_executor(executor, func, *args)
        self._jobs[job] = ACTOR.get()
        job.add_done_callback(lambda done: self._jobs.pop(done, None))
        return job

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_process(await super().subprocess_exec(*args, **kwargs))

    async def subprocess_shell(self, *args: Any, **kwargs: Any) -> Any:
        return self._with_process(await super().subprocess_shell(*args, **kwargs))

    def _with_process(self, made: Any) -> Any:
        self._processes.append((made[0], ACTOR.get()))
        return made

    # -- asyncio's own, as typeshed does not have it -----------------------------------------------

    _ready: Any
    _scheduled: list[asyncio.TimerHandle]

    def _check_thread(self) -> None:
        if threading.current_thread() is not self.turns.running:  # else this thread stands still for it
            cast("Any", super())._check_thread()

    def _check_closed(self) -> None:
        cast("Any", super())._check_closed()


def _is_busy(thread: threading.Thread) -> bool:
    """Whether a pool's thread is at a job; else it waits for one, in the function of the pool itself."""
    frame = sys._current_frames().get(thread.ident or 0)  # pyright: ignore[reportPrivateUsage]: the documented way
    return frame is not None and frame.f_code is not _pools._worker.__code__


class _Pulse(threading.Thread):
    """Warns, once, where a callback holds up the loop: an async agent that computes, or blocks."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(name="toolpost pulse", daemon=True)
        self._loop = loop
        self._held = threading.current_thread()
        self._is_over = threading.Event()

    def run(self) -> None:
        before = -1
        while not self._is_over.wait(BLOCKED_SECS):
            now = self._loop.turns_of_loop
            if now == before and self._loop.turns.running is None:  # else its thread is told of there
                self._warn()
                return
            before = now

    def stop(self) -> None:
        """The loop has stopped. Returns when this thread has gone."""
        self._is_over.set()
        self.join()

    def _warn(self) -> None:
        task = asyncio.current_task(self._loop)
        where = own_line(stack_of_thread(self._held))
        _log.warning(
            "%s has let nobody else run for %g s of real time, and the simulation waits for it%s",
            "a callback" if task is None else task.get_name(),
            BLOCKED_SECS,
            where and f"; it stands at {where}",
        )


class _Task(asyncio.Task[Any]):
    """A task whose hash is its number, so that sets of tasks, as in `TaskGroup`, are the same in each run."""

    def __init__(self, loop: SimulatedLoop, coro: Any, **kwargs: Any) -> None:
        loop.tasks_made += 1
        self._number = loop.tasks_made
        super().__init__(coro, loop=loop, **kwargs)

    __eq__ = object.__eq__

    def __hash__(self) -> int:
        return self._number


class _Timer(events.TimerHandle):
    """A timer that knows which of those at the same instant comes first."""

    rank: float

    def __lt__(self, other: Any) -> bool:
        return (self.when(), self.rank) < (other.when(), other.rank)


class _Ready:
    """The callbacks that are ready: each actor's in order, and by chance whose is next.

    Each actor draws a priority for an instant, and the first in order goes on while it has something ready.
    So one that needs many callbacks to its next call comes first as often as one that needs few, which a
    choice for each callback would not give. Now and then one goes behind all others, so that none, going on
    for ever, can keep them waiting: a cancellation is delivered again and again until it is heeded.
    """

    def __init__(self, chance: random.Random) -> None:
        self._random = chance
        self._queues: dict[Hashable, deque[asyncio.Handle]] = {}
        self._order: list[tuple[float, Hashable]] = []
        """A heap of those that have something ready, by their priorities."""
        self._came: deque[asyncio.Handle] = deque()
        """What other threads may have put there; only the loop's own sorts it into the queues."""
        self._priorities: dict[Hashable, float] = {}
        self._last = 1
        """No priority is behind it; those that are drawn are below 1."""
        self._size = 0

    def append(self, handle: asyncio.Handle) -> None:
        self._came.append(handle)

    def _sort_in(self, handle: asyncio.Handle) -> None:
        actor = cast("Any", handle)._context.get(ACTOR, ())
        queue = self._queues.get(actor)
        if queue is None:
            queue = self._queues[actor] = deque()
            if actor not in self._priorities:
                self._priorities[actor] = self._random.random()
            heapq.heappush(self._order, (self._priorities[actor], actor))
        queue.append(handle)
        self._size += 1

    def popleft(self) -> asyncio.Handle:
        while self._came:
            self._sort_in(self._came.popleft())
        _, actor = heapq.heappop(self._order)
        queue = self._queues[actor]
        handle = queue.popleft()
        self._size -= 1
        if self._random.random() < YIELDING:
            self._last += 1
            self._priorities[actor] = self._last
        if queue:
            heapq.heappush(self._order, (self._priorities[actor], actor))
        else:
            del self._queues[actor]
        return handle

    def begin_instant(self) -> None:
        """Time has passed: priorities are drawn anew."""
        self._priorities.clear()
        self._last = 1

    def clear(self) -> None:
        self._came.clear()
        self._queues.clear()
        self._order.clear()
        self._size = 0

    def __len__(self) -> int:
        return self._size + len(self._came)


class _Selector(selectors.BaseSelector):
    """The loop's way to wait: it polls a real selector, and lets the loop's clock jump."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._real = selectors.DefaultSelector()
        self._owners: dict[int, tuple[str, ...]] = {}
        self._own: int | None = None
        """The loop's own pipe, by which threads wake it: the first that it registers."""

    def poll(self, timeout: float) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready within that many real seconds."""
        return self._real.select(timeout)

    def owners(self) -> Iterator[tuple[str, ...]]:
        """Whose files are registered."""
        yield from self._owners.values()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.turns_of_loop += 1
        if timeout is not None and timeout <= 0:
            self._loop.spin()
            # what threads have put among the callbacks is seen without a look at the pipe that they write to
            return self._real.select(0) if self._owners else []
        return self._loop.idle(timeout)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._real.register(fileobj, events, data)
        if self._own is None:
            self._own = key.fd
        elif key.fd != self._own:
            self._owners[key.fd] = ACTOR.get()
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._real.unregister(fileobj)
        self._owners.pop(key.fd, None)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class Turns:
    """The threads of sync agents take turns with the loop's thread: one of all runs.

    A thread gets its turn when its host call is answered, and gives it back with its next one, or its end. In
    between the loop's thread stands still. A call that waits for nothing keeps the turn where nobody else
    could go on.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._threads: set[threading.Thread] = set()
        self._lost: set[threading.Thread] = set()
        """Those that nobody waits for any more: they run beside the loop, as in real time."""
        self._ended = 0
        self._is_interrupted = False
        self._stayed = False
        """The thread that has the turn has made a host call without giving it back."""
        self._giving = threading.Lock()
        self._back = threading.Lock()
        self._back.acquire()
        self._then: Callable[[], None] | None = None
        self.running: threading.Thread | None = None
        """The agent's thread that has the turn."""

    @property
    def under_way(self) -> int:
        """How many threads take part that have not come to their end."""
        return len(self._threads) - self._ended

    def has(self, thread: threading.Thread) -> bool:
        """Whether it takes part."""
        return thread in self._threads

    def is_lost(self, thread: threading.Thread) -> bool:
        """Whether nobody waits for it any more."""
        return thread in self._lost

    def hand_over_soon(self, thread: threading.Thread, wake: Callable[[], None]) -> None:
        """On the loop: `hand_over`, among what is ready then."""
        self._loop.call_soon(self.hand_over, thread, wake)

    def in_place(self, func: Callable[[], T]) -> list[T]:
        """In the thread that has the turn: its result, where the loop would do nothing else before it.

        The loop stands still meanwhile, so this thread can do its work. Gives nothing where somebody else is
        ready, who may come first: then the turn is to be given back.
        """
        with self._giving:  # nobody decides now that this thread is waited for no more
            if (
                self._lost  # nothing waits for anything any more
                or self._loop.has_ready
                or threading.current_thread() is not self.running
                or events._get_running_loop() is not None  # within such a call already
            ):
                return []
            self._stayed = True
            self._loop.spin()
            events._set_running_loop(self._loop)
            try:
                return [func()]
            finally:
                events._set_running_loop(None)

    async def let_others_go(self) -> None:
        """Let those run first that are ready, if there are any."""
        if self._loop.has_ready:
            await asyncio.sleep(0)

    def hand_over(self, thread: threading.Thread, wake: Callable[[], None]) -> None:
        """On the loop: let a thread run until it gives the turn back; then do what it came for."""
        if thread in self._lost:
            wake()
            return
        self._threads.add(thread)
        self.running = thread
        self._stayed = False
        wake()
        if not self._back.acquire(True, BLOCKED_SECS) and not self._wait_long(thread):
            self.running = None
            return
        self.running = None
        then, self._then = self._then, None
        if then is not None:
            then()

    def _wait_long(self, thread: threading.Thread) -> bool:
        """Wait for a thread that takes its time; tells whether it came back before an interrupt."""
        self._warn_of(thread)
        while not self._is_interrupted:
            if self._back.acquire(timeout=BLOCKED_SECS):
                return True
        with self._giving:  # it may come back at this very moment
            came_back = self._back.acquire(blocking=False)
            if not came_back:
                self._lost.add(thread)
        return came_back

    def interrupt(self) -> None:
        """From any thread: wait no more for one that keeps its turn. The run is about to be ended."""
        self._is_interrupted = True

    def give_back(self, then: Callable[[], None]) -> None:
        """In the thread that has the turn: let the loop go on, with `then` first."""
        with self._giving:
            if threading.current_thread() not in self._lost:
                self._then = then
                self._back.release()
                return
        with suppress(RuntimeError):  # the loop has closed since
            self._loop.call_soon_threadsafe(then)

    def leave(self, then: Callable[[], None]) -> None:
        """As `give_back`, and never to have a turn again."""
        self._ended += 1
        self.give_back(then)

    def _warn_of(self, thread: threading.Thread) -> None:
        where = own_line(stack_of_thread(thread))
        _log.warning(
            "%s has %s for %g s of real time, and the simulation waits for it%s",
            thread.name,
            "waited in no host call" if self._stayed else "made no host call",
            BLOCKED_SECS,
            where and f"; it stands at {where}",
        )
