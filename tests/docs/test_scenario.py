"""The reader of pages sees what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.scenario import Page, Reader, same, untested


def followed(text: str, folder: Path) -> list[str]:
    """What is wrong with a page."""
    page = folder / "README.md"
    page.write_text(text)
    (folder / "reader").mkdir()
    return Reader(Page(page), folder / "reader").follow()


def test_a_page_that_tells_the_truth_is_right(tmp_path: Path) -> None:
    text = "In `a.py`:\n```python\nprint('hi')\n```\n```console\n$ export A=1\n$ python a.py\nhi\n```\n"

    assert followed(text, tmp_path) == []


def test_another_output_is_told_with_what_it_is(tmp_path: Path) -> None:
    wrong = followed("```console\n$ echo one\ntwo\n```\n", tmp_path)

    assert wrong == ["-- the page says\n$ echo one\ntwo\n-- it is\n$ echo one\none\n"]


def test_a_command_is_ended_by_its_key(tmp_path: Path) -> None:
    assert followed("```console\n$ echo on; sleep 50\non\n^C\n```\n", tmp_path) == []


def test_a_page_that_shows_a_file_of_an_example_has_the_whole_example(tmp_path: Path) -> None:
    fence = '```python title="examples/testing/walker.py"\n--8<-- "examples/testing/walker.py"\n```\n'
    listing = "```console\n$ ls examples/testing/wr*.py\nexamples/testing/writer.py\n```\n"

    assert followed(fence + listing, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```python\n1\n```\n", ["code that is in no file: 1"]),
        ("`a.py`\n```python\n1\n```\n", ["a file that no command uses: a.py"]),
        ("`toolpost.toml`\n```toml\n```\n", ["a file that no command uses: toolpost.toml"]),
        ("- x\n\n  ```python\n  1\n  ```\n", ["a fence that is indented or not closed"]),
        ("```console\n$ toolpost run\n", ["a fence that is indented or not closed"]),
        ("```text\na figure\n```\n", []),
        ("`a.py`\n```python\n1\n```\n```console\n$ python a.py\n```\n", []),
    ],
)
def test_a_page_with_code_that_nothing_runs_is_told_of(text: str, told: list[str], tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(text)

    assert untested(Page(tmp_path / "README.md")) == told


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("v 1.2.3, 5 ms\n", "v 1.10.0, 1234 ms\n"),
        ("a  b\n", "a      b\n"),
        ("a\n…\nz\n", "a\nb\nc\nz\n"),
        ("a … z\n", "a b c z\n"),
    ],
)
def test_what_differs_each_time_does_not_count(page: str, shown: str) -> None:
    assert same(page, shown)


@pytest.mark.parametrize(("page", "shown"), [("a\n", "b\n"), ("a\n", "a\nb\n"), ("a.c\n", "abc\n")])
def test_everything_else_counts(page: str, shown: str) -> None:
    assert not same(page, shown)
