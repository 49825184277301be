"""What came of a soak: the promises that were broken, and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.soak.agent import SoakAgent
from tests.soak.memory import Memory
from tests.soak.plan import Options
from tests.soak.processes import Held
from tests.soak.world import Done

GROWTH = 0.10
"""How much memory may grow once the run is warm."""
MOST_TOLD = 20


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is told."""

    seed: int
    calls: int
    answered: int
    lost: int
    cancelled: int
    duplicated: int
    silent: int
    executed_twice: int
    executed_though_denied: int
    connections: int
    subscriptions: int
    saw_the_last: int
    updates: int
    renewed: int
    faults: dict[str, int]
    errors: dict[str, int]
    warm_mib: float
    highest_mib: float
    peak_mib: float
    before: Held
    after: Held
    processes_left: int
    odd: list[str]
    """What nothing explains."""
    judges_memory: bool

    def broken(self) -> Iterator[str]:
        """The promises that were not kept."""
        if self.silent:
            yield f"{self.silent} calls got neither a result nor an error"
        if self.duplicated:
            yield f"{self.duplicated} envelopes came under the UUID of a call that had its end"
        if self.executed_twice:
            yield f"{self.executed_twice} calls were executed more than once"
        if self.executed_though_denied:
            yield f"{self.executed_though_denied} calls were executed that never left, as their errors say"
        if self.calls != self.answered + self.lost + self.cancelled + self.silent:
            yield "the calls do not add up"
        if blind := self.subscriptions - self.saw_the_last:
            yield f"{blind} subscriptions did not see the last state"
        if self.judges_memory and self.highest_mib > self.warm_mib * (1 + GROWTH):
            yield f"memory grew from {self.warm_mib:.0f} to {self.highest_mib:.0f} MiB"
        if self.after.exceeds(self.before):
            yield f"more is held than before: {self.before}, {self.after}"
        if self.processes_left:
            yield f"{self.processes_left} servers were left behind"
        yield from self.odd

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"broken": list(self.broken())}

    def table(self) -> str:
        rows = [
            ("calls", f"{self.calls:,}"),
            ("  answered", f"{self.answered:,}"),
            ("  lost, with an error", f"{self.lost:,}"),
            ("  cancelled", f"{self.cancelled:,}"),
            ("  silent", f"{self.silent:,}"),
            ("  duplicated", f"{self.duplicated:,}"),
            ("  executed twice", f"{self.executed_twice:,}"),
            ("  executed though denied", f"{self.executed_though_denied:,}"),
            ("subscriptions", f"{self.subscriptions:,}"),
            ("  saw the last state", f"{self.saw_the_last:,}"),
            ("  updates seen", f"{self.updates:,}"),
            ("  ended, and made anew", f"{self.renewed:,}"),
            ("connections", f"{self.connections:,}"),
            ("faults", _listed(self.faults)),
            ("errors", _listed(self.errors)),
            (
                "memory: warm, highest, peak",
                f"{self.warm_mib:.0f}, {self.highest_mib:.0f}, {self.peak_mib:.0f} MiB",
            ),
            ("descriptors: before, after", f"{self.before.descriptors}, {self.after.descriptors}"),
            ("threads: before, after", f"{self.before.threads}, {self.after.threads}"),
            ("processes left", f"{self.processes_left}"),
        ]
        return "\n".join(f"{name:<28} {value}" for name, value in rows)


def judged(
    options: Options,
    *,
    agents: Sequence[SoakAgent],
    outcomes: Mapping[str, str],
    last: Mapping[tuple[str, str], str],
    done: Sequence[Done],
    faults: Counter[str],
    memory: Memory,
    held: tuple[Held, Held],
    left: Sequence[int],
    logged: Sequence[str],
) -> Report:
    """The report of what all have written down."""
    records = [each.record for each in agents]
    executed = sum((each.executed for each in done), Counter[str]())
    errors = sum((each.errors for each in records), Counter[str]())
    followed = [each for record in records for each in record.subscriptions.values()]
    blind = [f"{agent.name}: {each}" for agent in agents for each in agent.blind(last)]
    ended = [f"{name} {outcome}" for name, outcome in outcomes.items() if outcome != "completed"]
    said = [f"{agent.name}: {each}" for agent in agents for each in agent.record.odd]
    silent = [
        f"{agent.name}: no outcome of {token}" for agent in agents for token, _ in agent.record.open.values()
    ]
    return Report(
        seed=options.seed,
        calls=sum(each.calls for each in records),
        answered=sum(each.answered for each in records),
        lost=sum(each.lost for each in records),
        cancelled=sum(each.cancelled for each in records),
        duplicated=sum(each.after_the_end for each in records),
        silent=len(silent),
        executed_twice=sum(times > 1 for times in executed.values()),
        executed_though_denied=sum(executed[token] > 0 for each in records for token in each.denied),
        connections=sum(each.greetings for each in done),
        subscriptions=len(followed),
        saw_the_last=len(followed) - len(blind),
        updates=sum(each.seen for each in records),
        renewed=sum(each.renewed for each in records),
        faults=dict(faults),
        errors=dict(errors),
        warm_mib=memory.warm_mib,
        highest_mib=memory.highest_mib,
        peak_mib=memory.peak_mib,
        before=held[0],
        after=held[1],
        processes_left=len(left),
        odd=[*ended, *said, *silent, *blind, *logged][:MOST_TOLD],
        judges_memory=options.judges_memory,
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items())) or "none"
