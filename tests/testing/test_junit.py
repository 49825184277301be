"""A run as JUnit XML: what CI systems read of it, and characters that XML cannot carry."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from toolpost.testing.junit import write_junit
from toolpost.testing.result import Result

PASSED = Result(case="agents/good.test.toml", status="passed", seconds=0.25, output="hello\n")
FAILED = Result(
    case="agents/deep/bad.test.toml",
    status="failed",
    seconds=1.5,
    failures=["agent 'a': <no> & \"so\"", "strict"],
    report="agent 'a'\n  wanted   1 < 2",
)
BROKEN = Result(case="/elsewhere/odd.toml", status="error", failures=["no TOML"], report="no TOML")


def written(path: Path, *results: Result, not_run: tuple[str, ...] = ()) -> ElementTree.Element:
    write_junit(path, results, not_run=not_run)
    return ElementTree.fromstring(path.read_bytes())


def test_the_sum_stands_at_the_suite(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", PASSED, FAILED, BROKEN, not_run=("late.test.toml",))

    suite = root.find("testsuite")
    assert suite is not None
    assert suite.attrib == {
        "name": "toolpost",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "1.750",
    }


def test_each_case_has_its_folder_its_name_its_file_and_its_time(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", PASSED, FAILED, BROKEN)

    assert [each.attrib for each in root.iter("testcase")] == [
        {"classname": "agents", "name": "good", "file": "agents/good.test.toml", "time": "0.250"},
        {"classname": "agents.deep", "name": "bad", "file": "agents/deep/bad.test.toml", "time": "1.500"},
        {"classname": "elsewhere", "name": "odd.toml", "file": "/elsewhere/odd.toml", "time": "0.000"},
    ]


def test_a_failure_and_an_error_bring_their_reports(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", PASSED, FAILED, BROKEN)

    [failure] = root.iter("failure")
    [error] = root.iter("error")
    assert (failure.get("message"), failure.text) == (
        "agent 'a': <no> & \"so\"; strict",
        "agent 'a'\n  wanted   1 < 2",
    )
    assert (error.get("message"), error.text) == ("no TOML", "no TOML")


def test_what_was_printed_and_what_was_not_run_is_told(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", PASSED, not_run=("late.test.toml",))

    assert [each.text for each in root.iter("system-out")] == ["hello\n"]
    late = root.findall(".//testcase")[1]
    assert late.get("name") == "late"
    assert [each.tag for each in late] == ["skipped"]


@pytest.mark.parametrize("odd", ["\x00", "\x1b[31m", "\ud800", "\ufffe", "\x0b"])
def test_characters_that_xml_cannot_carry_are_replaced(odd: str, tmp_path: Path) -> None:
    bad = Result(
        case=f"a{odd}/b{odd}.test.toml",
        status="failed",
        failures=[f"<{odd}>"],
        report=f"x{odd}🦊é",
        output=odd,
    )

    root = written(tmp_path / "r.xml", bad, not_run=(f"{odd}.test.toml",))

    [failure] = root.iter("failure")
    assert failure.text is not None
    assert failure.text.startswith("x�")
    assert failure.text.endswith("🦊é")
