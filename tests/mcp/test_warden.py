"""What watches over the servers: when it is there, what it sees of us, and what if it is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.mcp.support import children, host, is_alive, kill, odd, servers, until, wardens
from toolpost import ConnectFailed, OpenHost, open_host, open_host_sync
from toolpost.mcp import process
from toolpost.mcp.warden import PROGRAM, Warden

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

CONFIG = {"tooling": {"it": odd(), "other": odd()}}


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warden that has warned of nothing yet."""
    monkeypatch.setattr(process, "warden", Warden())


async def use(opened: OpenHost, name: str = "it") -> None:
    await opened.tooling.get(name).list_tools()


# -- when ------------------------------------------------------------------------------------------


async def test_there_is_one_while_there_are_servers() -> None:
    async with open_host(CONFIG) as one, open_host(CONFIG) as two:
        assert wardens() == []
        await use(one)
        warden = wardens()
        await use(one, "other")
        await use(two)

        assert len(warden) == 1
        assert wardens() == warden
        assert len(servers()) == 3
    assert children(zombies=True) == []


async def test_it_stays_for_the_host_that_is_still_open() -> None:
    async with open_host(CONFIG) as one:
        await use(one)
        warden = wardens()
        async with open_host(CONFIG) as two:
            await use(two)

        assert wardens() == warden
    assert children(zombies=True) == []


async def test_a_command_that_cannot_be_started_leaves_none() -> None:
    async with host(odd(command="/nowhere/to/be/found")) as opened:
        with pytest.raises(ConnectFailed):
            await use(opened)

        assert children(zombies=True) == []


def test_loops_after_each_other_have_one_each() -> None:
    async def main() -> list[int]:
        async with open_host(CONFIG) as opened:
            await use(opened)
            return wardens()

    first = asyncio.run(main())
    assert children(zombies=True) == []
    second = asyncio.run(main())

    assert len(first) == len(second) == 1
    assert children(zombies=True) == []


def test_loops_in_several_threads_share_one() -> None:
    seen: list[list[int]] = []
    all_up = threading.Barrier(4)

    def work() -> None:
        with open_host_sync(CONFIG) as opened:
            opened.tooling.get("it").list_tools()
            all_up.wait(20)
            seen.append(wardens())
            all_up.wait(20)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)

    assert len(seen) == 4
    assert all(len(each) == 1 and each == seen[0] for each in seen)
    assert children(zombies=True) == []


# -- what it sees ----------------------------------------------------------------------------------


async def test_it_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret in its environment or arguments, no file but its pipe, no folder, no terminal."""
    monkeypatch.setenv("API_TOKEN", "a-secret-of-ours")
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    async with host(odd(env={"LEAK": "a-secret-of-the-server"})) as opened:
        await use(opened)
        (pid,) = wardens()
        proc = Path(f"/proc/{pid}")
        await until(lambda: len(list((proc / "fd").iterdir())) == 3)  # its interpreter has come up

        assert b"secret" not in (proc / "environ").read_bytes() + (proc / "cmdline").read_bytes()
        assert [str((proc / "fd" / fd).readlink()) for fd in "12"] == ["/dev/null"] * 2
        assert (proc / "cwd").readlink() == Path("/")
        assert os.getsid(pid) == pid
    os.close(ours)
    os.close(theirs)


async def test_no_server_holds_its_pipe() -> None:
    async with open_host(CONFIG) as opened:
        await use(opened)
        await use(opened, "other")
        (warden,) = wardens()
        pipe = Path(f"/proc/{warden}/fd/0").readlink()

        for server in servers():
            assert pipe not in [each.readlink() for each in Path(f"/proc/{server}/fd").iterdir()]


# -- what if it is lost ----------------------------------------------------------------------------


@pytest.mark.usefixtures("anew")
async def test_one_that_was_killed_is_told_of_once_and_a_new_one_knows_all_servers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_host(CONFIG) as opened:
        await use(opened)
        (first,) = wardens()
        kill(first)
        await use(opened)
        await until(lambda: not is_alive(first))
        await use(opened, "other")
        (second,) = wardens()
        kill(second)
        await until(lambda: not is_alive(second))

        warned = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert len(warned) == 1
        assert "no process watches over the servers" in warned[0]
    assert children(zombies=True) == []


@pytest.mark.usefixtures("anew")
async def test_one_that_was_killed_and_is_not_needed_again_is_told_of_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with host(odd()) as opened:
        await use(opened)
        (warden,) = wardens()
        kill(warden)
        await until(lambda: not is_alive(warden))

    assert "no process watches over the servers" in caplog.text
    assert children(zombies=True) == []


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("executable", ["/nowhere/to/be/found", "", "/bin/false"])
async def test_without_one_all_else_works(
    executable: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    async with open_host(CONFIG) as opened:
        await use(opened)
        await until(lambda: not wardens())
        await use(opened, "other")

    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warned) == 1
    assert children(zombies=True) == []


@pytest.mark.usefixtures("anew")
async def test_a_frozen_program_is_not_run_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its `sys.executable` is itself: it would start a warden, which would start a warden."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    async with host(odd()) as opened:
        await use(opened)

        assert wardens() == []
    assert "a frozen program has no interpreter for it" in caplog.text


@pytest.mark.usefixtures("anew")
def test_one_that_does_not_read_is_given_up_and_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Its pipe holds 64 KiB or so; more is told here."""
    warden, owner = Warden(), object()
    warden.prepare(owner, grace_secs=0, terminate_secs=0)
    os.kill(wardens()[0], signal.SIGSTOP)
    for group in range(10_000_000, 10_010_000):
        warden.watch(owner, group)

    assert "it is lost" in caplog.text
    assert children(zombies=True) == []
    warden.forget(owner)


# -- the program -----------------------------------------------------------------------------------


@pytest.fixture
def three_groups() -> Generator[list[subprocess.Popen[bytes]]]:
    """Processes that each have a group of their own."""
    sleeping = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(3)]
    yield sleeping
    for each in sleeping:
        each.kill()
        each.wait()


def test_it_ends_the_groups_that_have_started_and_are_not_gone(
    three_groups: list[subprocess.Popen[bytes]],
) -> None:
    one, two, three = three_groups
    lines = f"{one.pid}\n{two.pid}\n-{one.pid}\n{three.pid}\n"

    subprocess.run([sys.executable, "-I", "-S", PROGRAM, "0", "0.1"], input=lines, text=True, check=True)

    assert (two.wait(5), three.wait(5)) == (-signal.SIGTERM, -signal.SIGTERM)
    assert one.poll() is None
