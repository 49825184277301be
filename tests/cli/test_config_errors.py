"""A config that cannot be used: status 2, every problem, no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Ended, odd, toolpost, write_config


def refused(ended: Ended) -> str:
    """What was said, once it is clear that the config was refused as it should be."""
    assert ended.status == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert ended.err.startswith("error: ")
    return ended.err


@pytest.mark.parametrize("command", [["run"], ["check"], ["tools", "it"], ["call", "it", "echo"]])
def test_a_missing_config_is_named_with_the_folder_it_was_looked_for_in(
    command: list[str], tmp_path: Path
) -> None:
    said = refused(toolpost(*command, cwd=tmp_path))

    assert said == (
        f"error: toolpost.toml: no such file in {tmp_path}; create it, or name another one with -c/--config\n"
    )


def test_broken_toml_is_told_with_its_line(tmp_path: Path) -> None:
    config = write_config(tmp_path, "[tooling.it]\nkind = \n")

    assert f"{config}:2:" in refused(toolpost("check", "-c", config))


def test_two_errors_of_a_file_are_both_told(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(comand="x"), "web": {"kind": "mpc"}}})

    said = refused(toolpost("check", "-c", config))

    assert said.startswith("error: 2 problems in the configuration\n")
    assert f"  {config}: tooling.it.comand: unknown key" in said
    assert f"  {config}: tooling.web.kind: unknown kind" in said


@pytest.mark.parametrize(
    ("tables", "named"),
    [
        ({"tooling": {"it": odd(args="-v")}}, "tooling.it.args"),
        ({"tooling": {"it": odd(url="http://127.0.0.1")}}, "tooling.it.url"),
        ({"tooling": {"it": odd(command="${NOT_SET_ANYWHERE}")}}, "NOT_SET_ANYWHERE"),
        ({"agents": {"one": {"script": "gone.py"}}}, "agents.one.script"),
        ({"agents": {"one": {"skript": "one.py"}}}, "agents.one.skript"),
        ({"agents": {"one": {"entry": "json:dumps", "toolings": ["web"]}}}, "agents.one.toolings"),
        ({"tunables": {"inbox_bound": 0}}, "tunables.inbox_bound"),
        ({"toolings": {}}, "toolings"),
    ],
)
def test_each_fault_is_named_with_its_place(tables: dict[str, Any], named: str, tmp_path: Path) -> None:
    assert named in refused(toolpost("check", "-c", write_config(tmp_path, tables)))


@pytest.mark.parametrize("command", [["tools", "ti"], ["call", "ti", "echo"]])
def test_an_unknown_tooling_is_told_with_the_known_ones(command: list[str], tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(), "other": odd()}})

    said = refused(toolpost(*command, "-c", config))

    assert said == f"error: {config} has no tooling 'ti'; it has: it, other\n"


def test_a_warning_of_the_config_is_logged_and_the_command_goes_on(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(args=["${HOME}"])}})

    ended = toolpost("check", "-c", config)

    assert ended.status == 0
    assert [(each["level"], each["logger"]) for each in ended.logged] == [("WARNING", "toolpost.config")]
    assert "tooling.it.args[0]" in ended.logged[0]["message"]
