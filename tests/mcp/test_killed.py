"""A program that is killed leaves no server, no child of one, and nothing that watched over them."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.support import started, until, write_config
from tests.mcp.support import Table, children, is_alive, kill, odd, received, said, wardens

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

HEAD = """
import asyncio, os, sys, time, toolpost
from toolpost.mcp import process
process.STDIN_CLOSED_SECS = process.TERMINATE_SECS = 0.1  # hardly a server here leaves by itself

"""


@contextmanager
def running(program: str) -> Generator[subprocess.Popen[bytes]]:
    """A Python program, once it has said `up`."""
    command = [sys.executable, "-c", HEAD + textwrap.dedent(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"up\n"
            yield running
        finally:
            running.kill()


def holding(table: Table, *, then: str = "await asyncio.sleep(60)") -> str:
    """A program in the middle of a call."""
    return f"""
        async def main():
            async with toolpost.open_host({{"tooling": {{"it": {table!r}}}}}) as host:
                it = host.tooling.get("it")
                await it.list_tools()
                await it.call_tool("hold")
                print("up", flush=True)
                {then}
        asyncio.run(main())
    """


def processes(program: int, *logs: Path) -> list[int]:
    """The one warden of a program, its servers by their logs, and their children. All of them run."""
    (warden,) = wardens(program)
    pids = [warden, *(pid for log in logs for fact in ("pid", "child") for pid in said(log, fact))]
    assert len(pids) > len(logs)
    assert all(map(is_alive, pids))
    return pids


def until_gone(pids: list[int]) -> None:
    until(lambda: not any(map(is_alive, pids)))


@pytest.mark.parametrize("mode", ["honest", "ignore_eof_and_term", "launcher"])
def test_a_program_that_is_killed_in_a_call_leaves_nothing(mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(holding(odd(mode, log=log))) as program:
        left = processes(program.pid, log)

        program.kill()

        until_gone(left)


def test_a_program_that_leaves_without_cleaning_up_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(holding(odd("launcher", log=log), then="sys.stdin.read(); os._exit(0)")) as program:
        left = processes(program.pid, log)

        assert program.stdin is not None
        program.stdin.close()

        until_gone(left)


def test_a_program_that_is_killed_while_it_dials_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = f"""
        async def main():
            async with toolpost.open_host({{"tooling": {{"it": {odd("mute", log=log)!r}}}}}) as host:
                print("up", flush=True)
                await host.tooling.get("it").list_tools()
        asyncio.run(main())
    """
    with running(program) as dialing:
        until(lambda: received(log))
        left = processes(dialing.pid, log)

        dialing.kill()

        until_gone(left)


def test_a_program_that_is_killed_while_it_closes_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = odd("ignore_eof_and_term", log=log)
    with running(holding(table, then="process.STDIN_CLOSED_SECS = 60; sys.stdin.read()")) as program:
        left = processes(program.pid, log)
        assert program.stdin is not None
        program.stdin.close()
        until(lambda: said(log, "end"))

        program.kill()

        until_gone(left)


def test_a_server_may_take_a_moment_to_leave_after_a_kill(tmp_path: Path) -> None:
    """As after a close: its stdin has ended, and it writes down what it knows."""
    log = tmp_path / "log"
    head = "process.STDIN_CLOSED_SECS = 10\n"
    with running(head + textwrap.dedent(holding(odd("slow_exit", log=log)))) as program:
        left = processes(program.pid, log)

        program.kill()

        until_gone(left)
    assert said(log, "exit") == ["clean"]


def test_a_program_that_is_killed_when_one_of_its_two_hosts_is_closed_leaves_nothing(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    tables = [odd("launcher", log=log) for log in (one, two)]
    program = f"""
        async def main():
            one, two = [{{"tooling": {{"it": it}}}} for it in {tables!r}]
            async with toolpost.open_host(one) as first:
                async with toolpost.open_host(two) as second:
                    await first.tooling.get("it").list_tools()
                    await second.tooling.get("it").list_tools()
                print("up", flush=True)
                await asyncio.sleep(60)
        asyncio.run(main())
    """
    with running(program) as running_still:
        left = processes(running_still.pid, one)
        assert not any(map(is_alive, said(two, "pid")))

        running_still.kill()

        until_gone(left)


OPEN_IT = """
opened = []

def open_it(table):
    opened.append(toolpost.open_host_sync({"tooling": {"it": table}}))
    opened[-1].__enter__().tooling.get("it").list_tools()

"""


def test_what_a_program_has_forked_off_does_not_keep_its_servers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = f"""
        open_it({odd("ignore_eof_and_term", log=log)!r})
        if not os.fork():
            print("up", flush=True)
        time.sleep(60)
    """
    with running(OPEN_IT + textwrap.dedent(program)) as forking:
        left = processes(forking.pid, log)
        (fork,) = set(children(forking.pid)) - set(left)

        forking.kill()

        until_gone(left)
        assert is_alive(fork)
        kill(fork)


def test_a_fork_has_its_own_servers_watched(tmp_path: Path) -> None:
    log, log_of_fork = tmp_path / "log", tmp_path / "fork"
    program = f"""
        open_it({odd("ignore_eof_and_term", log=log)!r})
        if not os.fork():
            open_it({odd("ignore_eof_and_term", log=log_of_fork)!r})
            print("up", flush=True)
        time.sleep(60)
    """
    with running(OPEN_IT + textwrap.dedent(program)) as forking:
        left = processes(forking.pid, log)
        (fork,) = set(children(forking.pid)) - set(left)
        left_by_fork = processes(fork, log_of_fork)

        kill(fork)

        until_gone(left_by_fork)
        assert all(map(is_alive, left))
        forking.kill()
        until_gone(left)


def test_toolpost_run_that_is_killed_leaves_nothing_and_its_pipeline_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tables = {"tooling": {"it": odd("launcher", log=log)}, "agents": {"one": {"script": "one.py"}}}
    agent = "def run(host): host.tooling.get('it').call_tool_blocking('hold')"
    with started("run", "-c", write_config(tmp_path, tables, one=agent)) as command:
        until(lambda: received(log, "tools/call"))
        left = processes(command.process.pid, log)

        command.process.kill()
        command.end()  # reads both pipes to their ends

        until_gone(left)
        assert json.dumps("hold") in log.read_text()
