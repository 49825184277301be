"""`toolpost import`: the files of three editors become configs that work; nothing secret is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import real
from tests.cli.support import Ended, toolpost

SAMPLES = Path(__file__).parent / "samples"
SECRETS = re.compile(r"(?:claude|vscode|cursor)-secret|/home/ada")


def imported(sample: str, out: Path) -> Ended:
    """The import of a sample; nothing of its secrets is anywhere."""
    ended = toolpost("import", SAMPLES / sample, "-o", out)
    assert ended.out == ""
    assert not SECRETS.search(ended.err + (out.read_text() if out.exists() else ""))
    return ended


def connected(config: Path, **variables: str) -> dict[str, bool]:
    """Which toolings answer."""
    checked = toolpost("check", "--connect", "--json", "-c", config, cwd=real.SERVERS, env=variables)
    assert checked.status == 0, checked.out + checked.err
    return {name: each["tools"] > 0 for name, each in checked.document["toolings"].items()}


@pytest.mark.needs_node
def test_the_file_of_claude_desktop_becomes_a_config_that_connects(tmp_path: Path) -> None:
    real.memory(tmp_path)  # skips where it is not installed
    out = tmp_path / "toolpost.toml"

    ended = imported("claude_desktop_config.json", out)

    assert ended.status == 0
    assert "2 of 3 servers imported" in ended.err
    assert "left out: 'old-search': the old HTTP+SSE transport" in ended.err
    assert '# Left out: "old-search": the old HTTP+SSE transport' in out.read_text()
    assert '# "Knowledge Graph" in the editor\'s file\n[tooling.Knowledge-Graph]' in out.read_text()
    assert "  MEMORY_FILE_PATH  for tooling.Knowledge-Graph.env.MEMORY_FILE_PATH\n" in ended.err
    assert connected(out, MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"), API_KEY="other") == {
        "Knowledge-Graph": True,
        "files": True,
    }


@pytest.mark.needs_node
def test_the_file_of_vs_code_becomes_a_config_that_connects(tmp_path: Path) -> None:
    real.everything()
    real.time()
    out = tmp_path / "toolpost.toml"

    ended = imported("vscode_mcp.json", out)

    assert ended.status == 0
    assert "3 of 3 servers imported" in ended.err
    assert "tooling 'world-time-2': \"world time\" in the editor's file" in ended.err
    assert "tooling 'everything': not carried over: \"dev\"" in ended.err
    assert "for tooling.everything.env.DEMO_KEY (Key of the demo)" in ended.err
    variables = {"DEMO_KEY": "a", "DEMO_USER": "b", "DEMO_MODE": "c"}
    assert connected(out, **variables) == {"everything": True, "world-time": True, "world-time-2": True}


def test_the_file_of_cursor_becomes_a_config_that_connects(tmp_path: Path) -> None:
    real.time()
    out = tmp_path / "toolpost.toml"

    ended = imported("cursor_mcp.json", out)

    assert ended.status == 0
    assert "tooling 'remote': switched off in the editor" in ended.err
    assert "\n# [tooling.remote]\n" in out.read_text()
    assert "autoApprove" in ended.err
    assert connected(out, TOKEN="other", WORKSPACE_FOLDER=str(real.SERVERS)) == {"time": True}


def test_an_editors_file_is_found_the_projects_first(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project, home):
        (folder / ".cursor").mkdir(parents=True)
        (folder / ".cursor" / "mcp.json").write_text(
            f'{{"mcpServers": {{"{folder.name}": {{"command": "x"}}}}}}'
        )

    ended = toolpost("import", "--from", "cursor", cwd=project, env={"HOME": str(home)})

    assert ended.status == 0
    assert "[tooling.project]" in ended.out
    assert f"note: {home / '.cursor' / 'mcp.json'} has servers too" in ended.err


def test_an_editor_without_a_file_is_told_where_it_would_be(tmp_path: Path) -> None:
    ended = toolpost("import", "--from", "cursor", cwd=tmp_path, env={"HOME": str(tmp_path)})

    assert ended.status == 2
    assert "no servers of cursor found" in ended.err
    assert str(tmp_path / ".cursor" / "mcp.json") in ended.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ('{"mcpServers": {"a": {"env": {"K": "claude-secret"}', "not valid JSON"),
        ("[]", "expected a JSON object"),
        ('{"other": 1}', "neither `mcpServers` nor `servers`"),
    ],
)
def test_a_broken_or_empty_file_is_one_clear_error(content: str, told: str, tmp_path: Path) -> None:
    ended = toolpost("import", "-", stdin=content, cwd=tmp_path)

    assert (ended.status, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert "claude-secret" not in ended.err


def test_nothing_to_import_is_status_1_and_writes_nothing(tmp_path: Path) -> None:
    content = '{"servers": {"old": {"type": "sse", "url": "https://x.example/sse"}}}'

    ended = toolpost("import", "-", "-o", "new.toml", stdin=content, cwd=tmp_path)

    assert (ended.status, ended.out) == (1, "")
    assert "0 of 1 servers imported" in ended.err
    assert not (tmp_path / "new.toml").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")

    ended = toolpost("import", SAMPLES / "cursor_mcp.json", "-o", "mine.toml", cwd=tmp_path)

    assert ended.status == 2
    assert "mine.toml exists, and nothing is overwritten" in ended.err
    assert (tmp_path / "mine.toml").read_text() == "mine"


@pytest.mark.parametrize("words", [[], ["some.json", "--from", "claude"]])
def test_one_source_is_named(words: list[str]) -> None:
    ended = toolpost("import", *words)

    assert ended.status == 2
    assert "name one: a FILE to import, or an editor" in ended.err
