"""`toolpost import`: an editor's MCP servers as a config."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from toolpost.cli.options import LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session
from toolpost.cli.terminal import printable, write

if TYPE_CHECKING:
    from toolpost.config.importing import Imported

EXAMPLES = """
Examples:

toolpost import --from vscode -o toolpost.toml

toolpost import ~/.cursor/mcp.json
"""


def import_(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", show_default=False, help="The editor's JSON; - is stdin."),
    ] = None,
    editor: Annotated[
        Literal["claude", "vscode", "cursor"] | None,
        typer.Option("--from", help="Find this editor's file, instead of FILE."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="PATH", show_default=False, help="A new file; default: stdout."
        ),
    ] = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Turn an editor's MCP servers into a config.

    Reads mcpServers (Claude, Cursor) and the servers of VS Code.

    Values that may be secret become ${VAR}; which ones to set is told.
    """
    Session.of(ctx, None, verbose, log_level).finish(lambda session: _import(session, file, editor, out))


def _import(session: Session, file: Path | None, editor: Any, out: Path | None) -> int:
    from toolpost.config.editors import workspace_of
    from toolpost.config.importing import import_servers
    from toolpost.errors import UsageError

    if (file is None) == (editor is None):
        raise UsageError("name one: a FILE to import, or an editor with --from claude|vscode|cursor")
    if out is not None and os.path.lexists(out):
        raise UsageError(f"{out} exists, and nothing is overwritten; remove it or name another file with -o")
    if file is None:
        file = _found(session, editor)
    workspace = workspace_of(file)
    imported = import_servers(
        _read(file),
        label="<stdin>" if str(file) == "-" else str(file),
        environ=os.environ,
        workspace=None if workspace is None else str(workspace),
        project=str(Path.cwd()),
    )
    if imported.servers:
        _write(imported.toml(), out)
    _tell(session, imported, out)
    return DONE if imported.servers else FAILED


def _found(session: Session, editor: Any) -> Path:
    """The editor's file: the nearest that is there."""
    from toolpost.config.editors import places
    from toolpost.errors import UsageError

    looked = places(editor, system=sys.platform, home=Path.home(), folder=Path.cwd(), environ=os.environ)
    there = [each for each in looked if each.is_file() and _has_servers(each)]
    if not there:
        listed = "\n  ".join(map(str, looked))
        raise UsageError(f"no servers of {editor} found; name the file, or create one of\n  {listed}")
    for other in there[1:]:
        session.talk.say(printable(f"note: {other} has servers too; import it by its name"))
    return there[0]


def _has_servers(file: Path) -> bool:
    """Whether it is worth importing. One that cannot be read is: what is wrong with it is told then."""
    try:
        content = file.read_bytes()
    except OSError:
        return True
    return file.name not in (".claude.json", "settings.json") or (
        b'"mcpServers"' in content or b'"servers"' in content
    )


def _read(file: Path) -> bytes:
    from toolpost.errors import UsageError

    try:
        return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None


def _write(text: str, out: Path | None) -> None:
    from toolpost.errors import UsageError

    if out is None:
        write(text)
        return
    try:
        with out.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror or error}") from None


def _tell(session: Session, imported: Imported, out: Path | None) -> None:
    total = len(imported.servers) + len(imported.left_out)
    lines = [f"{len(imported.servers)} of {total} servers imported from {imported.label}"]
    lines += [f"note: {note}" for note in imported.notes]
    lines += [f"note: tooling {each.name!r}: {note}" for each in imported.servers for note in each.notes]
    lines += [
        f"note: tooling {each.name!r}: switched off in the editor, and a comment here"
        for each in imported.servers
        if each.disabled
    ]
    lines += [f"left out: {name!r}: {why}" for name, why in imported.left_out.items()]
    if imported.variables:
        lines.append("set these variables before you use the config:")
        width = max(len(each.name) for each in imported.variables)
        for each in imported.variables:
            about = f" ({each.about})" if each.about else ""
            there = " - is set" if each.name in os.environ else ""
            lines.append(f"  {each.name:<{width}}  for {each.where}{about}{there}")
    if imported.servers:
        lines.append(f"then: toolpost check --connect -c {'PATH' if out is None else out}")
    session.talk.say(printable("\n".join(lines)))
