"""What the system knows of this process and of the servers. Linux: it is read from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    descriptors: int
    threads: int


def held() -> Held:
    return Held(len(list(Path("/proc/self/fd").iterdir())), threading.active_count())


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
