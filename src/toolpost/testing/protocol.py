"""What the process that runs cases and the one that tells of them say to each other, one line of JSON each.

    worker ── READY ──▶ supervisor
    worker ◀── Order ── supervisor      as often as there are cases
    worker ── Reply ──▶ supervisor
    worker ◀── (end of the stream): leave

The standard library's JSON, since it carries lone surrogates: in a file's name, or in an agent's words.
"""

from __future__ import annotations

from json import dumps, loads  # now: agents may change what the module has later
from typing import TypeVar

import msgspec

from toolpost.testing.result import Result

READY = b"ready\n"
"""The worker's first line: all that it needs is imported."""

LEAVING_SECS = 6.0
"""From the end of the stream until a worker is gone at any rate. A server may take 4.5 s to end."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is started with."""

    stream: int
    """File descriptor of the connection to the supervisor."""
    output: int
    """File descriptor of the file for what cases print. The supervisor reads it where the worker dies."""
    stacks: int
    """File descriptor of the file for stacks that are written down when the worker dies."""
    is_shown: bool
    """What cases print goes to standard error instead, and the worker belongs to the terminal."""
    silence_secs: float
    """So long may the interpreter do nothing else once a case's time is up; then the process is ended."""
    log_level: int
    agents_log_level: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A case to be run."""

    case: str
    """The path of its file."""
    seeds: list[int] = []
    """The seeds to run it under, up to the first that fails; none is the case's own."""
    trace: str | None = None
    """The file to which its trace is written."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a case."""

    result: Result
    problem: str = ""
    """What went wrong in telling of it, as with a trace that cannot be written."""


Message = TypeVar("Message", bound=msgspec.Struct)


def encoded(message: msgspec.Struct) -> bytes:
    """A message as a line."""
    return dumps(msgspec.to_builtins(message)).encode() + b"\n"


def decoded(line: bytes | str, kind: type[Message]) -> Message:
    """The message of a line."""
    return msgspec.convert(loads(line), kind)
