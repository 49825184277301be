"""The examples run, as their READMEs say, and leave nothing behind."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests import real
from tests.cli.support import ROOT, is_alive, toolpost

QUICKSTART = "examples/quickstart/toolpost.toml"
EVERYTHING = "examples/everything/toolpost.toml"
NPX = ROOT / "examples/everything/npx.toml"
DUMMY_SECRET = "not-a-real-key-7f3a9c51d2"


def processes_of(mark: str) -> list[int]:
    """The live processes whose environment holds `mark`: what a command has started inherits it."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # gone meanwhile, or another user's
            continue
    return [pid for pid in found if is_alive(pid) and pid != os.getpid()]


def test_the_quickstart_runs_and_tells_what_happens() -> None:
    ended = toolpost("run", "-c", QUICKSTART, env={"LC_TEST_MARK": "quickstart-run"})

    assert ended.status == 0
    # Not by line: a thread's `print` writes the end of the line by itself, and another may come between.
    pieces = re.findall(r"\[(finder|watcher)\]\s+(.*?)\s*(?=\[finder\]|\[watcher\]|\Z)", ended.out, re.DOTALL)
    by_agent = {name: [text for who, text in pieces if who == name] for name in ("finder", "watcher")}
    assert by_agent == {
        "finder": [
            "the notebook has the tools add_note, find_notes",
            "called in place: 'milk is out\\nthe kettle whistles at 100 degrees'",
            "queued 2 calls; now the inbox is read",
            "the answer for 'milk' is in the inbox: 'milk is out'",
            "the answer for 'kettle' is in the inbox: 'the kettle whistles at 100 degrees'",
        ],
        "watcher": [
            "the notebook has the resources notes://all, notes://rules",
            "subscribed to notes://all, which has 2 lines",
            "notes://all has changed, and now ends with 'the agents were here'",
            "unsubscribed; is it still open? False",
        ],
    }
    assert processes_of("LC_TEST_MARK=quickstart-run") == []


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
def test_the_quickstart_runs_in_both_eras(protocol: str) -> None:
    ended = toolpost("run", "-c", QUICKSTART, env={"TOOLPOST__TOOLING__NOTEBOOK__PROTOCOL": protocol})

    assert ended.status == 0
    assert "notes://all has changed, and now ends with 'the agents were here'" in ended.out


def test_the_quickstart_can_be_called_from_the_command_line() -> None:
    found = toolpost("-c", QUICKSTART, "call", "notebook", "find_notes", "word=milk")
    wrong = toolpost("-c", QUICKSTART, "call", "notebook", "find_notes", "wort=milk")

    assert (found.status, found.out) == (0, "milk is out\n")
    assert (wrong.status, wrong.out) == (2, "")
    assert "tool 'find_notes' was not called: word is missing (string)" in wrong.err


@pytest.mark.needs_node
def test_the_reference_server_is_used_from_the_command_line() -> None:
    real.everything()  # skips where it is not installed

    tools = toolpost("-c", EVERYTHING, "tools", "everything", "--json")
    echo = toolpost("-c", EVERYTHING, "call", "everything", "echo", "message=hi")
    total = toolpost("-c", EVERYTHING, "call", "everything", "get-sum", "a=2", "b=3")

    assert len(tools.document) == 13
    assert (echo.status, echo.out) == (0, "Echo: hi\n")
    assert (total.status, total.out) == (0, "The sum of 2 and 3 is 5.\n")


@pytest.mark.needs_node
def test_two_agents_share_the_reference_server() -> None:
    real.everything()

    ended = toolpost("-vv", "run", "--json", "-c", EVERYTHING, env={"LC_TEST_MARK": "everything-run"})

    assert ended.status == 0
    events = [json.loads(line) for line in ended.out.splitlines()]
    opened = {each["id"]: each["source"] for each in events if each["kind"] == "opened"}
    assert sorted(set(opened.values())) == ["call_tool", "subscribe_resource", "subscribe_resource_list"]
    assert [each["state"] for each in events if each["kind"] == "state"] == ["dialing", "ready", "closed"]
    assert most_open(events) >= 32
    assert "cancelled" in {each["reason"] for each in events if each["kind"] == "closed"}
    updates = [each["payload"] for each in events if each.get("event") == "resource-updated"]
    assert updates
    assert all("Features" in update["content"] for update in updates)
    lists = [each["payload"] for each in events if each.get("event") == "resource-list-updated"]
    assert "demo://resource/session/note.gz" in {each["uri"] for each in lists[0]}
    assert processes_of("LC_TEST_MARK=everything-run") == []
    assert DUMMY_SECRET not in ended.out + ended.err


def most_open(events: list[dict[str, str]]) -> int:
    """How many queued calls were open at the same time."""
    calls: set[str] = set()
    most = 0
    for each in events:
        if each["kind"] == "opened" and each["source"] == "call_tool":
            calls.add(each["id"])
        elif each["kind"] == "closed":
            calls.discard(each["id"])
        most = max(most, len(calls))
    return most


@pytest.mark.needs_node
def test_the_reference_server_gets_its_secret_and_no_log_does() -> None:
    real.everything()

    ended = toolpost("-vv", "-c", EVERYTHING, "call", "everything", "get-env")

    assert f'"EXAMPLE_API_KEY": "{DUMMY_SECRET}"' in ended.out
    assert DUMMY_SECRET not in ended.err


@pytest.mark.needs_node
def test_a_server_started_by_npx_is_used_in_the_same_way() -> None:
    real.everything()

    total = toolpost("-c", NPX, "call", "everything", "get-sum", "a=2", "b=3", cwd=real.SERVERS)

    assert (total.status, total.out) == (0, "The sum of 2 and 3 is 5.\n")


@pytest.mark.parametrize(
    "readme", sorted(ROOT.glob("examples/*/README.md")), ids=lambda file: file.parent.name
)
def test_the_files_that_a_readme_names_are_there(readme: Path) -> None:
    named = re.findall(r"`([\w/]+\.(?:py|toml))`", readme.read_text())

    assert named
    assert [name for name in named if not (readme.parent / name).exists()] == []
