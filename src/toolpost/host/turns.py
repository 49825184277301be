"""The threads of sync agents take turns with the loop's thread: one of all runs.

A thread keeps its turn until it makes a host call that waits, or ends. It does not fall asleep then: it goes
on itself with what the loop has to do for sync agents, until one of them has its answer. Where that is this
one, no other thread was needed; else it hands its turn over and sleeps. What async agents and the house have
to do is left to the loop's own thread, which has the turn where no other has it. So their code is run by one
thread, as in real time, and what in it is bound to a thread works.

    in its own code ──call, end──▶ running the loop ──it has its answer──▶ in its own code
                                      └──another is next──▶ asleep ──it has its answer──┘
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
from asyncio import events
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context
from typing import Any, Generic, NoReturn, TypeVar

from toolpost.host.order import ACTOR

LOOK_SECS = 1.0
"""How often the loop's thread, while it waits for its turn, looks whether it is to wait any longer."""

T = TypeVar("T")


class Pause(Generic[T]):
    """What one task awaits, again and again, while the thread that it serves is in its own code.

    To asyncio it is a future. But who gives what is awaited also runs the task, here and now: by way of what
    is ready, others would come first.
    """

    _asyncio_future_blocking = False  # by this asyncio knows a future

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_over = False
        """The task has ended, or is about to."""

    def __await__(self) -> Generator[Any, None, T]:
        self._asyncio_future_blocking = True
        yield self
        return self._given

    def give(self, given: T) -> None:
        """Let the task go on with it. Without effect where the task is over."""
        if not self.is_over:
            self._given = given
            self._context.run(self._go_on, self)

    # -- for the task ------------------------------------------------------------------------------

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, go_on: Callable[[object], object], *, context: Context) -> None:
        self._go_on = go_on
        self._context = context

    def cancel(self, msg: object = None) -> bool:
        if self.is_over:
            return False
        self.is_over = True
        self._loop.call_soon(self._go_on, self, context=self._context)
        return True

    def result(self) -> None:
        if self.is_over:
            raise asyncio.CancelledError


class Player:
    """A thread that takes turns."""

    def __init__(self, thread: threading.Thread, actor: tuple[str, ...], pause: Pause[Any]) -> None:
        self.thread = thread
        self.actor = actor
        self.pause = pause
        """In which the task that serves it waits for its next call; None is its end."""
        self.runs_loop = False
        """It has done so before."""
        self.go_on_soon: Callable[[], object]
        """Lets it go on, among what is ready."""
        lock = threading.Lock()
        lock.acquire()
        self.sleep = lock.acquire
        self._wake = lock.release

    def to_wake(self) -> Callable[[], None]:
        """What lets it go on; at first it is to be started."""
        return self.thread.start if self.thread.ident is None else self._wake


class Turns:
    """Who has the turn, and who is next."""

    def __init__(self, loop: Any) -> None:  # a `SimulatedLoop`, which is made of this
        self._loop = loop
        self.due: deque[Player] = deque()
        """Those that have their answers: they go on as soon as the current callback is over."""
        self._has_turn: Player | None = None
        """None is the loop's own thread."""
        self._in_own_code: list[Player] = []
        """It, while it is. Whoever takes it out, which is one step, decides what comes of it."""
        self._stayed = False
        """The thread in its own code has made a host call and kept its turn."""
        self._players: dict[threading.Thread, Player] = {}
        self._lost: set[threading.Thread] = set()
        """Those that nobody waits for any more: they run beside the loop, as in real time."""
        self._actors: set[tuple[str, ...]] = set()
        """Whose callbacks any of the threads may run."""
        self._ended = 0
        self._is_interrupted = False
        self._back = threading.Lock()
        self._back.acquire()
        self._then: Callable[[], object] | None = None
        """What the loop's own thread is to do first when it has the turn."""

    # -- what others want to know ------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """How many threads take part that have not come to their end."""
        return len(self._players) - self._ended

    @property
    def running(self) -> threading.Thread | None:
        """The agent's thread that has the turn."""
        player = self._has_turn
        return None if player is None else player.thread

    @property
    def held_by(self) -> str | None:
        """What the thread does that has the turn and is in its own code, in words."""
        if not self._in_own_code:
            return None
        return "waited in no host call" if self._stayed else "made no host call"

    def has(self, thread: threading.Thread) -> bool:
        """Whether it takes part."""
        return thread in self._players

    def is_lost(self, thread: threading.Thread) -> bool:
        """Whether nobody waits for it any more."""
        return thread in self._lost

    def interrupt(self) -> None:
        """From any thread: wait no more for one that keeps its turn. The run is about to be ended."""
        self._is_interrupted = True
        self._actors.clear()

    # -- on the loop -------------------------------------------------------------------------------

    def begin(self, thread: threading.Thread) -> Player:
        """Start a thread, as soon as the current callback is over. Its actor is the current one."""
        player = Player(thread, ACTOR.get()[:1], Pause(self._loop))
        player.go_on_soon = functools.partial(self._loop.call_soon, self.due.append, player)
        self._players[thread] = player
        if not self._is_interrupted:
            self._actors.add(player.actor)
        self.due.append(player)
        return player

    def let_go(self) -> None:
        """In the loop's own thread, between two callbacks: give the turn to who is due."""
        while self.due:
            wake = self._to_wake(self.due.popleft())
            try:
                wake()
                while not self._back.acquire(True, LOOK_SECS):
                    if self._is_interrupted and self._take_turn():
                        break
            except BaseException:  # such as Ctrl-C, in this thread: no two may run the loop
                self.interrupt()
                if not self._take_turn():
                    self._back.acquire(True, LOOK_SECS)
                raise
            then, self._then = self._then, None
            if then is not None:
                then()

    def _take_turn(self) -> bool:
        player = self._out_of_own_code()
        if player is None:
            return False  # it gives the turn back, or has done so at this very moment
        self._lost.add(player.thread)
        self._actors.discard(player.actor)
        self._has_turn = None
        return True

    def _out_of_own_code(self) -> Player | None:
        try:
            return self._in_own_code.pop()
        except IndexError:
            return None

    def has_to_wait(self) -> bool:
        """Whether others are ready, for whom one is to wait that only looks; else it may look again."""
        if self._loop.has_ready:
            return True
        self._loop.spin()
        return False

    # -- in an agent's thread ----------------------------------------------------------------------

    def in_place(self, func: Callable[[], T]) -> list[T]:
        """Its result, if this thread has the turn: the loop stands still meanwhile. Else nothing."""
        player = self.come()
        if player is None:
            return []
        self._stayed = True
        own_loop = events._get_running_loop()
        events._set_running_loop(self._loop)
        try:
            return [func()]
        finally:
            events._set_running_loop(own_loop)
            self._in_own_code.append(player)

    def come(self) -> Player | None:
        """This thread leaves its own code, with a call to come; None if it has no turn to leave it in."""
        player = self._has_turn
        if player is None or player.thread.ident != threading.get_ident():
            return None
        return self._out_of_own_code()  # it may be in a callback, or have lost its turn at this very moment

    def call(self, player: Player, what: object) -> None:
        """Give the task that serves a thread what it is to do. Returns when the thread is due."""
        wake = self._drive(player, what)
        if wake is not None:
            wake()  # with nothing between the two: whom this wakes can go on once this thread sleeps
            player.sleep()

    def leave(self) -> None:
        """The end of this thread."""
        self._ended += 1
        player = self._players[threading.current_thread()]
        if self.come() is None:  # it was lost
            with suppress(RuntimeError):  # the loop has closed since
                self._loop.call_soon_threadsafe(player.pause.give, None)
            return
        self._actors.discard(player.actor)
        wake = self._drive(player, None)
        assert wake is not None, "it has asked for nothing"
        wake()

    def _drive(self, player: Player, what: object) -> Callable[[], object] | None:
        """Run the loop in this thread; gives what wakes the one that is next, None if it is this one."""
        if events._get_running_loop() is not None:  # the agent's own: two do not run in one thread
            self._then = functools.partial(player.pause.give, what)
            return self._to_wake_loop()
        events._set_running_loop(self._loop)
        if not player.runs_loop:
            player.runs_loop = True
            sys.set_asyncgen_hooks(*self._loop.asyncgen_hooks)
        try:
            player.pause.give(what)
            self._loop.run_while(self._actors)
            if not self.due:
                return self._to_wake_loop()
            wake = self._to_wake(self.due[0])
            return None if self.due.popleft() is player else wake
        except BaseException as error:  # such as SystemExit: what ends a loop ends it in its own thread
            self._then = functools.partial(_raise, error)
            return self._to_wake_loop()
        finally:
            events._set_running_loop(None)

    def _to_wake(self, player: Player) -> Callable[[], None]:
        self._has_turn = player
        self._in_own_code.append(player)
        self._stayed = False
        return player.to_wake()

    def _to_wake_loop(self) -> Callable[[], None]:
        self._has_turn = None
        return self._back.release


def _raise(error: BaseException) -> NoReturn:
    raise error
