"""The judgement on a case, and what people are told of a failure. Pure: from what was found to text."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolpost.config.problems import dotted
from toolpost.errors import ConfigError
from toolpost.expect.assertions import Expectations, Unmet, UnmetEvent, UnmetOutcome, check
from toolpost.expect.pattern import show
from toolpost.host.agents import NO_OUTCOME, Outcome
from toolpost.mock.backend import MockBackend
from toolpost.mock.queue import describe, line
from toolpost.testing.case import Case
from toolpost.testing.ended import Ended
from toolpost.testing.excerpt import around, lines_of, places_of
from toolpost.testing.result import Result, as_word
from toolpost.trace.events import TraceEvent
from toolpost.trace.log import Trace


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a run left behind."""

    outcomes: Mapping[str, Outcome]
    trace: Trace
    mocks: Mapping[str, MockBackend]
    ended: Ended | None
    """None where all agents came to their ends themselves."""
    starved: Sequence[tuple[str, float, float]]
    """Each `recv` that timed out: whose, when by the loop's clock, and its limit."""
    error: ConfigError | None
    """Why it could not be run."""
    fault: str | None
    """What ended it, other than an agent."""
    seconds: float
    simulated_secs: float | None
    """None where time was real."""
    seed: int
    files: list[str]
    is_stuck: bool

    @property
    def own_trace(self) -> Sequence[TraceEvent]:
        """What happened without our doing."""
        return self.trace if self.ended is None else self.trace[: self.ended.records]


@dataclass(frozen=True, slots=True)
class Failure:
    """One reason why a case failed."""

    line: str
    """On one line; names the agent."""
    text: list[str]
    """The same at length."""
    places: tuple[int, ...] = ()
    """The records of the trace that it speaks of."""
    agent: str | None = None
    """Whose outcome it tells."""


def judge(case: Case, findings: Findings) -> Result:
    """The result of a case."""
    if findings.error is not None:
        return could_not_run(case.name, findings.error, files=findings.files)
    unused = [
        f"tooling {name!r}: {line(placed)}" for name, mock in findings.mocks.items() for placed in mock.unused
    ]
    failures = list(_failures(case, findings, unused))
    return Result(
        case=case.name,
        status="failed" if failures else "passed",
        seconds=findings.seconds,
        simulated_secs=findings.simulated_secs,
        seed=findings.seed,
        failures=[each.line for each in failures],
        report="\n".join(_report(case, findings, failures)) if failures else "",
        unused=unused,
        files=findings.files,
        is_stuck=findings.is_stuck,
    )


def could_not_run(name: str, error: ConfigError, *, files: Sequence[str] = ()) -> Result:
    """The result of a case whose files are wrong."""
    problems = list(error.problems)
    return Result(case=name, status="error", failures=problems, report="\n".join(problems), files=list(files))


# -- why it failed ---------------------------------------------------------------------------------


def _failures(case: Case, findings: Findings, unused: Sequence[str]) -> Iterator[Failure]:
    if findings.ended is not None:
        yield _ended(findings.ended)
    if findings.fault is not None:
        yield Failure(
            f"the run broke off: {findings.fault.strip().splitlines()[-1]}", findings.fault.splitlines()
        )
    for expected in _expected_of_all(case):
        outcome = findings.outcomes.get(expected.agent, NO_OUTCOME)
        for unmet in check(expected, findings.own_trace, outcome.to_json()):
            # an agent that was ended is told of already
            if not (findings.ended is not None and isinstance(unmet, UnmetOutcome)):
                yield _unmet(expected, unmet)
    if case.settings.strict and unused:
        text = ["strict: these steps were never used", *(f"  {each}" for each in unused)]
        count = "1 step was" if len(unused) == 1 else f"{len(unused)} steps were"
        yield Failure(f"strict: {count} never used", text)


def _expected_of_all(case: Case) -> Iterator[Expectations]:
    """What is expected of each agent; of one that nothing is said of, that it does not fail."""
    said = {each.agent: each for each in case.expectations}
    for name in case.config.agents:
        yield said.get(name) or Expectations(name)


def _ended(ended: Ended) -> Failure:
    names = ", ".join(repr(each.agent) for each in ended.standing if each.agent is not None)
    return Failure(
        f"{ended}: {names or 'while the agents were being loaded'}",
        list(ended.lines(limit_name="test.timeout_secs")),
    )


def _unmet(expected: Expectations, unmet: Unmet) -> Failure:
    line = f"agent {expected.agent!r}: {unmet}"
    match unmet:
        case UnmetOutcome(wanted=wanted, found=found):
            place = dotted(("assertions", expected.agent, "outcome"))
            said = "not set, so any but a failure" if wanted is None else show(wanted.to_json())
            return Failure(
                line,
                [f"agent {expected.agent!r}: {place}", f"  wanted   {said}", f"  found    {show(found)}"],
                agent=expected.agent,
            )
        case UnmetEvent(index=index):
            place = dotted(("assertions", expected.agent, "events", index))
            return Failure(line, [f"agent {expected.agent!r}: {place}", *lines_of(unmet)], places_of(unmet))


# -- the report ------------------------------------------------------------------------------------


def _report(case: Case, findings: Findings, failures: Sequence[Failure]) -> Iterator[str]:
    seed = "" if findings.seed == case.settings.seed else f" --seed {findings.seed}"
    sections = [
        *(failure.text for failure in failures),
        list(_agents(case, findings, told={each.agent for each in failures})),
        around(findings.trace, [place for each in failures for place in each.places]),
        *(describe(mock, findings.own_trace, name) for name, mock in findings.mocks.items()),
        [f"again: toolpost test {as_word(case.name)}{seed}"],
    ]
    for number, section in enumerate(each for each in sections if each):
        if number:
            yield ""
        yield from section


def _agents(case: Case, findings: Findings, *, told: Container[str | None]) -> Iterator[str]:
    """How the agents ended whose ends are not told yet, and who waited for nothing."""
    for name in case.config.agents:
        outcome = findings.outcomes.get(name)
        if outcome is not None and name not in told:
            yield f"agent {name!r} {outcome}"
    time = "" if findings.simulated_secs is None else " of simulated time"
    for agent, now, limit in findings.starved:
        yield f"agent {agent!r} waited {limit:g} s in recv for nothing, until {now:g} s{time}"
