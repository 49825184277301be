"""The site builds without a warning and without the network, and has what is to be generated."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import toolpost
from tests.cli.support import ROOT, Ended
from toolpost import testing
from toolpost.cli.app import app
from toolpost.config.schema import config_schema


def build(root: Path, site: Path) -> Ended:
    """Build the site of a repository. (With --quiet there are no warnings, and so nothing is strict.)"""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "https_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built."""
    folder = tmp_path_factory.mktemp("site")
    ended = build(ROOT, folder)
    assert ended.status == 0, ended.err
    assert [line for line in ended.err.splitlines() if not line.startswith("INFO ")] == []
    return folder


def test_the_site_asks_nothing_of_other_hosts(site: Path) -> None:
    loaded = re.compile(r"""(?:src=|<link[^>]*href=|url\()["']?(https?:)?//[^"')\s]+""")
    found = {
        match[0]
        for file in [*site.rglob("*.html"), *site.rglob("*.css")]
        for match in loaded.finditer(file.read_text())
    }

    assert found == set()


def test_every_key_of_the_config_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "config.html").read_text()

    keys = {key for each in config_schema()["definitions"].values() for key in each["properties"]}
    assert [key for key in sorted(keys) if f"<code>{key}</code>" not in page] == []


def test_every_command_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "cli.html").read_text()

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]: typer gives a group
    assert {"run", "call", "init"} <= set(commands)  # pyright: ignore[reportUnknownArgumentType]
    for name in commands:  # pyright: ignore[reportUnknownVariableType]
        assert f"Usage: toolpost {name} " in page


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join((site / "reference" / f"{name}.html").read_text() for name in ("api", "events", "errors"))

    assert [name for name in toolpost.__all__ if f'id="toolpost.{name}"' not in pages] == []
    assert [name for name in testing.__all__ if f'id="toolpost.testing.{name}"' not in pages] == []


@pytest.mark.parametrize("fault", ["[gone](nowhere.md)", "[gone](start.md#nowhere)", "[gone](/start.md)"])
def test_a_broken_link_fails_the_build(fault: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n{fault}\n")
    (tmp_path / "docs" / "start.md").write_text("# Start\n")
    shutil.copy(ROOT / "docs" / "generate.py", tmp_path / "docs")
    shutil.copytree(ROOT / "docs" / "snippets", tmp_path / "docs" / "snippets")
    settings = (ROOT / "mkdocs.yml").read_text()
    nav = "nav:\n  - index.md\n  - start.md\n"
    (tmp_path / "mkdocs.yml").write_text(re.sub(r"^nav:\n(?:[ ].*\n)+", nav, settings, flags=re.MULTILINE))

    ended = build(tmp_path, tmp_path / "site")

    assert ended.status == 1
    assert "nowhere" in ended.err or "/start.md" in ended.err
