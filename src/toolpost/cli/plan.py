"""What a `toolpost test` was asked for, and from that the things that do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolpost.testing.round import Round
    from toolpost.testing.supervisor import Supervisor


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The options of one invocation."""

    paths: Sequence[str]
    wanted: Sequence[str]
    unwanted: Sequence[str]
    fails_fast: bool
    is_shown: bool
    as_json: bool
    junit: str | None
    trace_dir: str | None
    watches: bool
    seed: int | None
    seeds: int | None

    def check(self) -> None:
        """Make the places that are written to, before anything begins.

        Raises:
            UsageError: One of them cannot be written, or the options contradict each other.
        """
        from toolpost.errors import UsageError

        if self.watches and self.as_json:
            raise UsageError("--watch and --json exclude each other: there would be no one document")
        if self.seed is not None and self.seeds is not None:
            raise UsageError("--seed and --seeds exclude each other: one order, or many")
        if "" in self.paths:
            raise UsageError("a PATH is empty; leave it out for the current folder")
        if self.trace_dir is not None:
            _try("--trace-dir", _make_folder, Path(self.trace_dir))
        if self.junit is not None:
            _try("--junit", _make_file, Path(self.junit))

    def cases(self) -> list[Path]:
        """The cases that there are.

        Raises:
            UsageError: There are none.
        """
        from toolpost.testing.discover import find_cases, select

        found = find_cases([Path(each) for each in self.paths])
        return select(found, wanted=self.wanted, unwanted=self.unwanted)

    def cases_now(self) -> list[Path]:
        """The same while files come and go: none is no mistake."""
        from toolpost.errors import UsageError

        try:
            return self.cases()
        except UsageError:
            return []

    def round(self, cases: Sequence[Path]) -> Round:
        """A round of these cases."""
        from toolpost.testing.round import Round

        seeds = range(self.seeds or 0) if self.seed is None else [self.seed]
        folder = None if self.trace_dir is None else Path(self.trace_dir)
        return Round(cases, trace_folder=folder, seeds=seeds)

    def supervisor(self) -> Supervisor:
        """What runs them. Its process starts at once, while there is other work to do."""
        import logging

        from toolpost.testing.supervisor import Options, Supervisor

        general, agents = (logging.getLogger(each).getEffectiveLevel() for each in ("", "toolpost.agent"))
        return Supervisor(
            Options(
                is_shown=self.is_shown,
                log_level=general,
                agents_log_level=agents,
                keeps_bytecode=not self.watches,
            )
        )


def _try(option: str, make: Callable[[Path], None], path: Path) -> None:
    from toolpost.errors import UsageError

    try:
        make(path)
    except OSError as error:
        where = error.filename or str(path)
        raise UsageError(f"{option}: cannot write {where!r}: {error.strerror or error}") from None


def _make_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    probe = path / ".toolpost"
    probe.touch()
    probe.unlink()


def _make_file(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("ab").close()
