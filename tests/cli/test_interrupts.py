"""Ctrl-C and SIGTERM: no traceback, status 130, and no process left."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import (
    Ended,
    assert_none_left,
    entries,
    odd,
    pids,
    received,
    started,
    until,
    write_config,
)

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])

CALLER = """
async def run(host):
    await host.tooling.get("it").call_tool_blocking("hold")
"""
SYNC_CALLER = """
def run(host):
    host.tooling.get("it").call_tool_blocking("hold")
"""
POLITE = """
from toolpost import Shutdown

def run(host):
    tooling = host.tooling.get("it")
    tooling.call_tool("hold")
    assert isinstance(host.recv().event, Shutdown)
    return "goodbye"
"""
STUBBORN = """
import pathlib, threading

def run(host):
    host.tooling.get("it").call_tool("hold")
    host.recv()
    pathlib.Path("told").touch()
    threading.Event().wait()
"""
DEAF = """
import asyncio, pathlib

async def run(host):
    await host.tooling.get("it").call_tool("hold")
    await host.recv()
    pathlib.Path("told").touch()
    while True:
        await asyncio.sleep(3600)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def assert_interrupted(ended: Ended, log: Path) -> None:
    assert ended.status == 130
    assert "Traceback" not in ended.err
    assert "interrupted: " in ended.said
    assert_none_left(log)


@pytest.mark.parametrize(
    ("number", "mode"),
    [
        (signal.SIGINT, "honest"),
        (signal.SIGTERM, "honest"),
        (signal.SIGINT, "ignore_eof_and_term"),
        (signal.SIGTERM, "launcher"),
    ],
)
def test_call_ends_its_server(number: signal.Signals, mode: str, tmp_path: Path, log: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(mode, log=log)}})

    with started("call", "it", "hold", "-c", config) as running:
        until(lambda: received(log, "tools/call"))
        running.signal(number)
        ended = running.end()

    assert_interrupted(ended, log)
    assert ended.out == ""
    assert received(log, "notifications/cancelled")


@BOTH
@pytest.mark.parametrize("words", [["tools", "it"], ["call", "it", "echo"], ["check", "--connect"]])
def test_a_dial_is_ended(number: signal.Signals, words: list[str], tmp_path: Path, log: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd("silent", log=log)}})

    with started(*words, "-c", config) as running:
        until(lambda: pids(log))
        running.signal(number)
        ended = running.end()

    assert_interrupted(ended, log)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, SYNC_CALLER), (signal.SIGTERM, CALLER)])
def test_run_ends_agents_and_servers(number: signal.Signals, code: str, tmp_path: Path, log: Path) -> None:
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)

    with started("run", "-c", config) as running:
        until(lambda: received(log, "tools/call", "hold"))
        running.signal(number)
        ended = running.end()

    assert_interrupted(ended, log)
    assert "agent 'one' failed: AgentStopped: agent 'one' did not end in time after Shutdown" in ended.said


def test_run_tells_its_agents_first(tmp_path: Path, log: Path) -> None:
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=POLITE)

    with started("run", "-c", config) as running:
        until(lambda: received(log, "tools/call", "hold"))
        running.signal(signal.SIGINT)
        ended = running.end()

    assert_interrupted(ended, log)
    assert "agent 'one' exited: goodbye" in ended.said


@pytest.mark.parametrize("code", [STUBBORN, DEAF])
def test_the_second_signal_grants_no_more_grace(code: str, tmp_path: Path, log: Path) -> None:
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)

    with started("run", "-c", config, cwd=tmp_path) as running:
        until(lambda: received(log, "tools/call", "hold"))
        running.signal(signal.SIGINT)
        until(lambda: (tmp_path / "told").exists())
        running.signal(signal.SIGINT)
        ended = running.end()

    assert_interrupted(ended, log)
    assert "agent 'one' failed" in ended.said


def test_more_signals_do_not_break_the_cleaning_up(tmp_path: Path, log: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd("ignore_eof_and_term", log=log)}})

    with started("call", "it", "hold", "-c", config) as running:
        until(lambda: received(log, "tools/call"))
        running.signal(signal.SIGINT)
        # the server has noticed that its stdin is closed, and stays: toolpost waits for it
        until(lambda: any(each.get("self") == {"end": "of stdin"} for each in entries(log)))
        for _ in range(3):
            running.signal(signal.SIGINT)
            running.signal(signal.SIGTERM)
        ended = running.end()

    assert_interrupted(ended, log)


def test_more_signals_do_not_break_the_end_of_a_run(tmp_path: Path, log: Path) -> None:
    tables = {
        "tooling": {"it": odd("ignore_eof_and_term", log=log)},
        "agents": {"one": {"script": "one.py"}},
    }
    config = write_config(tmp_path, tables, one=POLITE)

    with started("run", "-c", config) as running:
        until(lambda: received(log, "tools/call", "hold"))
        running.signal(signal.SIGTERM)
        until(lambda: any(each.get("self") == {"end": "of stdin"} for each in entries(log)))
        for _ in range(3):
            running.signal(signal.SIGINT)
            running.signal(signal.SIGTERM)
        ended = running.end()

    assert_interrupted(ended, log)


def test_a_signal_while_a_run_that_is_done_closes_does_not_break_that(tmp_path: Path, log: Path) -> None:
    code = "def run(host): host.tooling.get('it').call_tool_blocking('echo')"
    tables = {
        "tooling": {"it": odd("ignore_eof_and_term", log=log)},
        "agents": {"one": {"script": "one.py"}},
    }
    config = write_config(tmp_path, tables, one=code)

    with started("run", "-c", config) as running:
        until(lambda: any(each.get("self") == {"end": "of stdin"} for each in entries(log)))
        running.signal(signal.SIGTERM)
        ended = running.end()

    assert_interrupted(ended, log)
    assert "agent 'one' completed" in ended.said


def test_a_script_that_never_finishes_loading_can_be_interrupted(tmp_path: Path) -> None:
    code = "import pathlib, threading; pathlib.Path('loading').touch(); threading.Event().wait()"
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one=code)

    with started("run", "-c", config, cwd=tmp_path) as running:
        until(lambda: (tmp_path / "loading").exists())
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("words", [["check", "-c", "-"], ["call", "it", "echo", "-"]])
def test_waiting_for_standard_input_can_be_interrupted(words: list[str], tmp_path: Path) -> None:
    write_config(tmp_path, {"tooling": {"it": odd()}})

    with started(*words, cwd=tmp_path, stdin=subprocess.PIPE) as running:
        until(lambda: is_reading(running.process.pid))
        running.signal(signal.SIGINT)
        status = until(running.process.poll)
        ended = running.end()

    assert status == 130
    assert "Traceback" not in ended.err


def is_reading(pid: int) -> bool:
    """Whether the process waits in a read of its standard input (Linux)."""
    call, first, *_ = [*Path(f"/proc/{pid}/syscall").read_text().split(), "", ""]
    return call in ("0", "63") and first == "0x0"  # read, on x86_64 and on ARM


def test_a_reader_of_the_trace_that_stands_still_does_not_keep_an_interrupted_run(tmp_path: Path) -> None:
    code = """
from toolpost import Shutdown

def run(host):
    tooling = host.tooling.get("it")
    for _ in range(300):
        tooling.call_tool_blocking("echo", {"text": "x" * 1000})
    open("done", "w")
    host.recv()
"""
    tables = {"tooling": {"it": odd()}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)

    with started("run", "--json", "-c", config, cwd=tmp_path) as running:
        until(lambda: (tmp_path / "done").exists())  # though nobody reads
        running.signal(signal.SIGINT)
        assert running.process.stderr is not None
        for line in running.process.stderr:
            if "interrupted" in line or "agent 'one'" in line:
                break
        running.signal(signal.SIGINT)
        status = until(running.process.poll)

    assert status == 130
