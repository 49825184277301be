"""One case under many seeds, until one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolpost.testing.case import Case, load_case
from toolpost.testing.result import Result
from toolpost.testing.run import run_case
from toolpost.testing.seeds import run_seeds

CASE = """
[tooling.shop]
kind = "mock"
delay_ms = 1000
tool_calls = [{ name = "price", result = "apples" }, { name = "price", result = "pears" }]
[agents.ada]
script = "ada.py"
[assertions.ada]
outcome = { exited = "apples, pears" }
"""
TRUSTS = """
def run(host):
    shop = host.tooling.get("shop")
    shop.call_tool("price")
    shop.call_tool("price")
    fruits = [host.recv().event.value for _ in range(2)]
    return ", ".join(fruits)
"""
SORTS = TRUSTS.replace("join(fruits)", "join(sorted(fruits))")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def case(folder: Path, agent: str, test: str = "") -> Case:
    (folder / "ada.py").write_text(agent)
    path = folder / "first.test.toml"
    path.write_text(f"{CASE}[test]\n{test}\n")
    return load_case(path)


def under(case: Case, *seeds: int) -> tuple[Result, list[int | None]]:
    """The result, and the seeds that were run."""
    ran: list[int | None] = []

    def run(seed: int | None):
        ran.append(seed)
        return run_case(case, seed=seed)

    return run_seeds(case, seeds, run)[0], ran


def test_it_runs_under_each_seed_and_tells_how_many(folder: Path) -> None:
    result, ran = under(case(folder, SORTS), *range(5))

    assert ran == [0, 1, 2, 3, 4]
    assert (result.status, result.seeds, result.seed) == ("passed", 5, 4)
    assert result.simulated_secs == 5, "a second for each"


def test_it_stops_at_the_first_that_fails_with_both_traces_from_where_they_part(folder: Path) -> None:
    result, ran = under(case(folder, TRUSTS), *range(200))

    assert result.status == "failed"
    assert ran == list(range(result.seed + 1))
    heading, columns, *_ = result.report.splitlines()
    assert heading == f"seed {result.seed} fails, and seed 0 passes; their traces part at record 4"
    assert columns.split() == ["seed", "0", "seed", str(result.seed)]
    assert result.report.endswith(f"again: toolpost test {result.case} --seed {result.seed}")


def test_what_fails_under_the_first_seed_has_nothing_to_be_compared_with(folder: Path) -> None:
    result, ran = under(case(folder, "def run(host):\n    return 'nothing'"), 3, 4)

    assert ran == [3]
    assert result.report.startswith("agent 'ada': assertions.ada.outcome\n")
    assert result.report.endswith("--seed 3")


def test_without_seeds_it_runs_under_its_own(folder: Path) -> None:
    result, ran = under(case(folder, SORTS, "seed = 7"))

    assert ran == [None]
    assert (result.seed, result.seeds) == (7, 1)


def test_in_real_time_seeds_change_nothing_and_it_runs_once(folder: Path) -> None:
    result, ran = under(case(folder, SORTS, 'clock = "real"'), 1, 2, 3)

    assert ran == [None]
    assert (result.status, result.seeds, result.simulated_secs) == ("passed", 1, None)
