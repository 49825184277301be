"""Servers that do not know of each other: one that is bad, or gone, is nobody else's trouble."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import BOUND_SECS, event_of, host, is_alive, kill, odd, said, until
from toolpost import Error, OpenHost, ToolpostError, ToolResult, open_host, open_host_sync

BAD = {
    "silent": odd("silent"),
    "leaves": odd("exit_on_start"),
    "refuses": odd("init_error"),
    "chatters": odd("noise_without_end"),
    "floods": odd("floods", n=20_000),
    "shouts": odd("stderr_flood"),
    "lists without end": odd("endless_pages"),
    "is not there": {"kind": "mcp", "transport": "stdio", "command": "no-such-command"},
    "is not reached": {"kind": "mcp", "transport": "http", "url": "http://127.0.0.1:1/mcp"},
}


async def echoed(opened: OpenHost, tooling: str, text: str) -> str:
    with anyio.fail_after(BOUND_SECS):
        return (await opened.tooling.get(tooling).call_tool_blocking("echo", {"text": text})).value


# -- bad neighbours --------------------------------------------------------------------------------


async def test_a_good_server_works_while_all_others_do_what_they_can() -> None:
    """They are in use all the while: each has calls under way, or is being dialed."""
    async with open_host({"tooling": {"good": odd(), **BAD}}) as opened:
        queued = {await opened.tooling.get(name).call_tool("echo"): name for name in BAD}
        for name in BAD:
            await opened.tooling.get(name).subscribe_resource("odd://one")
        for number in range(20):
            assert await echoed(opened, "good", str(number)) == str(number)

        failed = await event_of(opened, next(id for id, name in queued.items() if name == "is not there"))
        assert isinstance(failed, Error)
        assert await echoed(opened, "good", "last") == "last"


async def test_each_failure_names_its_own_server() -> None:
    names = ("leaves", "refuses", "is not there", "is not reached")
    once = {"tooling_connect_backoff_cap_secs": 0}
    config = {"tooling": {name: BAD[name] for name in names}, "tunables": once}
    async with open_host(config) as opened:
        for name in names:
            with pytest.raises(ToolpostError) as caught:
                await opened.tooling.get(name).list_tools()
            assert [other for other in names if repr(other) in str(caught.value)] == [name]


async def test_a_server_that_dies_takes_no_call_of_another_with_it(tmp_path: Path) -> None:
    logs = [tmp_path / "dies", tmp_path / "stays"]
    tables = {log.name: odd(log=log) for log in logs}
    async with open_host({"tooling": tables}) as opened:
        held = {name: await opened.tooling.get(name).call_tool("hold", {"text": name}) for name in tables}
        for name in tables:
            await opened.tooling.get(name).list_tools()  # so both calls are written
        kill(said(logs[0], "pid")[0])
        lost = await event_of(opened, held["dies"])
        await opened.tooling.get("stays").call_tool_blocking("release")
        kept = await event_of(opened, held["stays"])

    assert isinstance(lost, Error)
    assert isinstance(kept, ToolResult)
    assert kept.value == "stays"
    assert len(said(logs[1], "pid")) == 1


# -- any order, any task, any thread ---------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_hosts_are_closed_in_any_order_by_other_tasks_than_opened_them(
    order: Sequence[int], tmp_path: Path
) -> None:
    logs = [tmp_path / str(number) for number in range(3)]
    hosts = [host(odd(log=log)) for log in logs]
    opened: list[OpenHost] = []

    async def open_next() -> None:
        opened.append(await hosts[len(opened)].__aenter__())

    for _ in hosts:
        await asyncio.create_task(open_next())
    for each in opened:
        assert await echoed(each, "it", "on") == "on"

    left = set(order)
    for closed in order:
        await asyncio.create_task(hosts[closed].__aexit__(None, None, None))
        left.discard(closed)
        assert not is_alive(said(logs[closed], "pid")[0])
        for other in left:
            assert await echoed(opened[other], "it", "still") == "still"


def in_thread(work: Callable[[], Any]) -> None:
    """Do something in a thread of its own; what it raises is raised here."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(BOUND_SECS)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


def test_sync_hosts_are_opened_used_and_closed_by_any_thread(tmp_path: Path) -> None:
    logs = [tmp_path / str(number) for number in range(3)]
    hosts = [open_host_sync({"tooling": {"it": odd(log=log)}}) for log in logs]
    opened: list[Any] = []

    def echo(each: Any) -> None:
        assert each.tooling.get("it").call_tool_blocking("echo", {"text": "on"}).value == "on"

    for each in hosts:
        in_thread(lambda each=each: opened.append(each.__enter__()))
    for each in opened:
        in_thread(lambda each=each: echo(each))
    left = {0, 1, 2}
    for closed in (1, 0, 2):
        in_thread(lambda closed=closed: hosts[closed].__exit__(None, None, None))
        left.discard(closed)
        assert not is_alive(said(logs[closed], "pid")[0])
        for other in left:
            echo(opened[other])


# -- loops -----------------------------------------------------------------------------------------


async def whole_life(log: Path) -> None:
    """A connection, a subscription, a loss, another connection; and the end."""
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        await it.subscribe_resource("odd://one")
        assert await echoed(opened, "it", "one") == "one"
        kill(said(log, "pid")[0])
        await until(lambda: len(said(log, "pid")) == 2)  # the subscription dials
        assert await echoed(opened, "it", "two") == "two"
    assert not any(is_alive(pid) for pid in said(log, "pid"))


def test_event_loops_may_follow_each_other(tmp_path: Path) -> None:
    for number in range(3):
        asyncio.run(whole_life(tmp_path / str(number)))


def test_event_loops_may_run_side_by_side(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def run(log: Path) -> None:
        try:
            asyncio.run(whole_life(log))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(tmp_path / str(number),)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * BOUND_SECS)

    assert not any(thread.is_alive() for thread in threads)
    assert failed == []
