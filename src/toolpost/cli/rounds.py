"""`toolpost test` at work: one round of cases, or with `--watch` one for every change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolpost.cli.session import DONE, FAILED, Session
from toolpost.cli.terminal import write_json
from toolpost.cli.verdicts import Verdicts, document

if TYPE_CHECKING:
    from toolpost.cli.plan import Plan
    from toolpost.testing.result import Result
    from toolpost.testing.round import Round
    from toolpost.testing.supervisor import Supervisor
    from toolpost.testing.tally import Tally
    from toolpost.testing.watching import Change

_LOOK_SECS = 0.3
"""How often `--watch` looks."""
_LOOKING_SHARE = 10
"""It waits at least so many times as long as a look takes: a large folder must not keep a core busy."""
_NAMED = 3
"""So many changed files are named."""


def run_once(session: Session, plan: Plan) -> int:
    """Run all cases; gives the exit status."""
    plan.check()
    with plan.supervisor() as supervisor:
        cases = plan.round(plan.cases())
        try:
            _run(session, plan, cases, supervisor)
        finally:
            is_written = _write_junit(session, plan, cases.results, cases.not_run)
    return cases.tally.status or (DONE if is_written and not cases.problems else FAILED)


def watch(session: Session, plan: Plan) -> int:
    """Run all cases, then those that a change touches, until Ctrl-C; gives the status of what is latest."""
    plan.check()
    plan.cases()  # none at all is a mistake here too; later they may come and go
    watching = _Watching(session, plan)
    try:
        while True:
            watching.run_next()
    except KeyboardInterrupt:
        if watching.is_idle:  # how a watch is meant to end
            return watching.tally.status
        raise


def _run(session: Session, plan: Plan, cases: Round, supervisor: Supervisor) -> None:
    """Run a round, and tell of it."""
    verdicts = Verdicts(session.talk, cases, is_silent=plan.as_json, is_live=not plan.is_shown)

    def sum_up(*, interrupted: bool) -> None:
        for problem in cases.problems:
            session.fail(problem)
        if plan.as_json:
            write_json(document(cases, interrupted=interrupted))
        else:
            verdicts.sum_up()

    try:
        cases.run(
            supervisor,
            on_start=verdicts.start,
            on_result=verdicts.tell,
            tick=verdicts.tick,
            fails_fast=plan.fails_fast,
        )
    except KeyboardInterrupt:
        sum_up(interrupted=True)
        raise
    sum_up(interrupted=False)


def _write_junit(session: Session, plan: Plan, results: Sequence[Result], not_run: Sequence[str]) -> bool:
    """Write the report, if one is wanted; tells whether that went well."""
    if plan.junit is None:
        return True
    from toolpost.testing.junit import write_junit

    try:
        write_junit(Path(plan.junit), results, not_run=not_run)
    except OSError as error:
        session.fail(f"--junit: cannot write {plan.junit!r}: {error.strerror or error}")
        return False
    return True


# -- watching --------------------------------------------------------------------------------------


class _Watching:
    """What is known of the cases, from round to round."""

    def __init__(self, session: Session, plan: Plan) -> None:
        from toolpost.testing.watching import Watch

        self.is_idle = False
        """Every case has been run, and nothing has changed since."""
        self._session, self._plan = session, plan
        self._watch = Watch(plan.cases_now)
        self._latest: dict[str, Result] = {}
        self._left: list[str] = []
        """Cases whose turn did not come: they are run with the next change."""

    @property
    def tally(self) -> Tally:
        """The sum of the latest results."""
        from toolpost.testing.tally import Tally

        return Tally.of(self._latest.values(), not_run=len(self._left))

    def run_next(self) -> None:
        """Wait for a change, and run what it touches. At first, that is everything."""
        with self._plan.supervisor() as supervisor:  # a fresh one, which gets ready while nothing happens
            change = self._next_change()
            if self.is_idle:
                self._session.talk.say(f"changed: {_named(change)}")
            cases = self._plan.round(change.cases)
            if change.cases:
                self.is_idle = False
                _run(self._session, self._plan, cases, supervisor)
        self._learn(cases)
        self.is_idle = True
        _write_junit(self._session, self._plan, list(self._latest.values()), self._left)
        self._session.talk.say(f"watching {len(self._watch.names)} test files: {self.tally}; Ctrl-C ends it")

    def _next_change(self) -> Change:
        while True:
            start = time.monotonic()
            if change := self._watch.look(self._left):
                return change
            time.sleep(max(_LOOK_SECS, (time.monotonic() - start) * _LOOKING_SHARE))

    def _learn(self, cases: Round) -> None:
        self._watch.learn(cases.results, since_ns=cases.started_ns)
        self._latest |= {each.case: each for each in cases.results}
        self._latest = {name: self._latest[name] for name in self._watch.names if name in self._latest}
        self._left = cases.not_run


def _named(change: Change) -> str:
    """The first of the files that have changed, from the current folder."""
    here = Path.cwd()
    paths = [Path(each) for each in change.files]
    names = [str(each.relative_to(here) if each.is_relative_to(here) else each) for each in paths]
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
