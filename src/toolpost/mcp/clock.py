"""The time that one request may take. Needs no SDK."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import anyio

EXTENDS = 10
"""Progress restarts a request's clock, up to this many times its length in all."""


class Clock:
    """The limit of one request, as a block. Running out of it raises TimeoutError, worded."""

    def __init__(self, limit: float, started: float | None = None) -> None:
        self._limit = limit
        self._started = anyio.current_time() if started is None else started
        self._scope = anyio.CancelScope(deadline=self._started + limit)
        self._restarted = False

    def restart(self) -> None:
        """Something came, if not the answer."""
        self._restarted = True
        last = self._started + EXTENDS * self._limit
        self._scope.deadline = min(anyio.current_time() + self._limit, last)

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._scope.__exit__(kind, error, trace):
            raise TimeoutError(self._describe())

    def _describe(self) -> str:
        if not self._restarted:
            return f"no answer within {self._limit:g} s"
        passed = anyio.current_time() - self._started
        return f"no answer within {passed:.1f} s, in which progress restarted the limit of {self._limit:g} s"
