"""Cases, one after another. What came of them so far is there at any moment, also after an interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from toolpost.testing.discover import SUFFIX
from toolpost.testing.protocol import Order
from toolpost.testing.result import Result
from toolpost.testing.supervisor import Supervisor
from toolpost.testing.tally import Tally

_LONGEST_NAME = 200
"""Bytes of a file's name, of the 255 that most systems allow."""


class Round:
    """Some cases on their way."""

    def __init__(
        self, cases: Sequence[Path], *, trace_folder: Path | None = None, seeds: Sequence[int] = ()
    ) -> None:
        self.cases = [str(each) for each in cases]
        self._seeds = list(seeds)
        self.results: list[Result] = []
        self.problems: list[str] = []
        """What went wrong in telling of them."""
        self.started_ns = time.time_ns()
        self._start = time.monotonic()
        self._traces = {} if trace_folder is None else trace_files(self.cases, trace_folder)

    def run(
        self,
        supervisor: Supervisor,
        *,
        on_start: Callable[[str], None],
        on_result: Callable[[Result], None],
        tick: Callable[[], None],
        fails_fast: bool = False,
    ) -> None:
        """Run them all, or up to the first that does not pass.

        Raises:
            ToolpostError: There is no process to run them in.
        """
        for name in self.cases:
            on_start(name)
            order = Order(case=name, seeds=self._seeds, trace=self._fresh_trace(name))
            reply = supervisor.run(order, tick=tick)
            self.results.append(reply.result)
            if reply.problem:
                self.problems.append(reply.problem)
            on_result(reply.result)
            if fails_fast and reply.result.status != "passed":
                return

    def _fresh_trace(self, name: str) -> str | None:
        """The file for the trace of a case. None of an earlier run stands for this one."""
        file = self._traces.get(name)
        if file is None:
            return None
        try:
            file.unlink(missing_ok=True)
        except OSError:  # whoever writes it then cannot either, and tells
            pass
        return str(file)

    @property
    def not_run(self) -> list[str]:
        """The cases whose turn has not come, or was interrupted."""
        return self.cases[len(self.results) :]

    @property
    def tally(self) -> Tally:
        """The sum so far."""
        return Tally.of(self.results, not_run=len(self.not_run), seconds=time.monotonic() - self._start)


def trace_files(cases: Sequence[str], folder: Path) -> dict[str, Path]:
    """For each case a file of its own in a folder, named after the case's path."""
    files: dict[str, Path] = {}
    taken: set[str] = set()
    for case in cases:
        parts = [part for part in Path(case).parts if part.strip("./\\")]
        stem = _cut("-".join(parts).removesuffix(SUFFIX).replace(":", "_"))
        name, number = stem, 1
        while name.casefold() in taken:  # as some file systems compare names
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        files[case] = (folder / f"{name}.jsonl").absolute()
    return files


def _cut(name: str) -> str:
    """The end of a name that is too long for a file."""
    return name.encode("utf-8", "surrogateescape")[-_LONGEST_NAME:].decode("utf-8", "ignore")
