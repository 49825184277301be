"""The one cursor that goes along an ordered list of steps: over arrays, and over the events of a run.

A step takes the next candidate that matches, skipping others; one that *repeats* takes the whole run of
matches that stands at the cursor, possibly none, and skips nothing. The cursor takes candidates one by one
and never goes back, so following a run costs as much as the run is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Step(Generic[C]):
    """One thing to be found."""

    matches: Callable[[C], bool]
    repeats: bool = False


class Cursor(Generic[C]):
    """How far a list of steps has been found."""

    __slots__ = ("_steps", "at")

    def __init__(self, steps: Sequence[Step[C]]) -> None:
        self._steps = steps
        self.at = 0
        """The step that is looked for; behind the last when all are found."""

    def take(self, candidate: C) -> bool:
        """Go past one candidate; tells whether a step took it."""
        while self.at < len(self._steps):
            step = self._steps[self.at]
            if step.matches(candidate):
                self.at += not step.repeats
                return True
            if not step.repeats:
                return False
            self.at += 1  # the run has ended: the candidate may be what comes next
        return False

    @property
    def unmet(self) -> int | None:
        """The first step that has not been found; None if nothing more is needed."""
        for index in range(self.at, len(self._steps)):
            if not self._steps[index].repeats:
                return index
        return None


def first_unmet(steps: Sequence[Step[C]], candidates: Iterable[C]) -> int | None:
    """The first step that the candidates do not meet, or None."""
    cursor = Cursor(steps)
    for candidate in candidates:
        cursor.take(candidate)
    return cursor.unmet
