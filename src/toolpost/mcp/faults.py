"""What can go wrong between us and a server, where it must be told apart. Needs no SDK."""

from __future__ import annotations

from toolpost.errors import ConnectFailed, ConnectionLost
from toolpost.secret import mask


def about(tooling: str, what: str, problem: object) -> str:
    """The text of an error of kind `mcp`: tooling, operation, cause.

    Every error that leaves this room is worded here, where it is masked: a name or a URI that the agent gave
    may hold a secret as well as what the server says.
    """
    return mask(f"tooling {tooling!r}: {what}: {problem}")


class FinalFailure(ConnectFailed):
    """A dial failed in a way that no retry mends."""


class Busy(ConnectFailed):
    """The server wants to be dialed again, and later."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds."""


class DiedOnProbe(ConnectFailed):
    """The server left while it was asked for its era: it may be too old for the question."""


class NotSent(ConnectionLost):
    """The connection was down before the request was written, so it certainly had no effect."""
