"""What a change touches. Files are changed by hand here, and nobody waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolpost.testing.result import Result
from toolpost.testing.watching import Change, Watch

LONG_AGO_NS = 10**18
LATER_NS = 2 * 10**18


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: two cases, an agent of each and one base."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for name in ("a.test.toml", "b.test.toml", "a.py", "b.py", "base.toml"):
        put(name)
    return here


def put(name: str, text: str = "", *, at: int = LONG_AGO_NS) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    os.utime(name, ns=(at, at))


def find() -> list[Path]:
    return sorted(Path().glob("*.test.toml"))


def passed(case: str, *needs: str) -> Result:
    return Result(case=case, status="passed", files=[str(Path(each).absolute()) for each in needs])


def watching() -> Watch:
    """After the first round."""
    watch = Watch(find)
    assert touched(watch.look()) == ["a.test.toml", "b.test.toml"]
    results = [passed("a.test.toml", "a.py", "base.toml"), passed("b.test.toml", "b.py", "base.toml")]
    watch.learn(results, since_ns=LONG_AGO_NS + 1)
    return watch


def touched(change: Change) -> list[str]:
    return [str(each) for each in change.cases]


def names(change: Change) -> list[str]:
    return [Path(each).name for each in change.files]


def test_nothing_has_changed_where_nothing_has(folder: Path) -> None:
    watch = watching()

    assert not watch.look()
    assert not watch.look()


@pytest.mark.parametrize(
    ("file", "cases"),
    [
        ("a.py", ["a.test.toml"]),
        ("b.test.toml", ["b.test.toml"]),
        ("base.toml", ["a.test.toml", "b.test.toml"]),
        ("other.py", []),
    ],
)
def test_a_change_touches_the_cases_that_depend_on_the_file(
    file: str, cases: list[str], folder: Path
) -> None:
    watch = watching()
    put(file, "new", at=LATER_NS)

    change = watch.look()

    assert touched(change) == cases
    assert names(change) == ([file] if cases else [])
    assert not watch.look()


def test_a_file_that_goes_and_comes_again_is_two_changes(folder: Path) -> None:
    watch = watching()

    Path("a.py").unlink()
    assert touched(watch.look()) == ["a.test.toml"]
    put("a.py")
    assert touched(watch.look()) == ["a.test.toml"]


def test_an_older_file_in_its_place_is_a_change(folder: Path) -> None:
    watch = watching()
    put("a.py", at=LONG_AGO_NS - 10**9)

    assert touched(watch.look()) == ["a.test.toml"]


def test_a_case_that_comes_is_run_and_one_that_goes_is_forgotten(folder: Path) -> None:
    watch = watching()
    put("c.test.toml")
    Path("a.test.toml").unlink()

    change = watch.look()

    assert touched(change) == ["c.test.toml"]
    assert names(change) == ["a.test.toml", "c.test.toml"]
    assert watch.names == ["b.test.toml", "c.test.toml"]
    put("a.py", "new", at=LATER_NS)
    assert not watch.look()


def test_what_was_left_out_is_run_with_the_next_change(folder: Path) -> None:
    watch = watching()

    assert not watch.look(["b.test.toml"])
    put("a.py", "new", at=LATER_NS)
    assert touched(watch.look(["b.test.toml"])) == ["a.test.toml", "b.test.toml"]


def test_a_file_that_changes_while_it_is_first_run_counts_as_changed(folder: Path) -> None:
    watch = Watch(find)
    watch.look()
    put("a.py", "new", at=LATER_NS)

    watch.learn([passed("a.test.toml", "a.py")], since_ns=LATER_NS)

    assert touched(watch.look()) == ["a.test.toml"]
    assert not watch.look()


def broken(case: str) -> Result:
    return Result(case=case, status="error", failures=["?"], files=[str(Path(case).absolute())])


def died(case: str) -> Result:
    return Result(case=case, status="failed", failures=["its process exited with status 3"])


@pytest.mark.parametrize("ended", [broken, died])
def test_a_case_that_did_not_get_far_is_touched_by_the_sources_about_it(
    ended: Callable[[str], Result], folder: Path
) -> None:
    put("a.test.toml", 'test.extends = "base/one.toml"')
    put("base/one.toml", '[test]\nextends = "../../two/two.toml"')
    watch = Watch(find)
    watch.look()
    watch.learn([ended("a.test.toml"), passed("b.test.toml", "b.py")], since_ns=LONG_AGO_NS + 1)
    assert not watch.look()

    for file in ("missing.py", "base/one.toml", "base/beside.toml", "../two/two.toml", "../two/agent.py"):
        put(file, "# now it is there\n" if file != "base/one.toml" else Path(file).read_text(), at=LATER_NS)
        assert touched(watch.look()) == ["a.test.toml"], file
    put("notes.txt")
    assert not watch.look()


def test_files_that_extend_each_other_in_a_circle_are_looked_at_once(folder: Path) -> None:
    put("a.test.toml", '[test]\nextends = "base.toml"')
    put("base.toml", '[test]\nextends = "a.test.toml"')
    watch = Watch(find)
    watch.look()

    watch.learn([broken("a.test.toml")], since_ns=LONG_AGO_NS + 1)

    assert not watch.look()
    put("base.toml", "", at=LATER_NS)
    assert touched(watch.look()) == ["a.test.toml"]


def test_a_case_that_goes_while_it_is_looked_for_is_not_run(folder: Path) -> None:
    is_going = False

    def find() -> list[Path]:
        found = sorted(Path().glob("*.test.toml"))
        if is_going:
            Path("a.test.toml").unlink(missing_ok=True)
        return found

    watch = Watch(find)
    watch.look()
    is_going = True

    assert not watch.look().cases
    assert watch.look() == Change([str(folder / "a.test.toml")], [])
