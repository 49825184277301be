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
import heapq
import math
import random
import selectors
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import Context
from typing import Any, TypeVar, cast

from toolpost.host import pools
from toolpost.host.order import ACTOR, Queued, Shuffled, Timer
from toolpost.host.standing import own_line, stack_of_thread
from toolpost.host.turns import Turns
from toolpost.secret import get_logger

EPOCH = 1_704_067_200.0
"""What a simulated run's clock shows at its start: 2024-01-01, 00:00 UTC, in seconds since 1970."""
NEVER_SECS = 1e10
"""Three hundred years: what is due later is not waited for."""
SPINS = 1000
"""After so many rounds at one instant in which nothing was recorded, somebody polls: then time passes."""
RESOLUTION_SECS = 1e-9
"""Timers that are closer together than this are at one instant."""
CANCELLED_TIMERS = 100
"""So many are kept until they would be due; more of them only while they are the smaller part."""
POLL_SECS = 0.05
"""How long a run at real pace waits before it looks again whether what is foreign has gone."""
BLOCKED_SECS = 1.0
"""Real time that an agent's thread may take between two host calls before a warning tells where it stands."""

_log = get_logger("toolpost.simulation")
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
        self.progress = 0
        """It grows with each callback, and with each look at what is ready."""
        self._left_of_round = 0
        """Of the callbacks that were ready when this round began: those that have not run."""
        self._random = random.Random(seed) if seed else None
        self._ids = random.Random(f"ids of {seed}")
        self._virtual_selector = _Selector()
        self.turns = Turns(self)
        self.on_stall: Callable[[], None] | None = None
        """Called when nothing is ready and no timer is due; it makes something ready, or the loop raises."""
        super().__init__(self._virtual_selector)
        self._ready = Queued() if self._random is None else Shuffled(self._random)
        self.asyncgen_hooks = (self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
        """What a thread needs that runs callbacks, see `sys.set_asyncgen_hooks`."""
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
        return bool(self._ready) or (bool(self._scheduled) and self._scheduled[0].when() < due)

    # -- running -----------------------------------------------------------------------------------

    def run_forever(self) -> None:
        pulse = _Pulse(self)
        self._own_threads.add(pulse)
        pulse.start()
        try:
            with pools.watched():
                super().run_forever()
        finally:
            pulse.stop()
            self._own_threads.discard(pulse)

    def _run_once(self) -> None:
        """One round, as asyncio's own, but that agents' threads may run parts of it, and further ones."""
        if not self._left_of_round:
            self._begins_round()
        self.turns.let_go()
        while self._left_of_round:
            self.run_next()
            if self.turns.due:
                self.turns.let_go()

    def run_next(self) -> None:
        """Run the next callback of this round."""
        self.progress += 1
        self._left_of_round -= 1
        handle = self._ready.popleft()
        if not handle.cancelled():
            handle._run()

    def run_while(self, actors: Collection[tuple[str, ...]]) -> None:
        """Run what is next while it is the doing of these and nobody is due. Where none is ready, time jumps.

        Where time cannot jump, that is for the loop's own thread to deal with.
        """
        known: Any = None
        while not self.turns.due:
            while not self._left_of_round:
                if self._stopping or not self._begins_round(only_jumps=True):
                    return
            context = cast("Any", self._ready.first())._context
            if context is not known and context.get(ACTOR, ())[:1] not in actors:
                return
            known = context
            self.run_next()

    def _begins_round(self, *, only_jumps: bool = False) -> bool:
        self.progress += 1
        if self._timer_cancelled_count:
            self._drop_cancelled_timers()
        if self._stopping or self.has_ready:
            self.spin()
            # what threads have put among the callbacks is seen without a look at the pipe that they write to
            found = self._virtual_selector.select(0) if self._virtual_selector.has_owners else []
        else:
            foreign = self._foreign()
            if only_jumps and (foreign is not None or not self._scheduled):
                return False
            found = self._wait(foreign)
        self._process_events(found)
        due = self._virtual_now + self._clock_resolution
        while self._scheduled and self._scheduled[0].when() < due:
            self._ready.append(self._next_timer())
        self._left_of_round = len(self._ready)
        return True

    def _drop_cancelled_timers(self) -> None:
        if self._timer_cancelled_count > max(CANCELLED_TIMERS, len(self._scheduled) / 2):
            self._scheduled[:] = [timer for timer in self._scheduled if not timer.cancelled()]
            heapq.heapify(self._scheduled)
            self._timer_cancelled_count = 0
        while self._scheduled and self._scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            self._next_timer()

    def _next_timer(self) -> asyncio.TimerHandle:
        timer = heapq.heappop(self._scheduled)
        cast("Any", timer)._scheduled = False
        return timer

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
        timer = Timer(when, callback, args, self, context)
        timer.rank = self._timers if self._random is None else self._random.random()
        if when - self._virtual_now < NEVER_SECS:  # else it is never due, and time would pass for it alone
            heapq.heappush(self._scheduled, timer)
            timer._scheduled = True
        return timer

    def _wait(self, foreign: tuple[str, tuple[str, ...]] | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing is ready: let time pass until something is.

        Args:
            foreign: As before the look at the selector: what it has done before it went is seen then.
        """
        timeout = self._scheduled[0].when() - self._virtual_now if self._scheduled else None
        found = self._virtual_selector.select(0)
        if found:
            return found
        if foreign is not None:
            self._warn_of(foreign)
            return self._pass_real_time(timeout)
        if timeout is not None:
            self._pass(timeout)
        elif self.on_stall is None or not self._recovers(self.on_stall):
            raise Stalled("nothing is ready and no timer is due: everything waits for something else")
        return []

    def _recovers(self, on_stall: Callable[[], None]) -> bool:
        on_stall()
        return bool(self._ready or self._scheduled)

    def _pass_real_time(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        start = time.monotonic()
        found = self._virtual_selector.select(POLL_SECS if timeout is None else min(timeout, POLL_SECS))
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
        if not self._ready:
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
        if (where := pools.job()) is not None:
            return f"a job in {where}", ()
        ours = self.turns.under_way + sum(thread.is_alive() for thread in self._own_threads)
        if threading.active_count() > ours:  # counted first: agents may have thousands
            for thread in threading.enumerate():
                if not self._is_own(thread):
                    return f"the thread {thread.name!r}", ()
        return None

    def _is_own(self, thread: threading.Thread) -> bool:
        if thread in self._own_threads or self.turns.has(thread) or pools.has(thread):
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

    _ready: Queued | Shuffled
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool
    _timer_cancelled_count: int
    _asyncgen_firstiter_hook: Callable[..., None]
    _asyncgen_finalizer_hook: Callable[..., None]
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]

    def _check_thread(self) -> None:
        if threading.current_thread() is not self.turns.running:  # else this thread stands still for it
            cast("Any", super())._check_thread()

    def _check_closed(self) -> None:
        cast("Any", super())._check_closed()


class _Pulse(threading.Thread):
    """Warns where one thread holds up the run: an agent that computes, or blocks."""

    def __init__(self, loop: SimulatedLoop) -> None:
        super().__init__(name="toolpost pulse", daemon=True)
        self._loop = loop
        self._held = threading.current_thread()
        self._is_over = threading.Event()

    def run(self) -> None:
        before = told = -1
        while not self._is_over.wait(BLOCKED_SECS):
            now = self._loop.progress
            if now == before != told:
                self._warn()
                told = now
            before = now

    def stop(self) -> None:
        """The loop has stopped. Returns when this thread has gone."""
        self._is_over.set()
        self.join()

    def _warn(self) -> None:
        thread, has_done = self._loop.turns.running or self._held, self._loop.turns.held_by
        task = asyncio.current_task(self._loop)
        where = own_line(stack_of_thread(thread))
        _log.warning(
            "%s has %s for %g s of real time, and the simulation waits for it%s",
            thread.name if has_done else "a callback" if task is None else task.get_name(),
            has_done or "let nobody else run",
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


class _Selector(selectors.BaseSelector):
    """A real selector that knows whose the files in it are."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self._owners: dict[int, tuple[str, ...]] = {}
        self._own: int | None = None
        """The loop's own pipe, by which threads wake it: the first that it registers."""

    @property
    def has_owners(self) -> bool:
        """Whether anything but the loop's own pipe is registered."""
        return bool(self._owners)

    def owners(self) -> Iterator[tuple[str, ...]]:
        """Whose files are registered."""
        yield from self._owners.values()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready within that many real seconds."""
        return self._real.select(timeout)

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
