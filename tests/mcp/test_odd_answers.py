"""What odd servers write in place of an answer, or around it: one call may fail, and the next one works."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import answering, event_of, host, odd, received, said, states, until
from toolpost import (
    ConnectFailed,
    ConnectionLost,
    Error,
    RequestTimeout,
    ResourceUpdated,
    ServerError,
    ToolResult,
)

DONE = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "done"}]}}\n'


def told(method: str, **params: Any) -> str:
    """A notification, as a line."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n"


async def called(*answers: Any, log: Path | None = None, calls: int = 1) -> ToolResult:
    """What a call gives whose answers are these, after as many calls and in bounded time."""
    async with host(answering({"tools/call": [*answers, DONE]}, log=log)) as opened:
        it = opened.tooling.get("it")
        with anyio.fail_after(20):
            results = [await it.call_tool_blocking("echo") for _ in range(calls)]
        assert (await it.call_tool_blocking("echo")).value == "done"
    return results[-1]


# -- lines -----------------------------------------------------------------------------------------


ODD_LINES = {
    "other characters that end lines": DONE.replace("done", "a\u2028b\u2029c\x85d\x7fe"),
    "no jsonrpc": DONE.replace('"jsonrpc": "2.0", ', ""),
    "members that nobody knows": DONE.replace("{", '{"own": [1], "trace": "t", ', 1),
    "an array of messages": f"[{told('notifications/unknown').strip()}, {DONE.strip()}]\n",
    "an object that is no message": '{"id": 3, "status": "ok"}\n{"jsonrpc": "2.0", "ok": true}\n' + DONE,
    "an error for a notification": '{"jsonrpc": "2.0", "error": {"code": -32601, "message": "no"}}\n' + DONE,
    "the same answer again": DONE * 2,
    "a request that is cancelled for us": told("notifications/cancelled", requestId="ID") + DONE,
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
async def test_what_is_odd_about_a_line_does_not_matter(line: str) -> None:
    assert (await called(line.replace('"ID"', "ID"))).value in ("done", "a\u2028b\u2029c\x85d\x7fe")


async def test_an_answer_over_several_lines_is_a_time_out_that_says_what_came() -> None:
    pretty = json.dumps(json.loads(DONE.replace("ID", "7")), indent=1).replace("7", "ID") + "\n"
    async with host(answering({"tools/call": [pretty, DONE]})) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        with pytest.raises(
            RequestTimeout, match=r"no answer within 0\.2 s; 12 lines on stdout made no message"
        ):
            await it.call_tool_blocking("echo", timeout=0.2)
        assert (await it.call_tool_blocking("echo")).value == "done"


async def test_a_server_that_frames_messages_with_headers_is_told_so_at_once(
    tmp_path: Path, waits: list[float]
) -> None:
    log = tmp_path / "log"
    async with host(odd("content_length", log=log)) as opened:
        with (
            anyio.fail_after(20),
            pytest.raises(ConnectFailed, match="Content-Length headers before its messages"),
        ):
            await opened.tooling.get("it").list_tools()

    assert (len(said(log, "pid")), waits) == (1, [])


async def test_the_time_out_of_a_handshake_says_what_came_instead() -> None:
    answers = {each: ["\x1b[1mready\x1b[0m\n"] for each in ("initialize", "server/discover")}
    tunables = {"tooling_connect_timeout_secs": 0.5, "tooling_connect_backoff_cap_secs": 0}
    async with host(answering(answers, protocol="2025-11-25"), **tunables) as opened:
        with pytest.raises(ConnectFailed, match=r"1 line on stdout made no message, the last: .*ready"):
            await opened.tooling.get("it").list_tools()


@pytest.mark.parametrize("stdout_stays_open", [False, True])
async def test_an_answer_whose_line_does_not_end_counts_if_the_server_does(
    stdout_stays_open: bool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("no_final_newline", log=log, n=int(stdout_stays_open))) as opened:
        it = opened.tooling.get("it")
        for number, text in enumerate(("one", "two"), 1):
            assert (await it.call_tool_blocking("echo", {"text": text})).value == text
            await until(lambda number=number: states(opened.trace).count("lost") == number)

    assert len(said(log, "pid")) == 2


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({}, r"answered with a malformed result"),
        ({"result": None}, r"answered with a malformed result"),
        ({"error": "plain"}, r"answered with a malformed error"),
        ({"error": {"code": "E1", "message": "m"}}, r"answered: m \(code -32603\)"),
        ({"error": {"code": -1}}, r"answered: the server gave no message \(code -1\)"),
        ({"result": {"content": []}, "error": {"code": 1, "message": "both"}}, r"answered: both \(code 1\)"),
    ],
    ids=repr,
)
async def test_an_answer_that_is_none_fails_its_call_at_once(answer: Any, problem: str) -> None:
    async with host(answering({"tools/call": [answer, DONE]})) as opened:
        it = opened.tooling.get("it")
        with (
            anyio.fail_after(20),
            pytest.raises(ServerError, match=rf"'it': call_tool 'echo': the server {problem}"),
        ):
            await it.call_tool_blocking("echo")
        assert (await it.call_tool_blocking("echo")).value == "done"


async def test_a_server_that_refuses_the_version_is_quoted_with_those_it_speaks(
    tmp_path: Path, waits: list[float]
) -> None:
    log = tmp_path / "log"
    refusal = {
        "error": {"code": -32602, "message": "Bad version", "data": {"supported": ["2023-01-01", "x"]}}
    }
    async with host(answering({"initialize": [refusal]}, log=log)) as opened:
        with pytest.raises(ConnectFailed, match=r"Bad version; it speaks 2023-01-01, x \(key `protocol`\)"):
            await opened.tooling.get("it").list_tools()

    assert (len(said(log, "pid")), waits) == (1, [])


# -- notifications ---------------------------------------------------------------------------------


async def test_notifications_that_are_odd_or_of_others_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd_ones = [
        told("window/logMessage", type=3, message="hello"),
        told("notifications/resources/updated"),
        told("notifications/message", level="shout", data=None),
        told("notifications/progress", progressToken="nobody", progress=1),
        told("notifications/progress", progressToken=1, progress="much"),
        '{"jsonrpc": "2.0", "method": "notifications/progress"}\n',
        '{"jsonrpc": "2.0", "method": "notifications/message", "params": [1, 2]}\n',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}}\n',
        '{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "id": null}\n',
    ]
    around = "".join(odd_ones)
    assert (await called(around + DONE + around)).value == "done"

    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
    assert "Failed to validate notification: notifications/resources/updated: " in caplog.text
    assert [each for each in caplog.records if each.exc_info or each.exc_text] == [], "no traceback"


CHANGED = told("notifications/tools/list_changed")


async def test_a_storm_of_changed_tools_lists_them_once_more_at_most(tmp_path: Path) -> None:
    log = tmp_path / "log"
    await called(CHANGED * 500 + DONE, log=log)

    assert len(received(log, "tools/list")) <= 2


async def test_a_server_whose_tools_change_with_each_listing_is_not_listed_in_a_circle(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    answers = {"tools/list": ['{"jsonrpc": "2.0", "id": ID, "result": {"tools": []}}\n' + CHANGED]}
    async with host(answering(answers, log=log)) as opened:
        it = opened.tooling.get("it")
        assert await it.list_tools() == []
        for _ in range(3):
            await it.call_tool_blocking("echo")

    assert len(received(log, "tools/list")) <= 1 + 3, "one for each call that has to know them"


async def test_a_list_of_tools_that_changed_as_it_came_judges_no_result(tmp_path: Path) -> None:
    log = tmp_path / "log"
    old: dict[str, Any] = {
        "name": "echo",
        "inputSchema": {"type": "object"},
        "outputSchema": {"required": ["old"]},
    }
    new = old | {"outputSchema": {"required": ["new"]}}
    listed = f'{{"jsonrpc": "2.0", "id": ID, "result": {json.dumps({"tools": [old]})}}}\n'
    answers: dict[str, list[Any]] = {
        "tools/list": [listed + CHANGED, {"result": {"tools": [new]}}],
        "tools/call": [
            {"result": {"content": [], "structuredContent": {"new": 1}}},
            {"result": {"content": [], "structuredContent": {"old": 1}}},
        ],
    }
    async with host(answering(answers, log=log)) as opened:
        it = opened.tooling.get("it")
        assert (await it.list_tools())[0].output_schema == old["outputSchema"]
        assert (await it.call_tool_blocking("echo")).structured_content == {"new": 1}
        with pytest.raises(ServerError, match="'new' is a required property"):
            await it.call_tool_blocking("echo")

    assert len(received(log, "tools/list")) == 2


async def test_a_list_that_changes_while_a_result_waits_for_it_is_asked_for_again_by_the_next(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log"
    new: dict[str, Any] = {
        "name": "echo",
        "inputSchema": {"type": "object"},
        "outputSchema": {"required": ["new"]},
    }
    empty = '{"jsonrpc": "2.0", "id": ID, "result": {"tools": []}}\n'
    answers: dict[str, list[Any]] = {
        "tools/list": [empty + CHANGED, {"result": {"tools": [new]}}],
        "tools/call": [{"result": {"content": [], "structuredContent": {"old": 1}}}],
    }
    async with host(answering(answers, log=log)) as opened:
        it = opened.tooling.get("it")
        assert (await it.call_tool_blocking("echo")).structured_content == {"old": 1}
        with pytest.raises(ServerError, match="'new' is a required property"):
            await it.call_tool_blocking("echo")

    assert len(received(log, "tools/list")) == 2
    assert "results are not checked" not in caplog.text


async def test_a_flood_of_log_messages_holds_no_answer_up() -> None:
    async with host(odd("log_flood", n=5000)) as opened:
        with anyio.fail_after(60):
            answer = await opened.tooling.get("it").call_tool_blocking("echo", {"text": "on"})

    assert answer.value == "on"


# -- subscriptions ---------------------------------------------------------------------------------


async def test_an_update_that_comes_before_the_answer_to_the_subscription_counts() -> None:
    early = told("notifications/resources/updated", uri="odd://one")
    answers = {"resources/subscribe": [early + '{"jsonrpc": "2.0", "id": ID, "result": {}}\n']}
    async with host(answering(answers)) as opened:
        event = await event_of(opened, await opened.tooling.get("it").subscribe_resource("odd://one"))

    assert event == ResourceUpdated(uri="odd://one", content="of odd://one")


async def test_a_server_that_declares_subscriptions_and_has_none_is_asked_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    refusal = {"error": {"code": -32601, "message": "Method not found"}}
    async with host(answering({"resources/subscribe": [refusal]}, log=log)) as opened:
        it = opened.tooling.get("it")
        event = await event_of(opened, await it.subscribe_resource("odd://one"))
        assert (await it.read_resource("odd://one")).content == "of odd://one"

    assert isinstance(event, Error)
    assert "Method not found" in event.text
    assert len(received(log, "resources/subscribe")) == 1


# -- cancelling ------------------------------------------------------------------------------------


async def test_an_error_for_a_call_that_was_cancelled_is_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("takes_cancelled_badly", log=log)) as opened:
        it = opened.tooling.get("it")
        held = await it.call_tool("hold")
        await it.list_tools()
        await it.cancel(held)
        await until(lambda: received(log, "notifications/cancelled"))
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"

        assert opened.try_recv() is None
    assert len(said(log, "pid")) == 1


async def test_a_server_that_dies_of_being_told_is_started_again_by_the_next_use(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("takes_cancelled_badly", log=log, n=1)) as opened:
        it = opened.tooling.get("it")
        other, held = await it.call_tool("hold"), await it.call_tool("hold")
        await it.list_tools()
        await it.cancel(held)
        lost = await event_of(opened, other)
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"

    assert isinstance(lost, Error)
    assert "the connection was lost: the server exited with status 1" in lost.text
    assert len(said(log, "pid")) == 2


async def test_a_server_that_does_one_thing_at_a_time_keeps_up_nobodys_clock(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        sleeper = await it.call_tool("sleep", {"seconds": 0.5})
        with pytest.raises(RequestTimeout):
            await it.call_tool_blocking("echo", timeout=0.1)
        slept = await event_of(opened, sleeper)
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"

    assert isinstance(slept, ToolResult)
    assert len(said(log, "pid")) == 1


# -- any other request -----------------------------------------------------------------------------


async def test_templates_are_listed_as_they_are() -> None:
    patterns = ("mem://item/{id}", "file:///{+path}", "mem://s{?q*}", "mem:/{/a,b}", "mem://{bad")
    templates = [{"uriTemplate": each, "name": each} for each in patterns]
    answers = {"resources/templates/list": [{"result": {"resourceTemplates": templates}}]}
    async with host(answering(answers)) as opened:
        raw = await opened.tooling.get("it").request("resources/templates/list")

    assert raw == {"resourceTemplates": templates}


async def test_a_raw_request_that_is_lost_says_so() -> None:
    async with host(odd()) as opened:
        with pytest.raises(ConnectionLost, match=r"'it': request 'tools/call': .*SIGKILL"):
            await opened.tooling.get("it").request("tools/call", {"name": "crash"})
