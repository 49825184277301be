"""What can go wrong between us and a server, where it must be told apart. Needs no SDK."""

from __future__ import annotations

from toolpost.errors import ConnectFailed, ConnectionLost


class FinalFailure(ConnectFailed):
    """A dial failed in a way that no retry mends."""


class DiedOnProbe(ConnectFailed):
    """The server left while it was asked for its era: it may be too old for the question."""


class NotSent(ConnectionLost):
    """The connection was down before the request was written, so it certainly had no effect."""
