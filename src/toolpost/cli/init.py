"""`toolpost init`: files to start from, in a folder that has none of them yet."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from toolpost.cli.options import LevelOption, VerboseOption
from toolpost.cli.session import DONE, Session

SCHEMA = ".toolpost.schema.json"
"""Hidden, since nobody edits it, and beside the config: it fits the version that wrote it, and the editor
needs no network for it."""

EXAMPLES = """
Example:

toolpost init my-agent
"""


def init(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", show_default=False, help="Where; default: here.")
    ] = Path(),
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Write a config, an agent and a small tool server to start from.

    It asks nothing, and overwrites nothing.
    """
    Session.of(ctx, None, verbose, log_level).finish(lambda session: _init(session, folder))


def _init(session: Session, folder: Path) -> int:
    from toolpost.config.schema import schema_text
    from toolpost.errors import UsageError

    files = {"toolpost.toml": CONFIG, "agent.py": AGENT, "server.py": SERVER, SCHEMA: schema_text()}
    there = [name for name in files if os.path.lexists(folder / name)]
    if there:
        raise UsageError(
            f"{folder / there[0]} exists, and nothing is overwritten; "
            "name another folder (toolpost init FOLDER), or move the file away"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from None
    session.talk.say(f"written: {', '.join(str(folder / name) for name in files)}\n{_next(folder)}")
    return DONE


def _next(folder: Path) -> str:
    there = [] if folder == Path() else [f"  cd {shlex.quote(str(folder))}"]
    return "\n".join(
        (
            "next:",
            *there,
            "  toolpost run                     runs the agent to its end",
            "  toolpost tools notes             lists what the server offers",
            "  toolpost call notes add text=hi  calls one of its tools",
            "Then put servers of your own into toolpost.toml; examples stand at its end.",
        )
    )


CONFIG = f"""\
#:schema {SCHEMA}
# Which tool servers there are, and which agents use them. `toolpost check` tells what is wrong in here.

# A tool server. Agents and commands know it as "notes".
[tooling.notes]
kind = "mcp" # a server of the Model Context Protocol
transport = "stdio" # toolpost starts it, and speaks to it over its standard input and output
command = "${{TOOLPOST_PYTHON}}" # the Python that runs toolpost
args = ["server.py"]
cwd = "." # relative to this file

# A program that uses tool servers: a file with a function `run`.
[agents.starter]
script = "agent.py"
params = {{ note = "buy milk" }} # the agent reads them as host.params

# Limits and waits, with their defaults.
[tunables]
# recv_timeout_secs = 60
# tooling_connect_timeout_secs = 30
# tooling_request_timeout_secs = 300

# Other servers: take the # away.
#
# [tooling.memory] # needs Node.js
# kind = "mcp"
# transport = "stdio"
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-memory"]
#
# [tooling.github] # needs Docker; the secret is taken from the environment and does not stand in this file
# kind = "mcp"
# transport = "stdio"
# command = "docker"
# args = ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"]
# env = {{ GITHUB_PERSONAL_ACCESS_TOKEN = "${{GITHUB_TOKEN}}" }}
"""

AGENT = '''\
"""The agent `starter`. `toolpost run` calls its function `run`, in a thread of its own."""

from __future__ import annotations

import toolpost


def run(host: toolpost.SyncHost) -> str:
    notes = host.tooling.get("notes")  # connects to nothing yet

    # A call in place: it waits for the result.
    added = notes.call_tool_blocking("add", {"text": host.params["note"]})
    print(added.value)

    # A queued call: it goes on at once, and its result arrives in the inbox under this id.
    queued = notes.call_tool("find", {"word": "milk"})
    envelope = host.recv()
    assert envelope.id == queued
    match envelope.event:
        case toolpost.ToolResult(value=value):
            print(f"found: {value}")
        case other:
            raise RuntimeError(f"not a result: {other}")
    return "one note added and found"
'''

SERVER = '''\
"""A small tool server, so that there is something to call. Any other MCP server can take its place."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("notes")
notes: list[str] = []


@server.tool()
def add(text: str) -> str:
    """Write a note."""
    notes.append(text)
    return f"noted; that makes {len(notes)}"


@server.tool()
def find(word: str) -> str:
    """Find the notes with a word in them."""
    return "\\n".join(note for note in notes if word in note) or "none"


if __name__ == "__main__":
    server.run("stdio")
'''
