"""Why agents were ended before they came to it themselves, and where they stood then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Why: TypeAlias = Literal["time-out", "deadlock", "interrupt"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an agent stood when it was ended."""

    agent: str | None
    """None where no agent ran yet: while their scripts were loaded."""
    stack: str = ""
    waits: Sequence[str] = ()
    """The host calls that it waited in."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end that a run was brought to."""

    why: Why
    now: float
    """When, by the loop's clock."""
    limit: float
    """The real time that it had, in seconds."""
    standing: Sequence[Standing]
    records: int
    """How many the trace had then: what comes behind is our doing."""

    def __str__(self) -> str:
        match self.why:
            case "time-out":
                return f"timed out after {self.limit:g} s"
            case "deadlock":
                return f"deadlock at {self.now:g} s of simulated time"
            case "interrupt":
                return "interrupted"

    def lines(self, *, limit_name: str) -> Iterator[str]:
        """For people: why, and where each agent stood.

        Args:
            limit_name: What the limit is called where it is set.
        """
        match self.why:
            case "time-out":
                yield f"{self} ({limit_name})"
            case "deadlock":
                yield f"{self}: nothing is ready and no timer is due, so nobody can go on"
            case "interrupt":
                yield str(self)
        for each in self.standing:
            who = "the agents were being loaded" if each.agent is None else f"agent {each.agent!r}"
            waits = "".join(f", waiting in {wait}" for wait in each.waits)
            stack = each.stack.rstrip().splitlines()
            yield f"  {who}{waits}{', standing at' if stack else ''}"
            yield from (f"  {line}" for line in stack)
