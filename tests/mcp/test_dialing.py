"""How a connection comes to be: when, how often tried, shared by whom, and what a failure tells."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import (
    OWN,
    RUN_ODD,
    changing,
    event_of,
    events_of,
    host,
    is_alive,
    odd,
    python,
    received,
    said,
    states,
    until,
)
from toolpost import ConnectFailed, Error, HostClosed, OpenHost, ToolResult
from toolpost.mcp import handshake
from toolpost.mcp.peer import Peer

TINY = {"tooling_connect_backoff_start_ms": 1, "tooling_connect_backoff_cap_secs": 0.004}
"""Waits of 1 and 2 ms: three attempts."""
ONCE = {"tooling_connect_backoff_cap_secs": 0}
"""No wait fits under this: one attempt."""


async def failed(opened: OpenHost) -> str:
    """What a first use says that cannot succeed."""
    with pytest.raises(ConnectFailed) as caught:
        await opened.tooling.get("it").list_tools()
    return str(caught.value)


# -- when ------------------------------------------------------------------------------------------


async def test_opening_a_host_and_getting_a_tooling_start_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        assert (it.kind(), it.name(), it.is_open("x")) == ("mcp", "it", False)
        await anyio.wait_all_tasks_blocked()

        assert states(opened.trace) == []
    assert said(log, "pid") == []


async def test_the_first_use_dials_and_the_second_finds_the_connection(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        assert await it.call_tool_blocking("pid") == await it.call_tool_blocking("pid")

        assert states(opened.trace) == ["dialing", "ready"]
    assert len(said(log, "pid")) == 1


async def test_20_callers_share_one_dial(tmp_path: Path) -> None:
    log = tmp_path / "log"
    pids: list[str] = []
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")

        async def call() -> None:
            pids.append((await it.call_tool_blocking("pid")).value)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(call)

    assert pids == [str(said(log, "pid")[0])] * 20
    assert len(said(log, "pid")) == 1


async def test_20_callers_share_one_failure(tmp_path: Path) -> None:
    log = tmp_path / "log"
    texts: list[str] = []
    async with host(odd("exit_on_start", log=log, protocol="2025-11-25"), **ONCE) as opened:

        async def use() -> None:
            texts.append(await failed(opened))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(use)

    assert len(texts) == 20
    assert len(set(texts)) == 1
    assert len(said(log, "pid")) == 1


async def test_calls_are_sent_in_the_order_in_which_they_were_queued(tmp_path: Path) -> None:
    """Also around the moment in which the connection comes to be."""
    log = tmp_path / "log"
    count = 0
    async with host(odd("discover_silent", log=log, protocol="2025-11-25")) as opened:
        it = opened.tooling.get("it")
        ids: list[str] = []
        while count < 900 and ("ready" not in states(opened.trace) or len(ids) < count + 20):
            ids.append(await it.call_tool("echo", {"text": str(len(ids))}))
            count += "ready" not in states(opened.trace)
        await events_of(opened, ids)

    assert 0 < count < len(ids)
    sent = [int(each["params"]["arguments"]["text"]) for each in received(log, "tools/call")]
    assert sent == list(range(len(ids)))


# -- going away ------------------------------------------------------------------------------------


async def test_a_caller_that_goes_away_leaves_the_dial_to_the_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        first = await it.call_tool("echo", {"text": "first"})
        second = await it.call_tool("echo", {"text": "second"})
        await it.cancel(first)

        answer = await event_of(opened, second)

    assert isinstance(answer, ToolResult)
    assert len(said(log, "pid")) == 1


async def test_when_the_last_caller_goes_away_the_dial_stops_and_its_process_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("silent", log=log)) as opened:
        it = opened.tooling.get("it")
        calls = [await it.call_tool("echo") for _ in range(3)]
        (pid,) = await until(lambda: said(log, "pid"))
        for call in calls:
            await it.cancel(call)

        await until(lambda: not is_alive(pid))
        assert states(opened.trace) == ["dialing", "idle"]


async def test_after_a_dial_that_was_given_up_the_next_use_dials_again(tmp_path: Path) -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        await it.cancel(await it.call_tool("echo"))
        answer = await it.call_tool_blocking("echo", {"text": "again"})

        assert answer.value == "again"
        assert states(opened.trace) == ["dialing", "idle", "dialing", "ready"]


async def test_being_cancelled_a_caller_stops_the_dial(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("silent", log=log)) as opened:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(opened.tooling.get("it").list_tools)
            await until(lambda: said(log, "pid"))
            tasks.cancel_scope.cancel()

        await until(lambda: not is_alive(said(log, "pid")[0]))


async def test_a_caller_that_goes_away_in_the_turn_of_the_servers_answer_stops_the_dial_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shake = Peer.shake_hands
    callers: list[asyncio.Task[object]] = []

    async def shake_and_lose_the_caller(self: Peer, **how: Any) -> None:
        await shake(self, **how)
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        for caller in callers:
            loop.call_soon(caller.cancel)  # whose turn then comes before ours, and ours comes all the same
        callers.clear()
        loop.call_soon(answered.set_result, None)
        await answered

    monkeypatch.setattr(Peer, "shake_hands", shake_and_lose_the_caller)
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        caller = asyncio.create_task(it.list_tools())
        callers.append(caller)
        await asyncio.wait({caller})
        await anyio.wait_all_tasks_blocked()

        assert states(opened.trace) == ["dialing", "idle"]
        await it.list_tools()
        assert states(opened.trace) == ["dialing", "idle", "dialing", "ready"]


async def test_closing_the_host_ends_a_dial_and_its_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("silent", log=log)) as opened:
        await opened.tooling.get("it").call_tool("echo")
        (pid,) = await until(lambda: said(log, "pid"))

    assert not is_alive(pid)


async def test_a_caller_that_still_waits_when_the_host_closes_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    opening = host(odd("silent", log=log))
    opened = await opening.__aenter__()
    errors: list[BaseException] = []

    async def use() -> None:
        with pytest.raises(HostClosed) as caught:
            await opened.tooling.get("it").list_tools()
        errors.append(caught.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(use)
        await until(lambda: said(log, "pid"))
        await opening.__aexit__(None, None, None)
    assert len(errors) == 1


# -- backoff ---------------------------------------------------------------------------------------


async def test_by_default_10_dials_wait_a_doubling_time_of_51_seconds_in_all(
    waits: list[float], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("exit_on_start", log=log, protocol="2025-11-25")) as opened:
        error = await failed(opened)

    assert waits == pytest.approx([0.1 * 2**n for n in range(9)])
    assert sum(waits) == pytest.approx(51.1)
    assert len(said(log, "pid")) == 10
    assert "given up after 10 attempts" in error


@pytest.mark.parametrize(
    ("start_ms", "cap", "expected"),
    [
        (100, 0, []),
        (100, 0.1, []),  # the first wait would reach it
        (100, 0.1001, [0.1]),
        (100, 0.2, [0.1]),
        (1000, 4, [1, 2]),
        (1000, 5, [1, 2, 4]),
    ],
)
async def test_when_the_next_wait_would_reach_the_cap_the_failure_is_final(
    waits: list[float], start_ms: int, cap: float, expected: list[float]
) -> None:
    table = odd("exit_on_start", protocol="2025-11-25")
    tunables = {"tooling_connect_backoff_start_ms": start_ms, "tooling_connect_backoff_cap_secs": cap}
    async with host(table, **tunables) as opened:
        error = await failed(opened)

    assert waits == expected
    assert f"after {len(expected) + 1} attempt" in error


async def test_each_attempt_is_logged_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolpost")
    async with host(odd("exit_on_start"), **TINY) as opened:
        await failed(opened)

    warnings = [each.getMessage() for each in caplog.records if each.name == "toolpost.mcp"]
    assert len(warnings) == 3
    assert re.match(r"tooling 'it': attempt 1 failed, next in 0\.001 s: the server exited", warnings[0])
    assert re.match(r"tooling 'it': attempt 2 failed, next in 0\.002 s: ", warnings[1])
    assert re.match(r"tooling 'it': cannot connect, given up after 3 attempts: ", warnings[2])
    assert all("exited with status 3" in each and "no licence found" in each for each in warnings)


async def test_a_failure_is_not_remembered(tmp_path: Path) -> None:
    log, licence = tmp_path / "log", tmp_path / "server.py"
    async with host(python(licence), **ONCE) as opened:
        await failed(opened)
        licence.write_text(RUN_ODD)
        opened_states = states(opened.trace)
        error = await failed(opened)  # the file is a server now, which misses its arguments

    assert opened_states == ["dialing", "idle"]
    assert "the following arguments are required" in error
    assert not log.exists()


async def test_a_server_that_comes_up_during_the_backoff_is_connected(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import pathlib, runpy, sys\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "tries = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(tries + 1))\n"
        "if tries < 2: sys.exit('not yet')\n"
        "sys.argv[1:] = ['honest']\n"
        f"runpy.run_path({str(OWN / 'odd.py')!r}, run_name='__main__')\n"
    )
    tunables = {"tooling_connect_backoff_start_ms": 1}
    async with host(python(script) | {"protocol": "2025-11-25"}, **tunables) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "up"})

    assert answer.value == "up"
    assert (tmp_path / "count").read_text() == "3"


async def test_a_queued_call_gets_the_failure_as_its_envelope() -> None:
    async with host(odd("exit_on_start"), **ONCE) as opened:
        it = opened.tooling.get("it")
        call = await it.call_tool("echo")
        error = await event_of(opened, call)

        assert not it.is_open(call)
    assert isinstance(error, Error)
    assert "exited with status 3" in error.text


async def test_a_subscription_gets_the_failure_as_its_envelope() -> None:
    async with host(odd("exit_on_start"), **ONCE) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource("odd://one")
        error = await event_of(opened, subscription)

        assert not it.is_open(subscription)
    assert isinstance(error, Error)
    assert "exited with status 3" in error.text


# -- final at once ---------------------------------------------------------------------------------


def table(command: str, **keys: object) -> dict[str, object]:
    return {"kind": "mcp", "transport": "stdio", "command": command, **keys}


async def test_a_command_that_is_not_found_fails_at_once_naming_it_and_the_path(waits: list[float]) -> None:
    async with host(table("no-such-command")) as opened:
        error = await failed(opened)

    assert waits == []
    assert error.startswith("tooling 'it': cannot connect: command 'no-such-command' was not found (PATH=")
    assert os.environ["PATH"] in error


async def test_a_command_that_is_not_executable_fails_at_once(waits: list[float], tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\n")
    async with host(table(str(script))) as opened:
        error = await failed(opened)

    assert waits == []
    assert f"command {str(script)!r} is not executable" in error


async def test_a_command_that_is_no_program_fails_at_once(waits: list[float], tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("neither binary nor script")
    script.chmod(0o755)
    async with host(table(str(script))) as opened:
        error = await failed(opened)

    assert waits == []
    assert "cannot be started" in error


async def test_a_command_below_a_file_is_not_found(waits: list[float], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with host(table(str(tmp_path / "file" / "server"))) as opened:
        error = await failed(opened)

    assert waits == []
    assert f"command {str(tmp_path / 'file' / 'server')!r} was not found" in error


async def test_a_script_whose_interpreter_is_missing_is_not_called_missing_itself(
    waits: list[float], tmp_path: Path
) -> None:
    script = tmp_path / "server"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    async with host(table(str(script))) as opened:
        error = await failed(opened)

    assert waits == []
    assert "interpreter" in error


async def test_a_working_folder_that_does_not_exist_fails_at_once(waits: list[float], tmp_path: Path) -> None:
    async with host(table("true", cwd=str(tmp_path / "gone"))) as opened:
        error = await failed(opened)

    assert waits == []
    assert f"the working directory {str(tmp_path / 'gone')!r} does not exist" in error


async def test_a_working_folder_that_is_a_file_fails_at_once(waits: list[float], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with host(table("true", cwd=str(tmp_path / "file"))) as opened:
        error = await failed(opened)

    assert waits == []
    assert f"working directory {str(tmp_path / 'file')!r}" in error


async def test_the_server_runs_in_its_working_folder(tmp_path: Path) -> None:
    async with host(odd(cwd=str(tmp_path))) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("pid")
        assert Path(f"/proc/{answer.value}/cwd").readlink() == tmp_path


async def test_a_version_that_nobody_knows_fails_at_once(waits: list[float]) -> None:
    async with host(odd("bad_version")) as opened:
        error = await failed(opened)

    assert waits == []
    assert "1999-01-01" in error


async def test_an_answer_to_initialize_that_is_none_fails_at_once(waits: list[float]) -> None:
    async with host(odd("init_malformed")) as opened:
        error = await failed(opened)

    assert waits == []
    assert "answer to initialize is malformed" in error


# -- what a failing start says ---------------------------------------------------------------------


async def test_a_server_that_exits_at_once_is_quoted_with_status_and_last_words() -> None:
    async with host(odd("exit_on_start"), **ONCE) as opened:
        error = await failed(opened)

    assert "the server exited with status 3; its last words on stderr:" in error
    assert "reading the licence" in error
    assert "no licence found" in error
    assert "inherit_env" in error


async def test_a_server_that_exits_over_initialize_is_quoted_too() -> None:
    async with host(odd("exit_on_initialize"), **ONCE) as opened:
        error = await failed(opened)

    assert "exited with status 4" in error
    assert "cannot initialize" in error


async def test_a_server_that_never_answers_the_handshake_is_given_up_and_quoted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("silent", log=log), tooling_connect_timeout_secs=1, **ONCE) as opened:
        error = await failed(opened)
        (pid,) = said(log, "pid")
        assert not is_alive(pid)

    assert "did not answer the handshake within 1 s" in error
    assert "warming up" in error


async def test_initialize_is_never_cancelled_on_the_wire(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = odd("silent", log=log, protocol="2025-11-25")
    async with host(table, tooling_connect_timeout_secs=1, **ONCE) as opened:
        await failed(opened)

    assert [each["method"] for each in received(log)] == ["initialize"]


async def test_a_server_that_refuses_the_handshake_is_quoted() -> None:
    async with host(odd("init_error"), **ONCE) as opened:
        error = await failed(opened)

    assert "refused the handshake: the database is away (code -32603)" in error


# -- the two eras ----------------------------------------------------------------------------------


async def test_a_server_that_names_a_version_is_asked_again_in_that(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("picky", log=log)) as opened:
        await opened.tooling.get("it").list_tools()

    assert [each["method"] for each in received(log)] == ["server/discover", "server/discover", "tools/list"]


async def test_it_is_asked_again_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("picky", log=log, n=1)) as opened:
        await opened.tooling.get("it").list_tools()

    methods = [each["method"] for each in received(log)]
    assert methods[:3] == ["server/discover", "server/discover", "initialize"]


async def test_a_server_that_dies_of_the_probe_is_started_again_without_it(
    waits: list[float], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("discover_exit", log=log)) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "old"})

    assert answer.value == "old"
    assert waits == []
    assert len(said(log, "pid")) == 2


async def test_a_server_that_is_slow_to_die_of_the_probe_is_started_again_too(
    waits: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It boots longer than the probe may take, so it finds `initialize` behind the probe that kills it."""
    monkeypatch.setattr(handshake, "PROBE_SECS", 0.01)
    log = tmp_path / "log"
    async with host(odd("discover_exit", log=log, n=0.5)) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "old"})

    assert answer.value == "old"
    assert waits == []
    assert len(said(log, "pid")) == 2


async def test_a_server_that_is_known_to_be_old_is_not_probed_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("discover_exit", log=log)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        with pytest.raises(Exception, match="connection was lost"):
            await it.call_tool_blocking("crash")
        await it.list_tools()

    assert len(said(log, "pid")) == 3
    assert len(received(log, "server/discover")) == 1


async def test_a_server_that_leaves_the_probe_unanswered_is_initialized_after_a_while(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECS", 0.05)
    log = tmp_path / "log"
    async with host(odd("discover_silent", log=log)) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "old"})

    assert answer.value == "old"
    assert len(said(log, "pid")) == 1
    methods = [each["method"] for each in received(log)]
    assert methods[:2] == ["server/discover", "initialize"]


async def test_a_slow_server_of_the_new_era_is_not_taken_for_an_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECS", 0.01)
    log = tmp_path / "log"
    async with host(odd("slow_discover", log=log, n=0.5)) as opened:
        await opened.tooling.get("it").list_tools()

    methods = [each["method"] for each in received(log)]
    assert methods == ["server/discover", "initialize", "tools/list"]
    (listing,) = received(log, "tools/list")
    assert listing["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


async def test_the_first_version_of_the_protocol_is_spoken() -> None:
    async with host(odd("old_version")) as opened:
        answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "2024"})

    assert answer.value == "2024"


async def test_a_server_of_both_eras_is_spoken_to_in_the_new_one() -> None:
    async with host(changing()) as opened:
        await opened.tooling.get("it").list_tools()
        backend = opened.tooling.get("it")._backend  # pyright: ignore[reportPrivateUsage]: no public way yet
        described = await backend.describe()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]: kind mcp only
        assert described["protocol"] == "2026-07-28"


async def test_a_ping_before_the_handshake_is_answered() -> None:
    async with host(odd("early_ping")) as opened:
        assert (await opened.tooling.get("it").call_tool_blocking("echo", {"text": "pong"})).value == "pong"
