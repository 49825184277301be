"""What came of a case, as plain data: it crosses from the process that ran it to the one that tells of it."""

from __future__ import annotations

import shlex
from typing import Literal

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one case."""

    case: str
    """Its name: the path of its file, as it was given."""
    status: Literal["passed", "failed", "error"]
    """`error`: it could not be run, as with a file that is no config."""
    seconds: float = 0.0
    """How long it ran, in real time."""
    simulated_secs: float | None = None
    """How long it ran in simulated time; None where time was real."""
    seed: int = 0
    """Of a simulated run."""
    seeds: int = 1
    """Under how many seeds it ran; the last one is `seed`."""
    failures: list[str] = []
    """Why it failed or could not be run, one line each; each names the agent or the file."""
    report: str = ""
    """The whole of it, for people. Empty where it passed."""
    unused: list[str] = []
    """The steps of its mocks that were never used, one line each."""
    output: str = ""
    """What its agents printed."""
    files: list[str] = []
    """Absolute paths of the files that it depends on: the config files, the agents and what they imported."""
    is_stuck: bool = False
    """Something of it could not be stopped and still runs: its process must run no other case."""


def as_word(case: str) -> str:
    """The name of a case as a word of a command line."""
    return shlex.quote(f"./{case}" if case.startswith("-") else case)
