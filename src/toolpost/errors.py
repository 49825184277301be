"""Every exception that toolpost raises on purpose, in one tree.

    ToolpostError
    ├── ConfigError        your file or environment: every problem found, at once
    ├── UsageError         your call: wrong arguments, wrong moment
    │   └── UnknownTooling a name that is not in the config, or not granted to the agent
    ├── Unsupported        the server does not offer this
    ├── ServerError        the server answered with an error: code, message, data
    │   └── ResourceNotFound
    ├── ConnectFailed      no connection could be made; nothing was sent
    ├── ConnectionLost     the connection died; the effect of the request is unknown
    ├── RequestTimeout     the server did not answer in time; the request was cancelled
    ├── RecvTimeout        no envelope arrived in time; nothing is lost
    ├── TooManyOpenCalls   take envelopes from the inbox before queueing more
    ├── HostClosed         the host has ended, or is ending
    ├── ScriptError        a mock's script and the agent disagree (also an AssertionError)
    └── GuestFailed        a guest (WASM) trapped, exited, computed too long, or gave an error

    AgentStopped           a BaseException: the agent outlived its grace after `Shutdown`

This is the lowest room: it imports nothing of toolpost. Texts are final when an exception is made;
whoever makes one from a server's words masks secrets first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ToolpostError(Exception):
    """The root: catch it to catch everything that toolpost raises on purpose.

    Errors can be pickled and copied, since workers in other processes report by them.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.args, self.__dict__)


class ConfigError(ToolpostError):
    """The configuration cannot be used. Holds every problem of the file, not the first one."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        """One line each: where, what was expected, what was found."""
        super().__init__("\n".join(self.problems))


class UsageError(ToolpostError):
    """The call cannot be right, whatever the server does. Nothing was sent and nothing recorded."""


class UnknownTooling(UsageError):
    """No tooling of that name, or none that this agent was granted."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        listed = ", ".join(repr(each) for each in self.known) or "none"
        super().__init__(f"unknown tooling {name!r}; this agent can use: {listed}")


class Unsupported(ToolpostError):
    """The server did not declare what this call needs, so it was not asked."""


class ServerError(ToolpostError):
    """The server answered with an error: JSON-RPC's, an HTTP status that says so, or what cannot be right.

    For a status, `data` holds it as `status`, with the headers `Retry-After` and `WWW-Authenticate` where
    they came. A result that does not fit its tool's `output_schema` cannot be right: the call has had its
    effect, and `data` holds the whole result, secrets masked.
    """

    def __init__(self, message: str, *, code: int, data: object = None) -> None:
        self.code = code
        """The JSON-RPC error code, such as -32602; -32603 for an answer that cannot be right."""
        self.message = message
        """The server's own words, secrets masked, with tooling and operation in front."""
        self.data = data
        super().__init__(f"{message} (code {code})")


class ResourceNotFound(ServerError):
    """The server knows no resource under that URI."""


class ConnectFailed(ToolpostError):
    """No connection could be made. The next use tries again."""

    def __init__(self, message: str, *, attempts: int | None = None) -> None:
        self.attempts = attempts
        """How many dials were made until it was given up; None where no number of them would do."""
        super().__init__(message)


class ConnectionLost(ToolpostError):
    """The connection died while a request was under way, so whether it took effect is unknown.

    toolpost does not repeat such a request. Repeat it yourself if that is safe: the next use
    connects again.
    """


class RequestTimeout(ToolpostError):
    """The server did not answer within the limit; it has been told to stop."""


class RecvTimeout(ToolpostError):
    """No envelope arrived in time. Nothing is lost: receive again."""


class TooManyOpenCalls(ToolpostError):
    """`open_calls_bound` calls are queued or wait in the inbox. Take some envelopes first."""


class HostClosed(ToolpostError):
    """The host has ended, or is ending, and takes no new work."""


class ScriptError(ToolpostError, AssertionError):
    """A mock was called in a way that its script does not have."""


class GuestFailed(ToolpostError):
    """A guest's end that was no success; its text is all that there is to tell."""


def _remade(kind: type[ToolpostError], args: tuple[Any, ...], state: dict[str, Any]) -> ToolpostError:
    """An error as it was, whatever its constructor takes."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class AgentStopped(BaseException):
    """Ends an agent that went on after `Shutdown` and its grace. Not meant to be caught."""
