"""After a host, however it ended, none of its server processes runs, and nothing of ours is left either."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.mcp.support import changing, children, host, http, is_alive, kill, odd, said, servers, until
from tests.servers.own.odd_http import odd_http
from toolpost import ConnectionLost, Handlers, OpenHost, open_host, open_host_sync
from toolpost.mcp import process
from toolpost.model import JsonObject


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that will not leave are not waited for long."""
    monkeypatch.setattr(process, "STDIN_CLOSED_SECS", 0.1)
    monkeypatch.setattr(process, "TERMINATE_SECS", 0.1)


async def test_after_close_the_process_is_gone_and_reaped() -> None:
    async with host(odd()) as opened:
        await opened.tooling.get("it").list_tools()
        assert len(servers()) == 1

    assert children(zombies=True) == []


async def test_a_server_may_take_a_moment_to_leave_when_its_stdin_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("slow_exit", log=log)) as opened:
        await opened.tooling.get("it").list_tools()

    assert said(log, "exit") == ["clean"]


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_calls_leave_nothing_for_the_garbage_collector_to_find(over: str) -> None:
    """Circles among what a call is made of would cost more, in the end, than all the rest of it."""
    async with odd_http() as server, host(odd() if over == "stdio" else http(server.url)) as opened:
        it = opened.tooling.get("it")
        await it.call_tool_blocking("echo")
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await it.call_tool_blocking("echo")
                await it.call_tool("echo")
                await opened.recv()
            assert gc.collect() < 20
        finally:
            gc.enable()


@pytest.mark.usefixtures("short_grace")
async def test_a_server_that_ignores_the_end_of_stdin_and_sigterm_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with host(odd("ignore_eof_and_term", log=log)) as opened:
            await opened.tooling.get("it").list_tools()

    assert said(log, "end") == ["of stdin"]
    assert not is_alive(said(log, "pid")[0])
    assert children(zombies=True) == []


@pytest.mark.usefixtures("short_grace")
async def test_grandchildren_are_ended_too(tmp_path: Path) -> None:
    """One holds all pipes and ignores SIGTERM, one holds stdout; the server itself leaves at once."""
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with host(odd("launcher", log=log)) as opened:
            await opened.tooling.get("it").list_tools()
            grandchildren = said(log, "child")
            assert all(is_alive(pid) for pid in grandchildren)

    assert len(grandchildren) == 2
    assert not any(is_alive(pid) for pid in grandchildren)


@pytest.mark.usefixtures("short_grace")
async def test_the_grandchildren_of_a_server_that_crashed_are_ended_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("launcher", log=log)) as opened:
        it = opened.tooling.get("it")
        with pytest.raises(ConnectionLost):
            await it.call_tool_blocking("crash")

        await until(lambda: not any(is_alive(pid) for pid in said(log, "child")))


async def test_a_dial_that_is_cancelled_at_any_moment_leaves_nothing() -> None:
    """From before the process exists until after the handshake, a turn of the loop at a time."""
    async with host(odd(protocol="2025-11-25")) as opened:
        it = opened.tooling.get("it")
        for turns in range(0, 200, 3):
            call = await it.call_tool("echo")
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            await it.cancel(call)

    assert children(zombies=True) == []


async def test_closing_leaves_no_timer_that_runs_for_as_long_as_a_call_may() -> None:
    def timers() -> list[asyncio.TimerHandle]:
        loop: Any = asyncio.get_running_loop()
        return [each for each in loop._scheduled if not each.cancelled() and each.when() > loop.time() + 10]

    before = timers()
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        await it.call_tool("hold")
        await it.call_tool("hold", timeout=1000)

    assert timers() == before


async def test_closing_with_calls_and_subscriptions_open_leaves_nothing() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        for _ in range(5):
            await it.call_tool("hold")
            await it.subscribe_resource("odd://one")
            await it.subscribe_resource_list()
        await it.list_tools()

    assert children(zombies=True) == []


async def test_a_host_that_is_closed_while_the_server_dies_leaves_nothing() -> None:
    for _ in range(5):
        async with host(odd()) as opened:
            it = opened.tooling.get("it")
            kill(int((await it.call_tool_blocking("pid")).value))

        assert children(zombies=True) == []


async def test_ten_hosts_leave_no_descriptor_no_task_no_thread() -> None:
    async def cycle() -> None:
        async with host(odd()) as opened:
            it = opened.tooling.get("it")
            await it.subscribe_resource("odd://one")
            await it.call_tool_blocking("echo")
            with pytest.raises(ConnectionLost):
                await it.call_tool_blocking("crash")
            await it.list_tools()

    def left() -> tuple[int, int, int]:
        return (
            sum(1 for _ in Path("/proc/self/fd").iterdir()),
            len(asyncio.all_tasks()),
            threading.active_count(),
        )

    await cycle()  # what is made once and kept: worker threads, the child watcher
    before = left()
    for _ in range(10):
        await cycle()

    await until(lambda: left() <= before or None)
    assert all(now <= then for now, then in zip(left(), before, strict=True))
    assert children(zombies=True) == []


# -- torn down -------------------------------------------------------------------------------------


def test_a_program_that_raises_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def main() -> None:
        async with host(odd(log=log)) as opened:
            await opened.tooling.get("it").call_tool("hold")
            await opened.tooling.get("it").list_tools()
            raise RuntimeError("a fault of the program")

    with pytest.raises(RuntimeError, match="a fault of the program"):
        asyncio.run(main())
    assert len(said(log, "pid")) == 1
    assert children(zombies=True) == []


def test_a_program_that_is_interrupted_leaves_nothing() -> None:
    async def main() -> None:
        async with host(odd()) as opened:
            await opened.tooling.get("it").list_tools()
            signal.raise_signal(signal.SIGINT)
            await anyio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert children(zombies=True) == []


@pytest.mark.parametrize("mode", ["honest", "silent"])
def test_a_loop_that_ends_with_the_host_still_open_in_a_task_leaves_nothing(
    mode: str, tmp_path: Path
) -> None:
    """`asyncio.run` cancels what is left: the program's task, the house and the connection at once."""
    log = tmp_path / "log"

    async def program() -> None:
        async with host(odd(mode, log=log)) as opened:
            await opened.tooling.get("it").call_tool("hold")
            await anyio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(program())
        await until(lambda: said(log, "pid"))
        del task

    asyncio.run(main())
    assert children(zombies=True) == []


def test_a_host_that_nobody_closes_is_ended_with_its_loop(tmp_path: Path) -> None:
    log = tmp_path / "log"
    kept: list[OpenHost] = []

    async def main() -> None:
        opened = await host(odd(log=log)).__aenter__()
        kept.append(opened)
        await opened.tooling.get("it").list_tools()

    asyncio.run(main())
    assert len(said(log, "pid")) == 1
    assert children(zombies=True) == []


def test_a_sync_host_leaves_nothing() -> None:
    with open_host_sync({"tooling": {"it": odd()}}) as opened:
        opened.tooling.get("it").list_tools()
        assert len(servers()) == 1

    assert children(zombies=True) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_a_signal_ends_leaves_no_server(number: signal.Signals, tmp_path: Path) -> None:
    """SIGKILL too: the server's stdin ends with the program."""
    log = tmp_path / "log"
    program = textwrap.dedent(f"""
        import asyncio, toolpost
        async def main():
            async with toolpost.open_host({{"tooling": {{"it": {odd(log=log)!r}}}}}) as host:
                await host.tooling.get("it").list_tools()
                print("up", flush=True)
                await asyncio.sleep(60)
        asyncio.run(main())
    """)
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert running.stdout is not None
    with running.stdout:
        assert running.stdout.readline() == b"up\n"
        (pid,) = said(log, "pid")
        assert is_alive(pid)
        running.send_signal(number)
        running.wait(20)

    async def gone() -> None:
        await until(lambda: not is_alive(pid))

    anyio.run(gone)


@pytest.mark.parametrize("interrupts", [1, 2, 3])
def test_a_program_that_is_interrupted_again_and_again_leaves_no_server(
    interrupts: int, tmp_path: Path
) -> None:
    """The server ignores all but SIGKILL. Each further interrupt comes while the one before is obeyed."""
    log = tmp_path / "log"
    config = {"tooling": {"it": odd("ignore_eof_and_term", log=log)}}
    program = textwrap.dedent(f"""
        import asyncio, toolpost
        async def main():
            async with toolpost.open_host({config!r}) as host:
                await host.tooling.get("it").list_tools()
                print("up", flush=True)
                await asyncio.sleep(60)
        asyncio.run(main())
    """)
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert running.stdout is not None
    with running.stdout:
        assert running.stdout.readline() == b"up\n"
    (pid,) = said(log, "pid")

    async def interrupt() -> None:
        running.send_signal(signal.SIGINT)
        await until(lambda: said(log, "end"))
        for _ in range(interrupts - 1):
            running.send_signal(signal.SIGINT)
        await anyio.to_thread.run_sync(running.wait, 20)
        await until(lambda: not is_alive(pid))

    anyio.run(interrupt)


@pytest.mark.parametrize("interrupts", [1, 2, 3])
def test_a_program_that_is_interrupted_while_it_imports_the_sdk_ends_and_leaves_no_server(
    interrupts: int, tmp_path: Path
) -> None:
    """The import is under way in a thread, and neither interrupts nor the end of the loop reach it there."""
    log = tmp_path / "log"
    program = textwrap.dedent(f"""
        import asyncio, sys, threading, toolpost

        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "toolpost.mcp.session":
                    print("importing", flush=True)
                    sys.stdin.readline()

        async def main():
            async with toolpost.open_host({{"tooling": {{"it": {odd(log=log)!r}}}}}) as host:
                await host.tooling.get("it").list_tools()

        sys.meta_path.insert(0, Slow())
        asyncio.run(main())
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"importing\n"
        for _ in range(interrupts):
            running.send_signal(signal.SIGINT)
        running.communicate(b"\n", timeout=20)

    async def gone() -> None:
        await until(lambda: not any(is_alive(pid) for pid in said(log, "pid")))

    anyio.run(gone)


def await_end_of(running: subprocess.Popen[bytes]) -> None:
    """Interrupts once more where one was lost: anyio makes an error of one that hits it in a scope's exit."""
    for _ in range(20):
        try:
            running.wait(1)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
        else:
            return
    running.wait(0)


def test_a_program_whose_loop_is_broken_off_by_interrupts_ends_and_leaves_no_server(tmp_path: Path) -> None:
    """No task of it has come to its end, and no thread is told that it may go."""
    log = tmp_path / "log"
    program = textwrap.dedent(f"""
        import asyncio, toolpost
        async def main():
            async with toolpost.open_host({{"tooling": {{"it": {odd(log=log)!r}}}}}) as host:
                await host.tooling.get("it").list_tools()
                while True:
                    asyncio.get_running_loop().call_soon(lambda: print("deaf", flush=True))
                    try:
                        await asyncio.sleep(60)
                    except asyncio.CancelledError:
                        pass
        asyncio.run(main())
    """)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        for _ in range(3):  # it cancels the task, then all tasks, then it breaks off
            assert running.stdout.readline() == b"deaf\n"
            running.send_signal(signal.SIGINT)
        try:
            await_end_of(running)
        finally:
            running.kill()

    async def gone() -> None:
        await until(lambda: not any(is_alive(pid) for pid in said(log, "pid")))

    anyio.run(gone)


@pytest.mark.parametrize("mode", ["ignore_eof_and_term", "launcher"])
async def test_an_end_that_is_cancelled_kills_the_whole_group_at_once(mode: str, tmp_path: Path) -> None:
    """A shield of anyio does not stop `Task.cancel`, which a loop's teardown calls."""
    log = tmp_path / "log"
    table = odd(mode, log=log)
    spawned = process.Spawned("it")
    await spawned.start([table["command"], *table["args"]], env=os.environ, cwd=None)
    await until(lambda: said(log, "pid"))
    ending = asyncio.create_task(spawned.end())
    await anyio.wait_all_tasks_blocked()

    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending

    await until(lambda: not any(is_alive(pid) for pid in [*said(log, "pid"), *said(log, "child")]))
    assert await spawned.wait_exited(20)  # the loop has heard of it too


async def test_two_hosts_in_one_loop_do_not_disturb_each_other() -> None:
    config = {"tooling": {"it": odd()}}
    async with open_host(config) as one:
        async with open_host(config) as two:
            await one.tooling.get("it").list_tools()
            await two.tooling.get("it").list_tools()
            assert len(servers()) == 2
        assert (await one.tooling.get("it").call_tool_blocking("echo", {"text": "on"})).value == "on"
        assert len(servers()) == 1


async def test_a_handler_that_answers_for_a_call_has_ended_when_the_host_is_closed() -> None:
    asked, ended = asyncio.Event(), list[bool]()

    async def elicitation(params: JsonObject) -> JsonObject:
        try:
            asked.set()
            await anyio.sleep_forever()
        finally:
            for _ in range(100):  # longer than the server takes to leave
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.005)
            ended.append(True)
        return {}

    async with host(changing(), Handlers(elicitation=elicitation)) as opened:
        await opened.tooling.get("it").call_tool("ask", {"what": "elicitation"})
        await asked.wait()

    assert ended
