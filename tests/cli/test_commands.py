"""Each command that asks a server, on the reference servers: through a pipe, and on a terminal."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import real
from tests.cli.conftest import Inside
from tests.cli.support import (
    BOUND_SECS,
    at_terminal,
    read_terminal_until,
    started,
    started_on_terminal,
    toml,
    until,
    write_config,
)
from tests.mcp.support import children, servers

pytestmark = pytest.mark.needs_node

GRAPH = "memory://knowledge-graph"
ADA: dict[str, Any] = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The reference servers, and in the memory one entity."""
    file = tmp_path / "memory.jsonl"
    file.write_text(json.dumps({"type": "entity", **ADA}) + "\n")
    tables = {"everything": real.everything().table(), "memory": real.memory(file).table()}
    return write_config(tmp_path, {"tooling": tables})


PIPED: list[tuple[list[str], str]] = [
    (["tools", "memory"], "Read the entire knowledge graph"),
    (["resources", "memory"], f"{GRAPH}  application/json  The full knowledge graph"),
    (["resources", "everything", "--templates"], "demo://resource/dynamic/text/{resourceId}  text/plain"),
    (["read", "memory", GRAPH], '"name": "Ada"'),
    (["read", "everything", "demo://resource/dynamic/blob/1"], "Resource 1: This is a base64 blob"),
    (["prompts", "everything"], "args-prompt city [state]"),
    (["call", "everything", "get-sum", "a=2", "b=3"], "The sum of 2 and 3 is 5."),
    (["call", "memory", "search_nodes", "query=Ada"], '"entityType": "person"'),
    (["check", "--connect"], "memory-server"),
]


@pytest.mark.parametrize(("words", "shown"), PIPED, ids=[" ".join(words) for words, _ in PIPED])
def test_through_a_pipe(words: list[str], shown: str, inside: Inside, config: Path) -> None:
    ended = inside(*words, "-c", config)

    assert (ended.status, ended.err) == (0, "")
    assert shown in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(
    ("words", "columns", "shown"),
    [
        (["tools", "memory"], 40, "read_graph"),
        (["resources", "memory"], 40, GRAPH),
        (["read", "memory", GRAPH], 100, "Ada"),
        (["prompts", "everything"], 40, "args-prompt city [state]"),
        (
            ["call", "everything", "trigger-long-running-operation", "duration=0.4", "steps=2"],
            100,
            "trigger-long-running-operation ██████████░░░░░░░░░░  50%  1/2",
        ),
        (["check", "--connect"], 120, "2025-11-25  resources+subscribe, tools"),
    ],
    ids=["tools", "resources", "read", "prompts", "call", "check"],
)
def test_on_a_terminal(words: list[str], columns: int, shown: str, config: Path) -> None:
    status, screen = at_terminal(*words, "-c", config, columns=columns)

    assert status == 0
    assert shown in screen


# -- watch -----------------------------------------------------------------------------------------


@pytest.fixture
def recorded(config: Path, tmp_path: Path) -> Path:
    """A config of the memory server alone, whose messages are written down; gives where."""
    server, record = real.memory(tmp_path / "memory.jsonl"), tmp_path / "record.jsonl"
    command = [str(real.SERVERS / "own" / "recording.py"), str(record), server.command, *server.args]
    table = server.table() | {"command": sys.executable, "args": command}
    config.write_text(toml({"tooling": {"memory": table}}))
    return record


def is_subscribed(record: Path) -> bool:
    """Whether the server has agreed."""
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    asked = [each["to_server"] for each in lines if "to_server" in each]
    ids = {each.get("id") for each in asked if each.get("method") == "resources/subscribe"}
    return any(each["to_client"].get("id") in ids for each in lines if "to_client" in each)


def crash(pid: int) -> None:
    """Kill the server below the recorder below `toolpost`: what changed is told when it is back."""
    (recorder,) = servers(of=pid)
    (server,) = children(of=recorder)
    os.kill(server, signal.SIGKILL)


def test_watch_through_a_pipe(recorded: Path, config: Path) -> None:
    with started("watch", "memory", GRAPH, "--json", "-c", config) as running:
        until(lambda: is_subscribed(recorded))
        crash(running.process.pid)
        assert running.process.stdout is not None
        event = json.loads(running.process.stdout.readline())
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 0
    assert event["event"] == "resource-updated"
    assert json.loads(event["payload"]["content"])["entities"][0]["name"] == "Ada"


def test_watch_on_a_terminal(recorded: Path, config: Path) -> None:
    with started_on_terminal("watch", "memory", GRAPH, "-c", config, NO_COLOR="1") as (process, screen):
        until(lambda: is_subscribed(recorded))
        crash(process.pid)
        shown = read_terminal_until(screen, f"{GRAPH}  (application/json, ")
        process.send_signal(signal.SIGINT)
        status = process.wait(BOUND_SECS)

    assert status == 0
    assert "the connection to 'memory' was lost; it is made again" in shown
    assert "the connection to 'memory' is back" in shown
