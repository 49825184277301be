"""An agent in Python as a component, by componentize-py, with toolpost.wit and the guest's own `toolpost`."""

from __future__ import annotations

import keyword
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from toolpost.errors import ToolpostError, UsageError
from toolpost.wasm.wit import WIT, WORLD

_GUEST_MODULES = Path(__file__).with_name("python")
_ENTRY = "toolpost_entry"


def build(agent: Path, output: Path) -> None:
    """Make a component of an agent's file; the modules that it imports, from its folder too, go in.

    It is made beside the output, which it replaces when it is whole.

    Raises:
        UsageError: The file is no agent, the output cannot be written, or componentize-py is not installed.
        ToolpostError: componentize-py failed; with what it said.
    """
    _check(agent)
    program = _componentize_py()
    if output.exists() and not output.is_file():
        raise UsageError(f"{str(output)!r} is no file: name the component to write")
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".toolpost-", dir=output.parent.resolve())
    except OSError as error:
        raise UsageError(f"{str(output)!r} cannot be written: {error.strerror}") from None
    with temporary as name:
        folder = Path(name)
        entry = f"import toolpost\nfrom {agent.stem} import run\n\nWitWorld = toolpost.guest(run)\n"
        (folder / f"{_ENTRY}.py").write_text(entry)
        made = folder / "agent.wasm"
        paths = [
            each for path in (folder, _GUEST_MODULES, agent.parent) for each in ("-p", str(path.resolve()))
        ]
        command = [program, "-d", str(WIT), "-w", WORLD, "componentize", *paths, _ENTRY, "-o", str(made)]
        environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        environ["RUST_BACKTRACE"] = "0"  # of componentize-py, which would bury the agent's
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environ, check=False)
        if done.returncode != 0:
            said = (done.stderr + done.stdout).strip()
            _, _, cause = said.partition("\nAssertionError: ")  # what is before it is of componentize-py
            raise ToolpostError(f"componentize-py could not build {agent}:\n{cause or said}")
        made.replace(output)


def _check(agent: Path) -> None:
    if not agent.is_file():
        raise UsageError(f"there is no file {str(agent)!r}")
    name = agent.stem
    taken = name in ("toolpost", _ENTRY) or name in sys.stdlib_module_names or keyword.iskeyword(name)
    if agent.suffix != ".py" or not name.isidentifier() or taken:
        raise UsageError(f"{agent.name!r} cannot be imported under its name: rename it, as to agent.py")


def _componentize_py() -> str:
    beside = Path(sysconfig.get_path("scripts"), "componentize-py")
    found = shutil.which(beside) or shutil.which("componentize-py")
    if found is None:
        raise UsageError("building guests needs componentize-py: pip install componentize-py")
    return found
