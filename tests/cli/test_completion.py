"""Completion: what the scripts offer, from where, and what they never do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import BOUND_SECS, TOOLPOST, catalog, environment, odd, write_config
from toolpost.cli import names


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, {"tooling": {"shop": catalog(), "shed": odd("exit_on_start")}})


def offered(inside: Inside, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    monkeypatch.setenv("COMP_WORDS", " ".join(["toolpost", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setenv("_TOOLPOST_COMPLETE", "complete_bash")
    from toolpost.cli.completion import prepare

    prepare()
    return inside().out.split()


def test_commands_toolings_and_tools_are_offered(
    inside: Inside, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inside("tools", "shop", "-c", config).status == 0  # it has answered once

    at = ["-c", str(config)]
    assert offered(inside, monkeypatch, "re") == ["resources", "read"]
    assert offered(inside, monkeypatch, *at, "call", "sh") == ["shed", "shop"]
    assert offered(inside, monkeypatch, *at, "call", "shop", "b") == ["bare", "big", "book"]
    assert offered(inside, monkeypatch, "call", *at, "shop", "add") == ["add"]
    assert offered(inside, monkeypatch, *at, "call", "shed", "a") == []
    assert offered(inside, monkeypatch, "call", "shop", "a") == []  # of a config that is not there


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, inside: Inside) -> None:
    ended = inside("completion", shell)

    assert ended.status == 0
    assert "_TOOLPOST_COMPLETE=complete_" in ended.out
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=ended.out, text=True, timeout=BOUND_SECS, check=True)


def test_bash_completes_with_the_script(config: Path, cache: Path) -> None:
    names.remember(str(config), "shop", ["add", "all", "book"])
    script = f"""
source <({TOOLPOST} completion bash)
COMP_WORDS=(toolpost -c {config} call shop a); COMP_CWORD=5
_toolpost_completion {TOOLPOST}
echo "${{COMPREPLY[@]}}"
"""

    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=BOUND_SECS,
        env=environment(XDG_CACHE_HOME=str(cache)),
        check=True,
    )

    assert (done.stdout, done.stderr) == ("add all\n", "")


# -- what is remembered ----------------------------------------------------------------------------


def test_names_are_remembered_by_config_and_tooling(cache: Path) -> None:
    names.remember("a.toml", "one", ["b", "a"])
    names.remember("a.toml", "two", ["c"])
    names.remember("b.toml", "one", ["d"])

    assert names.tool_names("a.toml", "one") == ["a", "b"]
    assert names.tool_names("a.toml", "two") == ["c"]
    assert names.tool_names(str(Path.cwd() / "b.toml"), "one") == ["d"]
    assert names.tool_names("c.toml", "one") == []
    files = list((cache / "toolpost").iterdir())
    assert len(files) == 2
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def test_only_names_are_kept_and_no_secret(inside: Inside, tmp_path: Path, cache: Path) -> None:
    table: dict[str, Any] = catalog() | {"env": {"KEY": "trigger-word"}}
    config = write_config(tmp_path, {"tooling": {"shop": table}})

    inside("tools", "shop", "-c", config)

    (file,) = (cache / "toolpost").iterdir()
    assert set(json.loads(file.read_text())) == {"shop"}
    assert "trigger-word" not in file.read_text()
    assert "First number" not in file.read_text()


@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"one": 7}', '{"one": [7, null]}', "[" * 100_000])
def test_a_cache_that_is_no_good_is_ignored_and_mended(content: str, cache: Path) -> None:
    names.remember("a.toml", "one", ["a"])
    (file,) = (cache / "toolpost").iterdir()
    file.write_text(content)

    assert names.tool_names("a.toml", "one") == []
    names.remember("a.toml", "one", ["a"])
    assert names.tool_names("a.toml", "one") == ["a"]


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.write_text("a file where a folder should be")

    names.remember("a.toml", "one", ["a"])

    assert names.tool_names("a.toml", "one") == []


def test_a_write_that_fails_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "replace", replace)
    names.remember("a.toml", "one", ["a"])

    assert list((cache / "toolpost").iterdir()) == []


@pytest.mark.parametrize("text", ["[tooling.a]\n[tooling.b]", 'tooling = "x"', "no toml", "[" * 100_000])
def test_toolings_are_read_from_whatever_the_config_is(text: str, tmp_path: Path) -> None:
    config = tmp_path / "it.toml"
    config.write_text(text)

    assert names.tooling_names(str(config)) == (["a", "b"] if text.startswith("[tooling") else [])
    assert names.tooling_names(str(tmp_path)) == []
