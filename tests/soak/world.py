"""What outlives a server: the state of a tooling, and a journal of what its servers have done.

Both are files in one folder. The soak writes the state, whichever server runs reads it; so a server that was
killed comes back with what it had, and with what has changed meanwhile. Servers only append to the journal.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class State:
    """How the server of one tooling is to be."""

    resources: dict[str, str] = field(default_factory=dict[str, str])
    """Contents by URI."""
    delay: float = 0.0
    """Seconds that a request waits at most before it has its effect, and again before it is answered."""
    hang_ups: int = 0
    """With each one more, the server ends the streams that are open."""


@dataclass(frozen=True)
class Done:
    """What the journal tells."""

    greetings: int
    """Handshakes: one for each connection."""
    executed: Counter[str]
    """By the token of a call, how often it was executed."""


class World:
    """The folder of one tooling."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = folder / "state.json"
        self._journal = folder / "journal"

    def write(self, state: State) -> None:
        """Replace the state whole: a reader sees the old one or the new one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / "state.new"
        fresh.write_text(json.dumps(asdict(state)))
        fresh.replace(self._state)

    def read(self) -> State:
        return State(**json.loads(self._state.read_text()))

    def version(self) -> tuple[int, int]:
        """Differs after each write."""
        found = self._state.stat()
        return found.st_ino, found.st_mtime_ns

    def open_journal(self) -> int:
        """A descriptor whose writes go to the end, each in one piece."""
        return os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def done(self) -> Done:
        lines = self._journal.read_text().splitlines() if self._journal.exists() else []
        return Done(
            greetings=lines.count("greeted"),
            executed=Counter(line.removeprefix("call ") for line in lines if line.startswith("call ")),
        )
