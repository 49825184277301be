"""The servers of `tests.real` are there and speak; what they can do is for other tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests import real

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "toolpost-tests", "version": "0"},
    },
}

SERVERS: dict[str, Callable[[Path], real.Server]] = {
    "everything": lambda _: real.everything(),
    "filesystem": real.filesystem,
    "memory": lambda folder: real.memory(folder / "memory.jsonl"),
    "git": lambda folder: real.git(repository(folder)),
    "sqlite": lambda folder: real.sqlite(folder / "data.db"),
    "time": lambda _: real.time(),
}


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


async def first_answer(command: list[str], env: dict[str, str], cwd: Path) -> dict[str, Any]:
    """Start a server, send `initialize`, and give its result; the end of its input ends it."""
    with anyio.fail_after(60):
        async with await anyio.open_process(
            command, env=os.environ | env, cwd=cwd, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdin
            assert process.stdout
            await process.stdin.send(json.dumps(INITIALIZE).encode() + b"\n")
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1_000_000)
            return json.loads(line)["result"]


@pytest.mark.parametrize("name", SERVERS)
async def test_each_server_answers_the_handshake(name: str, tmp_path: Path) -> None:
    server = SERVERS[name](tmp_path)

    answer = await first_answer([server.command, *server.args], server.env, tmp_path)

    assert answer["protocolVersion"] == "2025-11-25"
    assert "tools" in answer["capabilities"]


@pytest.mark.needs_node
async def test_npx_starts_the_installed_copy_without_the_network(tmp_path: Path) -> None:
    real.everything()  # skips where it is not installed: npx would then look for it on the network
    offline = {"npm_config_offline": "true", "npm_config_cache": str(tmp_path)}

    answer = await first_answer(
        ["npx", "-y", "@modelcontextprotocol/server-everything"], offline, real.SERVERS
    )

    assert answer["capabilities"]["resources"]["subscribe"] is True


def test_a_server_becomes_the_table_of_a_tooling() -> None:
    server = real.Server(command="serve", args=["--now"], env={"HOME": "/tmp"})

    assert server.table() == {
        "kind": "mcp",
        "transport": "stdio",
        "command": "serve",
        "args": ["--now"],
        "env": {"HOME": "/tmp"},
    }


def test_without_node_the_test_is_skipped_for_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(real, "CI", False)

    with pytest.raises(pytest.skip.Exception, match=r"Node\.js is not installed"):
        real.everything()


def test_without_node_the_test_fails_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(real, "CI", True)

    with pytest.raises(pytest.fail.Exception, match=r"Node\.js is not installed"):
        real.everything()


def test_a_server_that_is_not_installed_names_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(real, "SERVERS", tmp_path / "tests" / "servers")
    monkeypatch.setattr(real, "CI", False)

    with pytest.raises(pytest.skip.Exception, match=r"tests/servers/\.venv-modern.*make servers"):
        real.time()
