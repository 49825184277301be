"""The tests of agents in examples/ pass where they should, and fail with the report that lies beside them.

UPDATE_REPORTS=1 in the environment writes the reports anew; TOOLPOST_SOAK=10 runs those that pass ten times
as often (`make soak`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

import toolpost
from tests.cli.support import ROOT
from tests.cli.support import toolpost as command
from toolpost.testing.case import load_case
from toolpost.testing.result import Result
from toolpost.testing.run import run_case
from toolpost.testing.seeds import run_seeds

TESTING, FAILING = Path("examples/testing"), Path("examples/failing")
UPDATE = os.environ.get("UPDATE_REPORTS") == "1"
TIMES = 20 * int(os.environ.get("TOOLPOST_SOAK", "1"))
"""How often each example is run to see that it is not by luck that it passes."""


LUCKY = "assumed_order"
"""The one that fails under some seeds only."""


def cases(folder: Path) -> list[Any]:
    """Every case of a folder, by the paths that somebody in the root of the repository would type."""
    found = sorted(each for each in (ROOT / folder).glob("*.test.toml") if name_of(each) != LUCKY)
    return [pytest.param(folder / each.name, id=name_of(each)) for each in found]


def name_of(path: Path) -> str:
    return path.name.removesuffix(".test.toml")


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("WEATHER_TOKEN", raising=False)


def run(path: Path) -> tuple[Result, toolpost.Trace]:
    return run_case(load_case(path))


# -- those that pass -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", cases(TESTING))
def test_an_example_passes_and_uses_its_whole_script(path: Path) -> None:
    result, _ = run(path)

    assert (result.status, result.report, result.unused) == ("passed", "", [])


@pytest.mark.parametrize("path", cases(TESTING))
def test_an_example_leaves_the_same_trace_however_often_it_runs(path: Path) -> None:
    case = load_case(path)

    traces = {"\n".join(run_case(case)[1].json_lines()) for _ in range(TIMES)}

    assert len(traces) == 1


@pytest.mark.parametrize("path", cases(TESTING))
def test_an_example_passes_whoever_comes_first(path: Path) -> None:
    case = load_case(path)

    results = [run_case(case, seed=seed)[0] for seed in range(TIMES)]

    assert [each.report for each in results if each.status != "passed"] == []


def test_the_whole_script_gives_exactly_its_events_in_order() -> None:
    _, trace = run(TESTING / "whole_script.test.toml")

    seen = [record for record in trace if isinstance(record, toolpost.Inbound)]
    notes = {"uri": "mem://notes", "name": "notes", "mime_type": "text/plain"}
    assert [(each.event, essence(each.payload)) for each in seen] == [
        ("resource-list-updated", [notes]),
        ("tool-result", "hi"),
        ("resource-updated", "v2"),
        ("tool-result", "3"),
    ]


def essence(payload: Any) -> Any:
    """What a payload says, without what goes with it."""
    match payload:
        case {"value": text} | {"content": text}:
            return text
        case _:
            return payload


def test_the_whole_script_is_the_one_that_the_mock_is_tested_with() -> None:
    whole = Path("tests/mock/whole.toml").read_text()

    assert (TESTING / "whole_script.toml").read_text() == whole


def test_a_mock_in_the_place_of_a_server_connects_to_nothing_and_needs_no_token() -> None:
    with pytest.raises(toolpost.ConfigError, match="WEATHER_TOKEN"):
        toolpost.load_config(TESTING / "production.toml")

    result, trace = run(TESTING / "instead_of_a_server.test.toml")

    assert result.status == "passed"
    assert [record for record in trace if isinstance(record, toolpost.State)] == []


# -- those that fail -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", cases(FAILING))
def test_an_example_fails_with_the_report_beside_it(path: Path) -> None:
    result, _ = run(path)

    assert result.status == "failed"
    assert_pinned(path, result.report)


def test_a_race_that_one_seed_hides_is_found_by_another() -> None:
    path = FAILING / f"{LUCKY}.test.toml"
    case = load_case(path)

    result, _ = run_seeds(case, range(200), lambda seed: run_case(case, seed=seed))

    assert run(path)[0].status == "passed", "seed 0 is first come, first served"
    assert (result.status, result.seeds) == ("failed", result.seed + 1)
    assert_pinned(path, result.report)


def assert_pinned(path: Path, report: str) -> None:
    """The report is the one that lies beside the case."""
    report = masked(report)
    pinned = path.with_name(f"{name_of(path)}.report.txt")
    if UPDATE:
        pinned.write_text(report)
    assert report == pinned.read_text()


def masked(report: str) -> str:
    """A report without what this machine has in it: where the repository lies."""
    return report.replace(f"{ROOT}{os.sep}", "").rstrip("\n") + "\n"


def test_an_agent_that_calls_in_another_order_is_told_so() -> None:
    _, trace = run(FAILING / "wrong_order.test.toml")

    assert [record.payload for record in trace if isinstance(record, toolpost.Inbound)] == [
        "tooling 'mcp': call_tool 'add': step 1 of 2 expects 'echo', but 'add' was called"
    ]


# -- both, as somebody in the root of the repository types it ------------------------------------------


def test_the_command_passes_the_examples_that_pass() -> None:
    ended = command("test", TESTING)

    *lines, tally = ended.out.splitlines()
    assert lines == [f"PASS {case.values[0]}" for case in cases(TESTING)]
    assert re.fullmatch(rf"{len(lines)} passed, [\d.]+ s simulated in [\d.]+ s", tally)
    assert (ended.status, ended.err) == (0, "")


def test_the_command_tells_the_reports_of_the_examples_that_fail() -> None:
    ended = command("test", FAILING, "--exclude", LUCKY, "--json")

    told = {each["case"]: masked(each["report"]) for each in ended.document["cases"]}
    pinned = {name: Path(name.replace(".test.toml", ".report.txt")).read_text() for name in told}
    assert told == pinned
    assert list(told) == [str(case.values[0]) for case in cases(FAILING)]
    assert ended.status == 1


def test_the_command_finds_the_race_and_says_how_to_repeat_it() -> None:
    path = FAILING / f"{LUCKY}.test.toml"

    found = command("test", path, "--seeds", "200")

    *_, again, _, tally = found.out.splitlines()
    assert (found.status, command("test", path).status) == (1, 0)
    assert tally.startswith("1 failed, ")
    assert command(*again.split()[2:]).status == 1


# -- what lies around them -------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [TESTING, FAILING])
def test_the_readme_tells_of_each_case(folder: Path) -> None:
    told = re.findall(r"^- `([\w.]+)`:", (folder / "README.md").read_text(), re.MULTILINE)

    assert sorted(told) == sorted(path.name for path in folder.glob("*.test.toml"))


def test_each_report_belongs_to_a_case() -> None:
    reports = {path.name.removesuffix(".report.txt") for path in FAILING.glob("*.report.txt")}

    assert reports == {name_of(path) for path in FAILING.glob("*.test.toml")}


@pytest.mark.parametrize("folder", [TESTING, FAILING])
def test_each_agent_is_used_by_a_case(folder: Path) -> None:
    configs = "".join(path.read_text() for path in folder.glob("*.toml"))

    assert [path.name for path in folder.glob("*.py") if f'"{path.name}"' not in configs] == []
