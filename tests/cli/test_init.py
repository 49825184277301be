"""`toolpost init` and `toolpost schema`: what is written runs as it is, and fits the schema beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import toolpost

WRITTEN = [".toolpost.schema.json", "agent.py", "server.py", "toolpost.toml"]


def test_what_init_writes_runs_as_it_is(tmp_path: Path) -> None:
    made = toolpost("init", "starter", cwd=tmp_path)
    folder = tmp_path / "starter"

    assert (made.status, made.out) == (0, "")
    assert sorted(each.name for each in folder.iterdir()) == WRITTEN
    assert "cd starter\n  toolpost run " in made.err
    ran = toolpost("run", cwd=folder)
    assert (ran.status, ran.out) == (0, "noted; that makes 1\nfound: buy milk\n")
    called = toolpost("call", "notes", "add", "text=hi", cwd=folder)
    assert (called.status, called.out) == (0, "noted; that makes 1\n")


def test_the_starters_schema_is_where_its_first_line_says(tmp_path: Path) -> None:
    toolpost("init", cwd=tmp_path)

    first = (tmp_path / "toolpost.toml").read_text().splitlines()[0]
    printed = toolpost("schema")

    assert first == "#:schema .toolpost.schema.json"
    assert printed.status == 0
    assert (tmp_path / ".toolpost.schema.json").read_text() == printed.out
    assert json.loads(printed.out)["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_init_overwrites_nothing_and_writes_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "toolpost.toml").write_text("mine")

    ended = toolpost("init", cwd=tmp_path)

    assert (ended.status, ended.out) == (2, "")
    assert "toolpost.toml exists, and nothing is overwritten; name another folder" in ended.err
    assert [each.name for each in tmp_path.iterdir()] == ["toolpost.toml"]
    assert (tmp_path / "toolpost.toml").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    ended = toolpost("init", "file/inside", cwd=tmp_path)

    assert ended.status == 2
    assert "cannot be written" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["init", "import", "schema"])
def test_the_help_of_each_shows_an_example(command: str) -> None:
    ended = toolpost(command, "-h")

    assert ended.status == 0
    assert f"toolpost {command} " in ended.out.partition("Example")[2]
