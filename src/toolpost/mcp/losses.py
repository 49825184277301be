"""How often a subscription may be lost in a row, and what is waited in between. Pure.

As with dialing: the wait doubles, and when it would reach the cap there is no point in going on. A server
that agrees to a subscription and is gone a moment later, each time, would otherwise be started for ever.
"""

from __future__ import annotations

STABLE_SECS = 2.0
"""What lasted so long was good: the next loss counts as the first."""


class Losses:
    """The losses of one kind, of one subscription."""

    def __init__(self, start: float, cap: float) -> None:
        self._start = self._wait = start
        self._cap = cap
        self._count = 0

    def pause(self, lasted: float, *, news: bool = False) -> float | None:
        """How long to wait after another loss; None to give up, though never over the first.

        Args:
            lasted: How long it held, in seconds.
            news: Whether it brought anything.
        """
        if news or lasted >= STABLE_SECS:
            self._count, self._wait = 0, self._start
            return self._start
        self._count += 1
        if self._count > 1 and self._wait >= self._cap:
            return None
        pause, self._wait = self._wait, self._wait * 2
        return pause

    def __str__(self) -> str:
        return f"{self._count} times in a row, each time within {STABLE_SECS:g} s"
