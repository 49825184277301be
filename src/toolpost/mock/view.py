"""A mock as a test sees it."""

from __future__ import annotations

from toolpost.errors import UsageError
from toolpost.mock.backend import MockBackend, RecordedCall
from toolpost.mock.params import CallStep
from toolpost.mock.steps import PlacedStep, Step
from toolpost.tooling.port import Backend


class Mock:
    """What a mock was asked for, and how far its script has come.

    You look at it; the agents alone change it. Each look gives a list of its own, as things stand at that
    moment, while the host is open and after. It costs as much as the script, or the list of calls, is long.
    """

    def __init__(self, name: str, backend: Backend) -> None:
        """Raises `UsageError` where the backend is of another kind."""
        if not isinstance(backend, MockBackend):
            raise UsageError(
                f"tooling {name!r} is of kind {backend.kind!r}: only one of kind 'mock' can be looked into"
            )
        self._name = name
        self._backend = backend

    @property
    def calls(self) -> list[RecordedCall]:
        """Every tool call that was made, by all agents, in order, with what came of it so far."""
        return self._backend.calls

    @property
    def remaining(self) -> list[PlacedStep[CallStep]]:
        """The steps of `tool_calls` that no call has taken. The first is what the next call gets."""
        return self._backend.remaining

    @property
    def waiting(self) -> list[PlacedStep[Step]]:
        """The steps that a call or a subscription has reached and whose gate (`after`) is still closed.

        A step whose gate is open is not among them, though it has not fired yet; nor is one whose call
        or subscription has been cancelled.
        """
        return self._backend.waiting

    @property
    def unused(self) -> list[PlacedStep[Step]]:
        """The steps that had no part in the run, in the order of the config.

        They are those of `tool_calls` that no call has taken, and the updates that no subscription has
        delivered.
        """
        return self._backend.unused

    def __repr__(self) -> str:
        taken, total, waiting = self._backend.taken, self._backend.total, len(self._backend.waiting)
        return f"<Mock {self._name!r}: {taken} of {total} tool_calls taken, {waiting} waiting>"
