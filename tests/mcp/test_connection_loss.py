"""A server that goes away: what fails, what is sent again, what goes on by itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import (
    RUN_ODD,
    changing,
    event_of,
    events_of,
    host,
    is_alive,
    kill,
    odd,
    received,
    recorded,
    said,
    servers,
    states,
    to_server,
    until,
)
from toolpost import ConnectionLost, Error, ResourceUpdated, Tooling, ToolResult
from toolpost.mcp import process


async def test_a_server_killed_between_two_calls_is_started_again_for_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        first = int((await it.call_tool_blocking("pid")).value)
        kill(first)
        await until(lambda: "lost" in states(opened.trace))

        second = int((await it.call_tool_blocking("pid")).value)

        assert second != first
        assert states(opened.trace) == ["dialing", "ready", "lost", "dialing", "ready"]


async def test_a_call_right_after_the_kill_is_lost_or_answered_by_a_new_process(tmp_path: Path) -> None:
    """Whichever comes first, the news or the call: no hang, and no call that was never sent is lost."""
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        for _ in range(20):
            pid = int((await it.call_tool_blocking("pid")).value)
            kill(pid)
            with anyio.fail_after(20):
                await pid_or_loss(it, pid)


async def pid_or_loss(it: Tooling, killed: int) -> None:
    try:
        pid = int((await it.call_tool_blocking("pid")).value)
    except ConnectionLost as error:
        said = str(error)
    else:
        assert pid != killed
        return
    assert "signal SIGKILL" in said


async def test_a_server_killed_during_a_call_fails_that_call_at_once_and_it_is_not_repeated(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="signal SIGKILL") as caught:
            await it.call_tool_blocking("crash")
        await it.list_tools()

    assert "'it': call_tool 'crash'" in str(caught.value)
    assert "not repeated" in str(caught.value)
    assert [each["params"]["name"] for each in received(log, "tools/call")] == ["crash"]
    assert len(said(log, "pid")) == 2


async def test_every_call_that_is_open_gets_its_own_error() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        ids = [await it.call_tool("hold", {"text": str(n)}) for n in range(10)]
        ids.append(await it.call_tool("crash"))

        events = await events_of(opened, ids)

    assert all(isinstance(each, Error) and "connection was lost" in each.text for each in events.values())


async def test_the_error_has_the_exit_status_and_the_last_words() -> None:
    async with host(odd()) as opened:
        with pytest.raises(ConnectionLost) as caught:
            await opened.tooling.get("it").call_tool_blocking("exit", {"status": 9})

    assert "exited with status 9" in str(caught.value)
    assert "leaving as asked" in str(caught.value)


async def test_a_server_that_closes_its_stdout_loses_the_connection_and_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        pid = int((await it.call_tool_blocking("pid")).value)
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="closed its output"):
            await it.call_tool_blocking("close_stdout")
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"
        await until(lambda: not is_alive(pid))


async def test_a_server_that_closes_its_stdin_is_given_up_and_the_next_call_gets_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "STDIN_CLOSED_SECS", 0.05)  # it will not leave by itself
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        pid = int((await it.call_tool_blocking("pid")).value)
        await it.call_tool_blocking("close_stdin")

        with anyio.fail_after(20):
            answer = await it.call_tool_blocking("echo", {"text": "on"})

        assert answer.value == "on"
        assert states(opened.trace) == ["dialing", "ready", "lost", "dialing", "ready"]
        await until(lambda: not is_alive(pid))


async def test_a_process_that_leaves_is_noticed_though_a_child_holds_its_pipes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "TERMINATE_SECS", 0.05)
    log = tmp_path / "log"
    async with host(odd("launcher", log=log)) as opened:
        it = opened.tooling.get("it")
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="exited with status 7"):
            await it.call_tool_blocking("exit", {"status": 7})
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"
        first, second = said(log, "child")[:2]
        await until(lambda: not is_alive(first) and not is_alive(second))


async def test_a_line_longer_than_the_limit_ends_the_connection_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process.LineBuffer.__init__, "__defaults__", (100_000,))
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        with anyio.fail_after(20), pytest.raises(ConnectionLost, match="longer than"):
            await it.call_tool_blocking("big", {"size": 200_000})
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"


async def test_a_server_that_leaves_after_every_handshake_fails_each_call_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("leave_after_handshake", log=log)) as opened:
        it = opened.tooling.get("it")
        for _ in range(3):
            with pytest.raises(ConnectionLost):
                await it.list_tools()

    assert len(said(log, "pid")) == 3


async def test_calls_that_find_the_connection_dead_are_sent_on_a_new_one(tmp_path: Path) -> None:
    """The calls come in the same turn of the loop in which the death is noticed."""
    async with host(odd(log=tmp_path / "log")) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        # the moment cannot be hit from outside
        backend: Any = it._backend  # pyright: ignore[reportPrivateUsage]
        peer = await backend._connection.ready()
        peer._dispatcher._end()

        with anyio.fail_after(20):
            assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"


# -- subscriptions over a loss ---------------------------------------------------------------------


async def test_calls_that_are_sent_again_keep_their_order_with_those_that_follow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A call with each turn of the loop, from before the line is found broken until there is a new one."""
    monkeypatch.setattr(process, "STDIN_CLOSED_SECS", 0.05)
    monkeypatch.setattr(process, "EXIT_FOLLOWS_SECS", 0.005)
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        await it.call_tool_blocking("close_stdin")
        calls: list[str] = []
        for number in range(300):
            calls += [await it.call_tool("echo", {"text": str(2 * number)})]
            calls += [await it.call_tool("echo", {"text": str(2 * number + 1)})]
            await anyio.lowlevel.checkpoint()
        await events_of(opened, calls)

    numbers = [int(each["params"]["arguments"]["text"]) for each in received(log, "tools/call")[1:]]
    assert len(numbers) > 500
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
async def test_a_subscription_goes_on_over_a_kill_with_one_refresh(protocol: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    asking = {"2025-11-25": "resources/subscribe", "2026-07-28": "subscriptions/listen"}[protocol]
    async with host(recorded(changing(protocol=protocol), log)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("demo://a")
        await it.call_tool_blocking("set", {"uri": "demo://a", "text": "before"})
        before = await event_of(opened, subscription)

        (pid,) = servers()
        os.killpg(pid, signal.SIGKILL)
        refresh = await event_of(opened, subscription)
        await it.call_tool_blocking("set", {"uri": "demo://a", "text": "after"})
        after = await event_of(opened, subscription)

        assert it.is_open(subscription)
        assert opened.try_recv() is None
    assert isinstance(before, ResourceUpdated)
    assert isinstance(refresh, ResourceUpdated)
    assert isinstance(after, ResourceUpdated)
    # a new process has its data anew
    assert [before.content, refresh.content, after.content] == ["before", "alpha", "after"]
    assert len(to_server(log, asking)) == 2


async def test_a_subscription_ends_with_the_error_when_the_server_does_not_come_back(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(RUN_ODD)
    table = odd()
    table["args"][0] = str(script)
    async with host(table, tooling_connect_backoff_cap_secs=0) as opened:
        it = opened.tooling.get("it")
        pid = int((await it.call_tool_blocking("pid")).value)
        subscription = await it.subscribe_resource("odd://one")
        await it.list_tools()
        script.write_text("import sys; sys.exit('gone for good')")
        kill(pid)

        error = await event_of(opened, subscription)

        assert not it.is_open(subscription)
    assert isinstance(error, Error)
    assert "gone for good" in error.text


@pytest.mark.parametrize(
    ("mode", "protocol"),
    [
        ("dies_over_subscription", "2025-11-25"),
        ("dies_over_subscription", "2026-07-28"),
        ("gone_after_handshake", "2025-11-25"),
    ],
)
async def test_a_server_that_dies_over_the_first_subscription_twice_ends_it_with_the_error(
    mode: str, protocol: str, waits: list[float], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd(mode, log=log, protocol=protocol)) as opened:
        it = opened.tooling.get("it")
        first, second = await it.subscribe_resource("odd://one"), await it.subscribe_resource("odd://one")
        with anyio.fail_after(20):
            errors = await events_of(opened, [first, second])

        assert not it.is_open(first)
        assert not it.is_open(second)
    for error in errors.values():
        assert isinstance(error, Error)
        assert "'it': subscribe_resource 'odd://one': the connection was lost" in error.text
        assert "exited with status 1" in error.text
    assert len(said(log, "pid")) == 2
    assert waits == [0.1]


async def test_a_list_subscription_that_a_server_dies_over_ends_with_the_error_too(
    waits: list[float], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("dies_over_subscription", log=log)) as opened:
        it = opened.tooling.get("it")
        with anyio.fail_after(20):
            error = await event_of(opened, await it.subscribe_resource_list())

    assert isinstance(error, Error)
    assert "'it': subscribe_resource_list: the connection was lost" in error.text
    assert len(said(log, "pid")) == 2
    assert waits == [0.1]


async def test_a_server_that_leaves_after_every_subscription_is_started_as_often_as_one_is_dialed(
    waits: list[float], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table = odd("leaves_once_subscribed", log=log, protocol="2025-11-25")
    async with host(table, tooling_connect_backoff_cap_secs=1) as opened:
        it = opened.tooling.get("it")
        event, subscription = None, await it.subscribe_resource("odd://one")
        with anyio.fail_after(20):
            while it.is_open(subscription):  # read-backs may fail or not, as the server is there or not
                event = await event_of(opened, subscription)

    assert isinstance(event, Error)
    assert "the connection was lost 5 times in a row, each time within 2 s" in event.text
    assert "the last time the server exited with status 1" in event.text
    assert waits == [0.1, 0.2, 0.4, 0.8]
    assert len(said(log, "pid")) == 5


async def test_a_call_in_place_and_a_queued_one_go_on_after_a_loss() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        lost = await event_of(opened, await it.call_tool("crash"))
        answer = await event_of(opened, await it.call_tool("echo", {"text": "on"}))

    assert isinstance(lost, Error)
    assert isinstance(answer, ToolResult)
