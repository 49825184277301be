"""Running the real command line as a process, and looking at what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from tests import real

TOOLPOST = str(Path(sys.executable).parent / "toolpost")
ODD = real.SERVERS / "own" / "odd.py"
ROOT = Path(__file__).parent.parent.parent
BOUND_SECS = 30
"""No test waits longer for another process."""

T = TypeVar("T")


# -- configs ---------------------------------------------------------------------------------------


def odd(mode: str = "honest", *, log: Path | None = None, n: float = 0, **keys: Any) -> dict[str, Any]:
    """The table of a tooling that runs tests/servers/own/odd.py, with its pids and messages in `log`."""
    args = [str(ODD), mode, "--n", str(n), *(("--log", str(log)) if log else ())]
    return {"kind": "mcp", "transport": "stdio", "command": sys.executable, "args": args} | keys


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
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOOLPOST", "PYTEST")) and name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
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
