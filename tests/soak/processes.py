"""What the system knows of this process and of the servers. Linux: it is read from /proc."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTLE_SECS = 5.0
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    descriptors: int
    threads: int

    def exceeds(self, other: Held) -> bool:
        return self.descriptors > other.descriptors or self.threads > other.threads


def held() -> Held:
    return Held(len(list(Path("/proc/self/fd").iterdir())), threading.active_count())


def held_in_the_end(before: Held) -> Held:
    """What is held once what is still on its way out is gone."""
    give_up = time.monotonic() + SETTLE_SECS
    while (now := held()).exceeds(before) and time.monotonic() < give_up:
        time.sleep(0.01)
    return now


def resident_mib() -> float:
    """The memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES / 2**20


def servers_of(folder: Path) -> Iterator[int]:
    """The processes that run a server for this folder: it is among their arguments."""
    wanted = os.fsencode(folder)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")  # empty once it has exited
        except OSError:  # gone meanwhile
            continue
        if wanted in arguments and int(process.name) != os.getpid():
            yield int(process.name)
