"""Who changes resources, and kills, stops, delays and restarts the servers. A thread, driven by a seed.

Each tooling has one fault at a time: what begins one also says how long it lasts. The seed gives what is
done, in which order; what that meets is up to the machine.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.soak.agent import Stage, listed_uris
from tests.soak.plan import RESOURCES, ROOT, Kind, Options, uri
from tests.soak.processes import servers_of
from tests.soak.server import LIST
from tests.soak.world import State, World

CHANGE_SECS = 0.1
"""Between two changes of some resource, on average."""
DOWN, STOPPED, SLOW = 0.3, 1.4, 0.6
"""How long a fault lasts at most, in limits of a request."""
DELAY = 0.3
"""How long a slow server waits at most, in the same measure."""
EXTRA = "soak://now-and-then"
HEAL_SECS = 0.5
"""Between the last change and the end of all trouble."""
TROUBLED_IN_THE_END = 0.8
LIST_CHANGES = 0.1
"""How many of the changes are of a list of resources."""


class Victim:
    """One tooling: its world, and over HTTP its server, which is a child of ours."""

    def __init__(self, kind: Kind, folder: Path, port: int | None) -> None:
        self.kind = kind
        self.folder = folder
        self.port = port
        self.world = World(folder)
        self.state = State(resources={uri(number): "first" for number in range(RESOURCES)})
        self.is_troubled = False
        self.world.write(self.state)
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = (folder / "stderr").open("ab")

    def table(self) -> dict[str, object]:
        return self.kind.table(self.folder, self.port)

    def start(self) -> None:
        """Start the server, if that is our business and none runs."""
        if self.port is not None and (self._child is None or self._child.poll() is not None):
            self.end()  # what is left of the one before
            self._child = subprocess.Popen(
                self.kind.command(self.folder, self.port),
                cwd=ROOT,
                stdin=subprocess.PIPE,  # it leaves when this ends: nothing of a soak that is killed stays
                stdout=subprocess.DEVNULL,
                stderr=self._log,
            )

    def signal(self, number: signal.Signals) -> None:
        """To every process that serves this tooling."""
        for pid in servers_of(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        """End our own server."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            if self._child.stdin is not None:
                self._child.stdin.close()

    def clear(self) -> None:
        """Leave nothing behind, however the soak ends: a server that is stopped would stay for ever."""
        self.end()
        self.signal(signal.SIGKILL)
        self._log.close()


class Adversary:
    """The thread. Once no agent has a call left, it changes all for the last time, heals, and ends."""

    def __init__(self, victims: list[Victim], options: Options, stage: Stage) -> None:
        self.done: Counter[str] = Counter()
        """What was done, how often."""
        self._victims = victims
        self._options = options
        self._stage = stage
        self._chance = random.Random(f"{options.seed}/adversary")
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._begun = 0
        """Faults."""
        self._thread = threading.Thread(target=self._run, name="adversary")
        self._stop = threading.Event()
        self._faults = (
            self._kill,
            self._end,
            self._suspend,
            self._suspend_and_kill,
            self._slow,
            self._hang_up,
        )

    def begin(self) -> None:
        self._later(0, self._change)
        self._thread.start()

    def part(self) -> None:
        """Stop some servers for good: toolpost must leave them behind dead all the same."""
        for victim in self._chance.sample(self._victims, len(self._victims) // 2):
            victim.signal(signal.SIGSTOP)
            self.done["stopped at the end"] += 1

    def stop(self) -> None:
        """In any case: nothing is done after this."""
        self._stop.set()
        self._thread.join()

    # -- time ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and not self._stage.calls_are_done.is_set():
                self._do_what_is_due()
                self._start_what_is_down()
                self._stop.wait(0.01)
            self._trouble_many()
            self._change_for_the_last_time()
            self._stop.wait(HEAL_SECS)
            self._heal()
        finally:
            self._stage.last_change.set()
        while not self._stop.wait(0.01):
            self._start_what_is_down()

    def _start_what_is_down(self) -> None:
        """Again and again: a server that was told to end takes a moment, and its port may be taken."""
        for victim in self._victims:
            if not victim.is_troubled:
                victim.start()

    def _do_what_is_due(self) -> None:
        if self._begun < self._options.faults * self._stage.share_of_calls:
            self._trouble()
        while self._due and self._due[0][0] <= time.monotonic():
            heapq.heappop(self._due)[2]()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._order), action))

    # -- changes -------------------------------------------------------------------------------------

    def _change(self) -> None:
        self._later(self._chance.expovariate(1 / CHANGE_SECS), self._change)
        victim = self._chance.choice(self._victims)
        if self._chance.random() < LIST_CHANGES:
            self._toggle_extra(victim.state.resources)
        else:
            victim.state.resources[uri(self._chance.randrange(RESOURCES))] = f"{self._chance.random()}"
        self._note("changes", victim)

    def _toggle_extra(self, resources: dict[str, str]) -> None:
        """One that nobody follows, so that the list changes."""
        if resources.pop(EXTRA, None) is None:
            resources[EXTRA] = ""

    def _change_for_the_last_time(self) -> None:
        """Each resource, and each list; some servers are in trouble meanwhile."""
        for victim in self._victims:
            resources = victim.state.resources
            self._toggle_extra(resources)
            resources |= dict.fromkeys(resources, "last")
            victim.world.write(victim.state)
            seen = {LIST: listed_uris(resources)} | resources
            self._stage.last |= {(victim.kind.name, key): value for key, value in seen.items()}

    def _heal(self) -> None:
        for victim in self._victims:
            victim.state.delay = 0
            victim.world.write(victim.state)
            victim.signal(signal.SIGCONT)
            victim.is_troubled = False

    # -- faults --------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        """Begin a fault at some tooling that has none."""
        well = [each for each in self._victims if not each.is_troubled]
        if well:
            self._begun += 1
            self._chance.choice(self._faults)(self._chance.choice(well))

    def _trouble_many(self) -> None:
        """What changes next is seen by few: the others must find out for themselves."""
        for victim in self._victims:
            if not victim.is_troubled and self._chance.random() < TROUBLED_IN_THE_END:
                self._chance.choice((self._kill, self._end, self._suspend, self._hang_up))(victim)

    def _over(self, victim: Victim, within: float, cure: Callable[[], None] = lambda: None) -> None:
        """The fault ends after a while, `within` so many limits."""

        def end() -> None:
            cure()
            victim.is_troubled = False

        victim.is_troubled = True
        self._later(self._chance.uniform(0, within * self._options.limit_secs), end)

    def _note(self, what: str, victim: Victim) -> None:
        self.done[what] += 1
        victim.world.write(victim.state)

    def _kill(self, victim: Victim) -> None:
        victim.signal(signal.SIGKILL)
        self._note("killed", victim)
        self._over(victim, DOWN)

    def _end(self, victim: Victim) -> None:
        victim.signal(signal.SIGTERM)
        self._note("ended", victim)
        self._over(victim, DOWN)

    def _suspend(self, victim: Victim) -> None:
        victim.signal(signal.SIGSTOP)
        self._note("stopped", victim)
        self._over(victim, STOPPED, lambda: victim.signal(signal.SIGCONT))

    def _suspend_and_kill(self, victim: Victim) -> None:
        victim.signal(signal.SIGSTOP)
        self._note("stopped and killed", victim)
        self._over(victim, STOPPED, lambda: victim.signal(signal.SIGKILL))

    def _slow(self, victim: Victim) -> None:
        def cure() -> None:
            victim.state.delay = 0
            victim.world.write(victim.state)
            if is_killed:  # with calls that it has executed, and not answered
                victim.signal(signal.SIGKILL)

        is_killed = self._chance.random() < 0.5
        victim.state.delay = DELAY * self._options.limit_secs
        self._note("slowed", victim)
        self._over(victim, SLOW, cure)

    def _hang_up(self, victim: Victim) -> None:
        victim.state.hang_ups += 1
        self._note("streams ended", victim)
