"""Configs for our own servers, and what tests of kind `mcp` look at: traces, wires, processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from tests import real
from toolpost import OpenHost, open_host
from toolpost.events import Event
from toolpost.mcp.handlers import Handlers
from toolpost.trace.events import State
from toolpost.trace.log import Trace

OWN = real.SERVERS / "own"
BOUND_SECS = 20
"""No test waits longer for what it expects."""

T = TypeVar("T")
Table = dict[str, Any]


# -- servers ---------------------------------------------------------------------------------------


def odd(mode: str = "honest", *, log: Path | None = None, n: float = 0, **keys: Any) -> Table:
    """The table of a tooling that runs tests/servers/own/odd.py."""
    options = [*(("--log", str(log)) if log is not None else ()), "--n", str(n)]
    return python(OWN / "odd.py", mode, *options) | keys


RUN_ODD = f"import runpy; runpy.run_path({str(OWN / 'odd.py')!r}, run_name='__main__')"
"""A script that is odd.py."""


def answering(answers: Mapping[str, Sequence[Any]], *, log: Path | None = None, **keys: Any) -> Table:
    """The table of a tooling whose server has these answers: see `Answers` in odd_wire.py."""
    table = odd("answers", log=log)
    return table | {"args": [*table["args"], "--answers", json.dumps(answers)]} | keys


def http(url: str, **keys: Any) -> Table:
    """The table of a tooling at a URL."""
    return {"kind": "mcp", "transport": "http", "url": url} | keys


def changing(**keys: Any) -> Table:
    """The table of a tooling that runs tests/servers/own/changing.py."""
    return python(OWN / "changing.py") | keys


def python(script: Path, *args: str) -> Table:
    return {"kind": "mcp", "transport": "stdio", "command": sys.executable, "args": [str(script), *args]}


def recorded(table: Table, log: Path) -> Table:
    """The same tooling, with every message that passes written to `log`: see `to_server`."""
    script = str(OWN / "recording.py")
    args = [script, str(log), table["command"], *table["args"]]
    return table | {"command": sys.executable, "args": args}


def host(
    table: Table, handlers: Handlers | None = None, /, **tunables: Any
) -> AbstractAsyncContextManager[OpenHost]:
    """A host with the one tooling `it`."""
    config: dict[str, Any] = {"tooling": {"it": table}, "tunables": tunables}
    return open_host(config, handlers={} if handlers is None else {"it": handlers})


# -- what passed -----------------------------------------------------------------------------------


def entries(log: Path) -> list[Any]:
    """What a server wrote to its log file."""
    if not log.exists():
        return []
    whole, _, _ = log.read_text().rpartition("\n")  # what follows is being written
    return [json.loads(line) for line in whole.splitlines()]


def received(log: Path, method: str | None = None) -> list[Table]:
    """The messages that odd.py has received, of one method or all."""
    messages = [each for each in entries(log) if "self" not in each]
    return messages if method is None else [each for each in messages if each.get("method") == method]


def said(log: Path, fact: str) -> list[Any]:
    """What odd.py wrote down of itself, such as its `pid`."""
    return [each["self"][fact] for each in entries(log) if fact in each.get("self", {})]


def to_server(log: Path, method: str | None = None) -> list[Table]:
    """The messages to a server that runs under recording.py, of one method or all."""
    messages = [each["to_server"] for each in entries(log) if "to_server" in each]
    return messages if method is None else [each for each in messages if each.get("method") == method]


def states(trace: Trace) -> list[str]:
    """The states of the connection, as the trace has them."""
    return [each.state for each in trace if isinstance(each, State)]


async def events_of(host: OpenHost, ids: Iterable[str]) -> dict[str, Event]:
    """The next event of each of these sources."""
    wanted, found = set(ids), dict[str, Event]()
    while wanted:
        envelope = await host.recv(BOUND_SECS)
        if envelope.id in wanted:
            wanted.discard(envelope.id)
            found[envelope.id] = envelope.event
    return found


async def event_of(host: OpenHost, id: str) -> Event:
    """The next event of one source; others are passed over."""
    return (await events_of(host, [id]))[id]


async def until(condition: Callable[[], T]) -> T:
    """Wait for something outside of this process: the first value of `condition` that is true."""
    with anyio.fail_after(BOUND_SECS):
        while not (value := condition()):  # noqa: ASYNC110  # what happens elsewhere sets no event
            await anyio.sleep(0.005)
        return value


# -- time ------------------------------------------------------------------------------------------


class Clock:
    """The loop's clock, which a test can put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self._ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead)

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(20):  # the timers fire, and what they cancel comes to its end
            await anyio.lowlevel.checkpoint()


def start_task(func: Callable[..., Coroutine[Any, Any, object]], /, *args: object) -> None:
    """Start a task that no host stands behind."""
    _kept.add(task := asyncio.ensure_future(func(*args)))
    task.add_done_callback(_kept.discard)


_kept: set[asyncio.Future[object]] = set()


# -- processes -------------------------------------------------------------------------------------


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has exited and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False if sys.platform == "linux" else _answers(pid)
    except ProcessLookupError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def children(of: int | None = None, *, zombies: bool = False) -> list[int]:
    """The processes that this one (or another) has started and that still run, or wait to be reaped."""
    pids: set[int] = set()
    for task in Path(f"/proc/{of or os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            pids.update(map(int, (task / "children").read_text().split()))
    return sorted(pid for pid in pids if zombies or is_alive(pid))


def wardens(of: int | None = None) -> list[int]:
    """Those of its children that watch over its servers."""
    return [pid for pid in children(of) if b"warden_process" in _command_of(pid)]


def _command_of(pid: int) -> bytes:
    """Its arguments. Of a process that has just come to its program the system shows none for a moment."""
    while is_alive(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            if command := Path(f"/proc/{pid}/cmdline").read_bytes():
                return command
    return b""  # it has gone meanwhile


def servers(of: int | None = None) -> list[int]:
    """The children of this process (or another) that are servers."""
    return sorted({*children(of)} - {*wardens(of)})
