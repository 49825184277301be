"""Which test files are found, which are left out, and what is said where there is none."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import pytest

from toolpost.errors import UsageError
from toolpost.testing.discover import find_cases, select


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(*names: str) -> None:
    for name in names:
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def found(*paths: str) -> list[str]:
    return [str(each) for each in find_cases([Path(path) for path in paths])]


def test_a_folder_gives_every_test_file_below_it_in_order(folder: Path) -> None:
    put("b.test.toml", "a.test.toml", "deep/er/c.test.toml", "toolpost.toml", "test.toml")

    assert found(".") == ["a.test.toml", "b.test.toml", "deep/er/c.test.toml"]
    assert found("./deep") == ["deep/er/c.test.toml"]
    assert found(str(folder / "deep")) == [str(folder / "deep/er/c.test.toml")]


def test_a_file_that_is_named_may_have_any_name(folder: Path) -> None:
    put("odd.toml")

    assert found("odd.toml") == ["odd.toml"]


def test_a_file_that_is_reached_twice_comes_once_in_the_first_place(folder: Path) -> None:
    put("a.test.toml", "sub/b.test.toml")

    assert found("sub", ".", str(folder)) == ["sub/b.test.toml", "a.test.toml"]


def test_names_of_all_alphabets_and_odd_bytes_are_names(folder: Path) -> None:
    names = ["mañana 🦊.test.toml", "neu\nzeile.test.toml", "-k.test.toml", "bytes-\udcff.test.toml"]
    put(*names)

    assert sorted(found(".")) == sorted(names)


@pytest.mark.parametrize(
    "place", [".hidden/a.test.toml", ".a.test.toml", "node_modules/x/a.test.toml", "__pycache__/a.test.toml"]
)
def test_hidden_and_cached_places_are_skipped(place: str, folder: Path) -> None:
    put(place, "real.test.toml")

    assert found(".") == ["real.test.toml"]


def test_a_virtual_environment_is_skipped_whatever_it_is_called(folder: Path) -> None:
    put("tools/pyvenv.cfg", "tools/lib/a.test.toml", "real.test.toml")

    assert found(".") == ["real.test.toml"]


def test_a_hidden_folder_that_is_named_is_searched(folder: Path) -> None:
    put(".hidden/a.test.toml")

    assert found(".hidden") == [".hidden/a.test.toml"]


def test_links_to_folders_are_not_followed(folder: Path) -> None:
    put("real/a.test.toml")
    Path("real/again").symlink_to(folder)
    Path("loop").symlink_to("loop")

    assert found(".") == ["real/a.test.toml"]


def test_what_git_ignores_is_skipped(folder: Path) -> None:
    put("build/x/a.test.toml", "b.test.toml", "c.draft.test.toml", "sub/d.test.toml")
    subprocess.run(["git", "init", "--quiet", "."], check=True)
    Path(".gitignore").write_text("build/\n*.draft.test.toml\n")

    assert found(".") == ["b.test.toml", "sub/d.test.toml"]
    assert found("sub") == ["sub/d.test.toml"]


def test_an_ignored_folder_or_file_that_is_named_is_meant(folder: Path) -> None:
    put("build/x/a.test.toml")
    subprocess.run(["git", "init", "--quiet", "."], check=True)
    Path(".gitignore").write_text("build/\n")

    assert found("build") == ["build/x/a.test.toml"]
    assert found("build/x") == ["build/x/a.test.toml"]
    assert found("build/x/a.test.toml") == ["build/x/a.test.toml"]


def test_without_git_only_the_fixed_places_are_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("build/a.test.toml", ".hidden/b.test.toml")
    Path(".gitignore").write_text("build/\n")
    monkeypatch.setenv("PATH", "")

    assert found(".") == ["build/a.test.toml"]


def test_a_path_that_leads_nowhere_is_an_error_that_names_it(folder: Path) -> None:
    put("a.test.toml")

    with pytest.raises(UsageError, match="cannot search 'nowhere' for tests: No such file or directory"):
        find_cases([Path("a.test.toml"), Path("nowhere")])


def test_no_tests_is_an_error_and_says_where_it_looked(folder: Path) -> None:
    put("toolpost.toml", ".hidden/a.test.toml")

    with pytest.raises(UsageError, match=r"no test files \(\*\.test\.toml\) in '\.'; hidden and ignored"):
        find_cases([Path()])


def test_a_folder_that_cannot_be_read_is_told_of_and_the_others_are_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    put("locked/a.test.toml", "open/b.test.toml")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with caplog.at_level(logging.WARNING):
        assert found(".") == ["open/b.test.toml"]

    assert "the folder 'locked' cannot be searched for tests: Permission denied" in caplog.text


CASES = [
    Path("agents/first.test.toml"),
    Path("agents/second.test.toml"),
    Path("other/first_of_all.test.toml"),
]


@pytest.mark.parametrize(
    ("globs", "left"),
    [
        (["first"], ["agents/first.test.toml"]),
        (["first.test.toml"], ["agents/first.test.toml"]),
        (["*first*"], ["agents/first.test.toml", "other/first_of_all.test.toml"]),
        (["agents/*"], ["agents/first.test.toml", "agents/second.test.toml"]),
        (["agents/second"], ["agents/second.test.toml"]),
        (["second", "*all"], ["agents/second.test.toml", "other/first_of_all.test.toml"]),
        (["[fs]*"], ["agents/first.test.toml", "agents/second.test.toml", "other/first_of_all.test.toml"]),
    ],
)
def test_a_glob_is_matched_against_path_and_name(globs: list[str], left: list[str]) -> None:
    assert [str(each) for each in select(CASES, wanted=globs)] == left


def test_what_is_excluded_goes_even_if_it_is_wanted() -> None:
    assert select(CASES, wanted=["*first*"], unwanted=["first"]) == [CASES[2]]
    assert select(CASES, unwanted=["agents/*"]) == [CASES[2]]


def test_a_selection_of_nothing_is_an_error_that_lists_what_there_is() -> None:
    with pytest.raises(UsageError) as raised:
        select(CASES, wanted=["frist"], unwanted=["x"])

    assert str(raised.value) == (
        "-k 'frist' --exclude 'x' leaves none of 3 test files: agents/first.test.toml,"
        " agents/second.test.toml, other/first_of_all.test.toml"
        " (a glob matches a whole name: '*first*' where 'first' is a part of it)"
    )
