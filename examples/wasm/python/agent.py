"""Asks for what is noted, says what it found, and tries to read a file, which no guest can."""

from __future__ import annotations

from pathlib import Path

import toolpost


def run(host: toolpost.SyncHost) -> str:
    notebook = host.tooling.get("notebook")
    tools = ", ".join(tool.name for tool in notebook.list_tools())
    host.log(f"{notebook.name()} has the tools {tools}")
    found = notebook.call_tool_blocking("find_notes", {"word": host.params["word"]})
    host.log(f"found {found.value!r}")
    try:
        host.log(Path("toolpost.toml").read_text())
    except OSError as error:
        host.log(f"no file for me: {type(error).__name__}")
    return "done"
