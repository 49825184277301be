"""The limit of a case in real time: a thread that ends what does not end by itself.

    running ──(time is up)──▶ asking: the loop is told to end the agents
       asking ──(the loop does)──▶ ending: it has as long as closing takes
       asking, ending ──(it does not)──▶ breaking: an exception is raised in the thread that holds it up
          breaking ──(that does not help either)──▶ stuck: whoever runs cases is told, and must leave

Whatever state it is in, a run that ends in time is over, and nothing more is done to it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import TracebackType

from toolpost.errors import AgentStopped

ASKING_SECS = 2.0
"""How long a loop may take to hear that the time is up: it does little else."""
ENDING_SECS = 30.0
"""How long agents, toolings and the loop may take to end; each wait of theirs is bounded by itself."""
BREAKING_SECS = 2.0
"""How long a thread may take to end by the exception that is raised in it."""


class Watchdog:
    """Around a run, in the thread that runs it."""

    def __init__(
        self,
        seconds: float,
        *,
        ask: Callable[[Callable[[], None]], None],
        on_silent: Callable[[], int | None],
        on_stuck: Callable[[], None],
    ) -> None:
        """What happens once `seconds` have passed; each is called in the watchdog's thread.

        Args:
            seconds: The limit.
            ask: Told to end the run, and given what to call, from anywhere, when it has heard.
            on_silent: Nobody has heard, or the end takes too long; gives the thread that holds it up. None is
                the one that runs it.
            on_stuck: Nothing has helped.
        """
        self._seconds = seconds
        self._ask = ask
        self._on_silent = on_silent
        self._on_stuck = on_stuck
        self._thread_id = threading.get_ident()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="toolpost watchdog", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._lock:  # no exception is raised in this thread once the run is over
                self._is_over.set()
        finally:
            self._is_over.set()  # it may have been raised at the very last moment

    def _watch(self) -> None:
        if self._is_over.wait(self._seconds):
            return
        heard = threading.Event()
        self._ask(heard.set)
        if heard.wait(ASKING_SECS) and self._is_over.wait(ENDING_SECS):
            return
        thread_id = self._on_silent() or self._thread_id
        with self._lock:
            if self._is_over.is_set():
                return
            break_thread(thread_id)
        if not self._ends_now(heard):
            self._on_stuck()

    def _ends_now(self, heard: threading.Event) -> bool:
        if self._is_over.wait(BREAKING_SECS):
            return True
        return heard.is_set() and self._is_over.wait(ENDING_SECS)


def break_thread(thread_id: int) -> None:
    """Raise `AgentStopped` in a thread, at its next line of Python: not in what waits outside of it."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(AgentStopped))
