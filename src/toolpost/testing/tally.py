"""How many cases passed and how many did not: the sum of a run, as text, as JSON, and as an exit status."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from toolpost.testing.result import Result

_TOLD_SECS = 0.05
"""Less simulated time is not worth telling."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The sum of some results."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    """Cases that could not be run."""
    not_run: int = 0
    """Cases whose turn did not come."""
    seconds: float = 0.0
    """How long it took, in real time."""
    simulated_secs: float = 0.0
    """How much time was simulated."""

    @classmethod
    def of(cls, results: Iterable[Result], *, not_run: int = 0, seconds: float = 0.0) -> Tally:
        """Count."""
        results = list(results)
        statuses = [each.status for each in results]
        return cls(
            passed=statuses.count("passed"),
            failed=statuses.count("failed"),
            errors=statuses.count("error"),
            not_run=not_run,
            seconds=round(seconds, 3),
            simulated_secs=round(sum(each.simulated_secs or 0.0 for each in results), 3),
        )

    @property
    def status(self) -> Literal[0, 1, 2]:
        """The exit status: 0 all that ran passed, 1 some failed, 2 some could not be run."""
        return 2 if self.errors else 1 if self.failed else 0

    def __str__(self) -> str:
        counts = [
            (self.passed, "passed"),
            (self.failed, "failed"),
            (self.errors, "error" if self.errors == 1 else "errors"),
            (self.not_run, "not run"),
        ]
        return ", ".join(f"{count} {what}" for count, what in counts if count) or "nothing run"

    @property
    def with_time(self) -> str:
        """The counts, and how long it took."""
        simulated = f", {self.simulated_secs:.1f} s simulated" if self.simulated_secs >= _TOLD_SECS else ""
        return f"{self}{simulated} in {self.seconds:.1f} s"
