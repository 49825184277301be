"""What `toolpost test` says: a verdict for each case as it comes, the sum, and a live line meanwhile."""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING

from toolpost.cli.terminal import printable, write_line

if TYPE_CHECKING:
    from toolpost.cli.terminal import Talk
    from toolpost.model import JsonObject
    from toolpost.testing.result import Result
    from toolpost.testing.round import Round
    from toolpost.testing.tally import Tally

PRINTED_LINES = 100
"""So many of the last lines that a failed case printed are shown."""
_SLOW_SECS = 1.0
"""From here on it is told how long a case took."""
_WORDS = {"passed": ("PASS", "32"), "failed": ("FAIL", "31"), "error": ("ERROR", "31;1")}
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A terminal's control sequence, as for a colour."""


class Verdicts:
    """Tells of one round, case by case."""

    def __init__(self, talk: Talk, cases: Round, *, is_silent: bool, is_live: bool) -> None:
        """Nothing is told yet.

        Args:
            talk: Takes the live line.
            cases: The round.
            is_silent: No verdict is written.
            is_live: There is a live line, on a terminal.
        """
        self._talk = talk
        self._round = cases
        self._is_silent = is_silent
        self._is_live = is_live
        self._case = ""
        self._start = time.monotonic()

    def start(self, case: str) -> None:
        """A case begins."""
        self._case = case

    def tick(self) -> None:
        """Time goes by."""
        if self._is_live:
            so_far = self._round.tally
            bad = so_far.failed + so_far.errors
            place = f"{len(self._round.results) + 1}/{len(self._round.cases)}"
            failed = f"  {bad} failed" if bad else ""
            self._talk.progress(f"[{place}]{failed}  {so_far.seconds:.1f} s  {self._case}")

    def tell(self, result: Result) -> None:
        """What came of it."""
        self._talk.progress("")
        if not self._is_silent:
            word, style = _WORDS[result.status]
            write_line("\n".join([f"{painted(self._talk, word, style)} {_headed(result)}", *_body(result)]))

    def sum_up(self) -> None:
        """The sum, so far."""
        self._talk.progress("")
        tally = self._round.tally
        style = "31" if tally.status else "32"
        write_line(painted(self._talk, tally.with_time, style))


def painted(talk: Talk, text: str, style: str) -> str:
    """The text in a style, where standard output is a terminal that wants colours."""
    return talk.paint(text, style) if sys.stdout.isatty() else text


def document(cases: Round, *, interrupted: bool) -> JsonObject:
    """The round as JSON."""
    import msgspec

    told = (
        *("case", "status", "seconds", "simulated_secs", "seed", "seeds"),
        *("failures", "unused", "report", "output"),
    )
    results = [{key: getattr(each, key) for key in told} for each in cases.results]
    tally: Tally = cases.tally
    return {
        "cases": results,
        "not_run": cases.not_run,
        "interrupted": interrupted,
        "tally": msgspec.to_builtins(tally),
    }


def _headed(result: Result) -> str:
    how = [f"{result.seeds} seeds"] if result.seeds > 1 else []
    if result.simulated_secs is None and result.status == "passed":
        how.append("real time")
    if result.seconds >= _SLOW_SECS:
        how.append(f"{result.seconds:.1f} s")
    said = f" ({', '.join(how)})" if how else ""
    return f"{printable(result.case)}{said}"


def _body(result: Result) -> list[str]:
    if result.status == "passed":
        return [f"  not used: {printable(each)}" for each in result.unused]
    return [*printable(result.report).splitlines(), *_printed(result.output), "", ""]


def _printed(output: str) -> list[str]:
    lines = [printable(_SEQUENCE.sub("", line)) for line in output.splitlines()]
    if not lines:
        return []
    cut = "" if len(lines) <= PRINTED_LINES else f" (the last {PRINTED_LINES} of {len(lines)} lines)"
    return ["", f"printed{cut}", *(f"  {line}" for line in lines[-PRINTED_LINES:])]
