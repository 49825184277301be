"""The sum of a run, and the names of the files that traces go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolpost.testing.result import Result
from toolpost.testing.round import trace_files
from toolpost.testing.tally import Tally


def results(**counts: int) -> list[Result]:
    statuses = [status for status, count in counts.items() for _ in range(count)]
    return [Result(case="x", status=status) for status in statuses]  # pyright: ignore[reportArgumentType]: given


@pytest.mark.parametrize(
    ("counts", "not_run", "text", "status"),
    [
        ({"passed": 3}, 0, "3 passed", 0),
        ({"passed": 3, "failed": 1, "error": 1}, 0, "3 passed, 1 failed, 1 error", 2),
        ({"failed": 2}, 5, "2 failed, 5 not run", 1),
        ({"error": 2}, 0, "2 errors", 2),
        ({}, 0, "nothing run", 0),
    ],
)
def test_a_tally_says_how_many_there_are_of_what_there_is(
    counts: dict[str, int], not_run: int, text: str, status: int
) -> None:
    tally = Tally.of(results(**counts), not_run=not_run)

    assert (str(tally), tally.status) == (text, status)


def names(*cases: str) -> list[str]:
    files = trace_files(cases, Path("traces"))
    assert all(each.is_absolute() and each.parent == Path("traces").absolute() for each in files.values())
    return [each.name for each in files.values()]


def test_a_trace_is_named_after_the_path_of_its_case() -> None:
    assert names("first.test.toml", "agents/deep/first.test.toml", "/abs/x.test.toml", "../up.toml") == [
        "first.jsonl",
        "agents-deep-first.jsonl",
        "abs-x.jsonl",
        "up.toml.jsonl",
    ]


def test_no_two_cases_share_a_file() -> None:
    assert names(
        "a-b.test.toml", "a/b.test.toml", "A/B.test.toml", "../a-b.test.toml", "a-b-2.test.toml"
    ) == [
        "a-b.jsonl",
        "a-b-2.jsonl",
        "A-B-3.jsonl",
        "a-b-4.jsonl",
        "a-b-2-2.jsonl",
    ]


def test_a_name_that_no_file_could_have_is_cut_and_stays_its_own() -> None:
    [first, second] = names(f"{'é' * 150}/a.test.toml", f"x{'é' * 150}/a.test.toml")

    assert len(first.encode()) < 255
    assert first.endswith("-a.jsonl")
    assert first != second
