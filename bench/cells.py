"""Starts the processes that measure: a server and a client for each cell of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from bench.cell import Figures, Spec, What
from bench.client import SERVERS, Target

ROOT = Path(__file__).parent.parent
VENVS = Path(__file__).parent / ".venvs"
ENVIRONMENTS = {
    "sdk": "sdk",
    "fastmcp": "fastmcp",
    "mcp_use": "mcp-use",
    "langchain_mcp_adapters": "langchain-mcp-adapters",
    "pydantic_ai": "pydantic-ai",
    "openai_agents": "openai-agents",
}
"""Of each client that has an environment of its own, its name."""
PATHS = {"stdio": "", "json": "json", "sse": "stream"}
"""Where the server answers so. Not `sse`: by that word some clients know the transport of old."""
TRANSPORTS = tuple(PATHS)
CELL_SECS = 150.0

_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH")
"""Of this process's environment. No proxies, and no certificates: those alone make a Node.js start slowly."""
_SILENT = {
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "PYTHONHASHSEED": "0",
}

Transport: TypeAlias = str


class CellFailed(Exception):
    """A cell gave no figures; says why."""


def python_of(client: str) -> Path | None:
    """The Python that a client is installed for; None where it is not."""
    environment = ENVIRONMENTS.get(client.partition(":")[0])
    if environment is None:  # toolpost, and what needs nothing
        return Path(sys.executable)
    place = VENVS / environment
    return place / "bin" / "python" if (place / ".ready").exists() else None


def measure(
    client: str,
    transport: Transport,
    what: What,
    *,
    seconds: float,
    updates: int = 0,
    counts_connections: bool = False,
) -> Figures:
    """The figures of one cell.

    Raises:
        CellFailed: There are none.
    """
    python = python_of(client)
    assert python is not None, "left out before"
    with serving(transport) as target:
        spec = Spec(
            client=client,
            what=what,
            command=target.command,
            url=target.url,
            started_ns=time.monotonic_ns(),
            seconds=seconds,
            updates=updates,
            counts_connections=counts_connections,
        )
        command = [str(python), "-m", "bench.cell", spec.to_json()]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=CELL_SECS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CellFailed(f"it took more than {CELL_SECS:g} s") from None
    if done.returncode != 0 or not done.stdout:
        raise CellFailed(_reason(done.stderr) or f"it exited with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def serving(transport: Transport) -> Generator[Target]:
    """What to connect to: over stdio the client starts the server itself."""
    if transport == "stdio":
        yield Target(command=["node", str(SERVERS / "stdio.mjs")])
        return
    command = ["node", str(SERVERS / "http.mjs")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=_environment(), stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            yield Target(url=f"http://127.0.0.1:{port}/{PATHS[transport]}")
        finally:
            server.stdin.close()  # which ends it
            server.kill()


def _reason(stderr: str) -> str:
    """The last line that names an error; warnings may follow it."""
    lines = [line for line in stderr.splitlines() if line[:1].isalpha()]
    return next(
        (line for line in reversed(lines) if "Error" in line.partition(":")[0]), "\n".join(lines[-1:])
    )


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED if name in os.environ} | _SILENT
