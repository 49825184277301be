"""Running the real command line as a process, and looking at what it leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from tests import real

TOOLPOST = str(Path(sys.executable).parent / "toolpost")
ODD = real.SERVERS / "own" / "odd.py"
CATALOG = real.SERVERS / "own" / "catalog.py"
ROOT = Path(__file__).parent.parent.parent
BOUND_SECS = 30
"""No test waits longer for another process."""

T = TypeVar("T")


# -- configs ---------------------------------------------------------------------------------------


def odd(mode: str = "honest", *, log: Path | None = None, n: float = 0, **keys: Any) -> dict[str, Any]:
    """The table of a tooling that runs tests/servers/own/odd.py, with its pids and messages in `log`."""
    args = [str(ODD), mode, "--n", str(n), *(("--log", str(log)) if log else ())]
    return {"kind": "mcp", "transport": "stdio", "command": sys.executable, "args": args} | keys


def catalog(log: Path | None = None) -> dict[str, Any]:
    """The table of a tooling that runs tests/servers/own/catalog.py."""
    args = [str(CATALOG), *(("--log", str(log)) if log else ())]
    return {"kind": "mcp", "transport": "stdio", "command": sys.executable, "args": args}


def toml(tables: Mapping[str, Any], path: Sequence[str] = ()) -> str:
    """Tables as TOML. Strings, numbers and lists of them are written in the same way in JSON."""
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [f"{key} = {json.dumps(each)}" for key, each in tables.items() if not isinstance(each, dict)]
    for key, each in tables.items():
        if isinstance(each, dict):
            lines.append(toml(cast("dict[str, Any]", each), (*path, key)))
    return "\n".join(lines) + "\n"


def write_config(folder: Path, tables: Mapping[str, Any] | str, **scripts: str) -> Path:
    """A `toolpost.toml`, and beside it agents' scripts by name."""
    file = folder / "toolpost.toml"
    file.write_text(tables if isinstance(tables, str) else toml(tables))
    for name, code in scripts.items():
        (folder / f"{name}.py").write_text(code)
    return file


# -- running ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """A command that has come to its end."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The log's records on standard error."""
        return [json.loads(line) for line in self.err.splitlines() if line.startswith('{"time"')]

    @property
    def said(self) -> str:
        """Standard error without the log."""
        return "\n".join(line for line in self.err.splitlines() if not line.startswith('{"time"'))


def environment(**variables: str) -> dict[str, str]:
    """This process's, without what would change the command's behaviour."""
    changing = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOOLPOST", "PYTEST")) and name not in changing
    }
    return kept | variables


def toolpost(
    *args: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: str = ""
) -> Ended:
    """Run `toolpost …` to its end."""
    done = subprocess.run(
        [TOOLPOST, *map(str, args)],
        cwd=cwd or ROOT,
        env=environment(**(env or {})),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=BOUND_SECS * 2,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


class Running:
    """A `toolpost …` that is under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def signal(self, number: signal.Signals) -> None:
        """Send it to the command's whole group, as a terminal's Ctrl-C is."""
        os.killpg(self.process.pid, number)

    def end(self) -> Ended:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=BOUND_SECS)
        return Ended(self.process.returncode, out, err)


@contextmanager
def started(
    *args: str | Path, cwd: Path | None = None, stdin: int = subprocess.DEVNULL
) -> Generator[Running]:
    """Start `toolpost …` in a group of its own; it is killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        [TOOLPOST, *map(str, args)],
        cwd=cwd or ROOT,
        env=environment(),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def at_terminal(*words: str | Path, columns: int = 100, **variables: str) -> tuple[int, str]:
    """Run `toolpost …` on a terminal to its end; gives status and screen."""
    shown = b""
    with started_on_terminal(*words, columns=columns, **variables) as (process, screen):
        while chunk := read_terminal(screen):
            shown += chunk
        status = process.wait(BOUND_SECS)
    return status, shown.decode().replace("\r\n", "\n")


@contextmanager
def started_on_terminal(
    *words: str | Path, columns: int = 100, **variables: str
) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Start `toolpost …` with a terminal as standard output and standard error; gives our end of it too."""
    ours, theirs = open_terminal(columns)
    process = subprocess.Popen(
        [TOOLPOST, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment(**{"TERM": "xterm", **variables}),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)


def open_terminal(columns: int) -> tuple[int, int]:
    """A pseudo-terminal: our end and the end of the program."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, theirs


def read_terminal(file: int) -> bytes:
    """What has been written to it; nothing once the program's end is closed."""
    try:
        return os.read(file, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""


def read_terminal_until(file: int, text: str) -> str:
    """What is written to it until `text` has come."""
    shown = b""
    while text.encode() not in shown:
        ready, _, _ = select.select([file], [], [], BOUND_SECS)
        assert ready, f"{text!r} did not come, but: {shown!r}"
        chunk = read_terminal(file)
        assert chunk, f"{text!r} did not come, but: {shown!r}"
        shown += chunk
    return shown.decode()


# -- looking ---------------------------------------------------------------------------------------


def until(condition: Callable[[], T]) -> T:
    """Wait for another process: the first value of `condition` that is true."""
    deadline = time.monotonic() + BOUND_SECS
    while not (value := condition()):
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)
    return value


def entries(log: Path) -> list[dict[str, Any]]:
    """What odd.py wrote to its log; a line that is still being written is left out."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def pids(log: Path) -> list[int]:
    """Every process that odd.py has been, and its children."""
    facts = [each["self"] for each in entries(log) if "self" in each]
    return [fact[key] for fact in facts for key in ("pid", "child") if key in fact]


def received(log: Path, method: str, name: str | None = None) -> bool:
    """Whether odd.py has got such a request."""
    for each in entries(log):
        if each.get("method") == method and name in (None, each.get("params", {}).get("name")):
            return True
    return False


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has exited and waits for its parent does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


def assert_none_left(log: Path) -> None:
    """Every server process that has run is gone."""
    assert pids(log), "no server has run, so nothing was tested"
    assert [pid for pid in pids(log) if is_alive(pid)] == []
