"""What a server writes before anybody listens: it waits in the pipe, none is lost, and it blocks nobody."""

from __future__ import annotations

import fcntl
import os
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.cli.support import toolpost
from tests.mcp.support import host, odd, until
from toolpost.mcp import process
from toolpost.mcp.process import Spawned

LINE = b"x" * 1023 + b"\n"
FLOOD = 64 * 1024
"""Lines: 64 MiB."""


async def started(code: str) -> Spawned:
    spawned = Spawned("it")
    await spawned.start([sys.executable, "-I", "-S", "-c", code], env=os.environ, cwd=None)
    return spawned


def is_full(spawned: Spawned) -> bool:
    """Whether the pipe of a server's stdout takes no more."""
    pipe = os.open(f"/proc/{spawned.pid}/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    try:
        held = int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
        return held == fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    finally:
        os.close(pipe)


def stand_still_until_it_has_left(spawned: Spawned) -> None:
    """The loop then hears of its output and of its exit at the same time."""
    with suppress(ChildProcessError):  # a thread of asyncio's has seen to it already
        os.waitid(os.P_PID, spawned.pid, os.WEXITED | os.WNOWAIT)
    for thread in threading.enumerate():
        if "waitpid" in thread.name:  # until Python 3.12 that is who tells the loop
            thread.join(20)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into a pipe of another process")
async def test_a_flood_waits_in_the_pipe_and_comes_whole_when_somebody_listens() -> None:
    spawned = await started(f"import sys\nfor _ in range({FLOOD}): sys.stdout.write({LINE.decode()!r})")
    await until(lambda: is_full(spawned))
    for _ in range(20):
        await anyio.lowlevel.checkpoint()
        assert is_full(spawned)  # or the loop reads it

    lines, ended = [0], anyio.Event()

    def count(line: bytes) -> None:
        assert line == LINE[:-1]
        lines[0] += 1

    spawned.listen(count, ended.set)
    with anyio.fail_after(60):
        await ended.wait()
    await spawned.end()

    assert lines == [FLOOD]


async def test_a_server_that_has_left_before_anybody_listens_is_heard() -> None:
    spawned = await started("print('first'); print('last')")
    assert await spawned.wait_exited(20)
    heard: list[bytes] = []
    ended = anyio.Event()

    spawned.listen(heard.append, ended.set)

    assert heard == [b"first", b"last"]
    assert ended.is_set()
    await spawned.end()


async def test_so_is_a_last_line_without_an_end() -> None:
    spawned = await started("import sys; sys.stdout.write('first\\nlast')")
    assert await spawned.wait_exited(20)
    heard: list[bytes] = []

    spawned.listen(heard.append, lambda: None)

    assert heard == [b"first", b"last"]
    await spawned.end()


@pytest.mark.skipif(sys.platform != "linux", reason="enlarges a pipe")
async def test_what_a_server_wrote_before_it_left_comes_whole_in_its_order_and_before_its_end() -> None:
    lines = [b"%07d" % number for number in range(100_000)]
    spawned = await started(
        # so much fits into no pipe as it is; asyncio reads it in parts, and sees the exit between them
        "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20);"
        " os.write(1, b''.join(b'%07d\\n' % number for number in range(100_000)))"
    )
    heard: list[bytes] = []
    heard_at_end: list[int] = []
    ended = anyio.Event()

    def end() -> None:
        heard_at_end.append(len(heard))
        ended.set()

    spawned.listen(heard.append, end)
    stand_still_until_it_has_left(spawned)
    with anyio.fail_after(20):
        await ended.wait()
    await spawned.end()

    assert heard == lines
    assert heard_at_end == [len(lines)]


async def test_a_server_to_which_nobody_listens_can_write_to_the_end_and_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "STDIN_CLOSED_SECS", 20.0)
    done = tmp_path / "done"
    code = f"import sys; print('x' * 1_000_000, flush=True); sys.stdin.read(); open({str(done)!r}, 'w')"
    spawned = await started(code)

    await spawned.end()

    assert done.exists()
    assert spawned.describe_end() == "exited with status 0"


async def test_a_banner_that_is_larger_than_the_pipe_delays_no_handshake() -> None:
    async with host(odd("banner", n=2_000_000)) as opened:
        with anyio.fail_after(20):
            await opened.tooling.get("it").list_tools()


def test_nor_does_it_where_the_sdk_is_still_to_be_imported() -> None:
    table = odd("banner", n=2_000_000)
    ended = toolpost("tools", "--stdio", " ".join([table["command"], *table["args"]]))

    assert ended.status == 0
    assert "echo" in ended.out
