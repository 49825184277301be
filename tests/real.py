"""Real MCP servers, as `make servers` installs them under tests/servers.

Each function gives the command of one server, to put into a config:

    config = {"tooling": {"memory": real.memory(tmp_path / "memory.jsonl").table()}}

Where a server is not installed the calling test skips, saying why; under CI it fails.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

CI = os.environ.get("CI") == "true"

SERVERS = Path(__file__).parent / "servers"
"""With this as working folder, `npx -y @modelcontextprotocol/server-…` starts the installed copy, offline."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """How to start one server over stdio."""

    command: str
    args: list[str]
    env: dict[str, str] = field(default_factory=dict[str, str])

    def table(self) -> dict[str, Any]:
        """The server as the table `[tooling.<name>]` of a config."""
        table: dict[str, Any] = {
            "kind": "mcp",
            "transport": "stdio",
            "command": self.command,
            "args": self.args,
        }
        return table | ({"env": self.env} if self.env else {})


def everything() -> Server:
    """Every feature of the protocol up to 2025-11-25, subscriptions too."""
    return _on_node("everything", "stdio")


def memory(file: Path) -> Server:
    """A knowledge graph in `file`: a resource that changes, and tells its subscribers at once."""
    return _on_node("memory", env={"MEMORY_FILE_PATH": str(file)})


def filesystem(*folders: Path) -> Server:
    """Reads and writes in `folders` only; tools with output schemas, no resources."""
    return _on_node("filesystem", *map(str, folders))


def time() -> Server:
    """Two tools; speaks 2026-07-28."""
    return _on_python("modern", "time", "--local-timezone", "UTC")


def git(repository: Path) -> Server:
    """Twelve tools on the repository, which must exist; speaks 2026-07-28."""
    return _on_python("modern", "git", "--repository", str(repository))


def sqlite(database: Path) -> Server:
    """On the SDK's first major version; sends `resources/updated` that nobody subscribed to."""
    return _on_python("sqlite", "sqlite", "--db-path", str(database))


def require_node() -> str:
    """The path of `node`; skips the test (under CI: fails it) where there is none."""
    node = shutil.which("node")
    if node is None:
        _missing("Node.js is not installed (it runs the servers everything, filesystem and memory)")
    return node


def _on_node(name: str, *args: str, env: dict[str, str] | None = None) -> Server:
    node = require_node()
    script = SERVERS / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return Server(command=node, args=[_installed(script), *args], env=env or {})


def _on_python(venv: str, name: str, *args: str) -> Server:
    return Server(command=_installed(SERVERS / f".venv-{venv}/bin/mcp-server-{name}"), args=list(args))


def _installed(file: Path) -> str:
    if not file.exists():
        _missing(f"{file.relative_to(SERVERS.parent.parent)} is not installed (run: make servers)")
    return str(file)


def _missing(reason: str) -> NoReturn:
    if CI:
        pytest.fail(f"{reason}; under CI this is an error, not a reason to skip")
    pytest.skip(reason)
