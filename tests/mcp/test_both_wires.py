"""The official session over our wires and over the SDK's own: the same behaviour, but for what is told here.

Ours take the SDK's place under its `ClientSession`. A behaviour that a new SDK changes, or one of ours that
drifts away from it, shows as a difference that nobody has written down.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import TypeAdapter

from tests.mcp.support import BOUND_SECS, Table, answering, odd, received, until
from tests.servers.own.odd_http import OddHttp, answer_to, event, odd_http, stream, text
from toolpost.mcp.endpoint import Endpoint
from toolpost.mcp.http import HttpDispatcher
from toolpost.mcp.line import LineDispatcher
from toolpost.mcp.params import McpParams
from toolpost.mcp.process import Spawned

Wire: TypeAlias = Literal["ours", "sdk"]
both = pytest.mark.parametrize("wire", ["ours", "sdk"])
_RAW: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


@asynccontextmanager
async def over_stdio(wire: Wire, table: Table) -> AsyncGenerator[ClientSession]:
    """A session that has not shaken hands, with a server of its own."""
    command, args = table["command"], table["args"]
    with anyio.fail_after(BOUND_SECS):
        if wire == "sdk":
            async with (
                stdio_client(StdioServerParameters(command=command, args=args)) as (reads, writes),
                ClientSession(reads, writes) as session,
            ):
                yield session
            return
        spawned = Spawned("it")
        await spawned.start([command, *args], env=os.environ, cwd=None)
        try:
            async with ClientSession(dispatcher=LineDispatcher(spawned)) as session:
                yield session
        finally:
            await spawned.end()


@asynccontextmanager
async def over_http(wire: Wire, server: OddHttp) -> AsyncGenerator[ClientSession]:
    """A session that has not shaken hands."""
    with anyio.fail_after(BOUND_SECS):
        if wire == "sdk":
            async with (
                streamable_http_client(server.url) as (reads, writes),
                ClientSession(reads, writes) as session,
            ):
                yield session
            return
        endpoint = Endpoint(McpParams(transport="http", url=server.url))
        await endpoint.open()
        dispatcher = HttpDispatcher(endpoint)
        try:
            async with ClientSession(dispatcher=dispatcher) as session:
                yield session
            await dispatcher.delete_session()
        finally:
            await endpoint.aclose()


async def call(
    session: ClientSession, tool: str, *, limit: float | None = None, **arguments: Any
) -> dict[str, Any]:
    """The raw result of a call."""
    params = types.CallToolRequestParams(name=tool, arguments=arguments)
    return await session.send_request(types.CallToolRequest(params=params), _RAW, limit)


def said(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


# -- what is the same ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_session_shakes_hands_lists_calls_and_is_told_of_errors(wire: Wire, transport: str) -> None:
    async def use(session: ClientSession) -> None:
        assert (await session.initialize()).protocol_version == "2025-11-25"
        assert "echo" in [tool.name for tool in (await session.list_tools()).tools]
        assert said(await call(session, "echo", text="ä€🙂")) == "ä€🙂"
        with pytest.raises(MCPError) as caught:
            await session.send_request(
                types.GetPromptRequest(params=types.GetPromptRequestParams(name="x")), _RAW
            )
        assert caught.value.code == -32601
        await session.send_ping()

    if transport == "stdio":
        async with over_stdio(wire, odd()) as session:
            await use(session)
    else:
        async with odd_http() as server, over_http(wire, server) as session:
            await use(session)


@both
async def test_an_answer_on_a_stream_of_events_is_one(wire: Wire) -> None:
    async with odd_http() as server, over_http(wire, server) as session:
        server.on["tools/call"] = stream(
            b": a comment\n\n", lambda message: event(answer_to(message, text("streamed")), id="1")
        )
        await session.initialize()
        assert said(await call(session, "echo")) == "streamed"


@both
async def test_answers_in_another_order_go_each_to_its_request(wire: Wire) -> None:
    results: dict[str, str] = {}

    async with over_stdio(wire, odd()) as session:
        await session.initialize()

        async def hold(value: str) -> None:
            results[value] = said(await call(session, "hold", text=value))

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(hold, str(number))
            await anyio.wait_all_tasks_blocked()
            await call(session, "release")

    assert results == {value: value for value in results}
    assert len(results) == 16


@both
async def test_a_request_past_its_limit_is_a_time_out_and_cancelled_on_the_wire(
    wire: Wire, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with over_stdio(wire, odd(log=log)) as session:
        await session.initialize()
        with pytest.raises(MCPError) as caught:
            await call(session, "hold", limit=0.05)
        await until(lambda: received(log, "notifications/cancelled"))
        await call(session, "release")  # answers late
        assert said(await call(session, "echo", text="own")) == "own"

    assert caught.value.code == REQUEST_TIMEOUT
    (cancelled,) = received(log, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == received(log, "tools/call")[0]["id"]


@both
async def test_a_request_whose_caller_goes_away_is_cancelled_on_the_wire(wire: Wire, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with over_stdio(wire, odd(log=log)) as session:
        await session.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, session, "hold")
            await until(lambda: received(log, "tools/call"))
            tasks.cancel_scope.cancel()
        await until(lambda: received(log, "notifications/cancelled"))
        await session.send_ping()


@both
async def test_requests_of_the_server_are_answered_while_a_call_is_open(wire: Wire) -> None:
    async with over_stdio(wire, odd("asks")) as session:
        await session.initialize()
        asked = [
            {"method": "ping"},
            {"method": "no/such"},
            {"method": "elicitation/create", "params": {"message": 7}},
        ]
        answers: list[Any] = json.loads(said(await call(session, "ask", requests=asked)))

    assert answers[0] == {"jsonrpc": "2.0", "id": "ask-0", "result": {}}
    assert [each["error"]["code"] for each in answers[1:]] == [-32601, -32602]


@both
async def test_progress_reaches_the_request_that_it_is_of(wire: Wire) -> None:
    steps: list[float] = []
    progressed = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        progressed.set()

    async with over_stdio(wire, odd("reports")) as session:
        await session.initialize()

        async def read() -> None:
            params = types.ReadResourceRequestParams(uri="odd://")
            await session.send_request(
                types.ReadResourceRequest(params=params), _RAW, progress_callback=on_progress
            )

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await call(session, "step")
            await progressed.wait()
            await call(session, "go")

    assert steps == [1]


@both
async def test_the_end_of_the_server_fails_what_is_open_and_what_comes_after(wire: Wire) -> None:
    async with over_stdio(wire, odd()) as session:
        await session.initialize()
        for tool in ("crash", "echo"):
            with pytest.raises(MCPError) as caught:
                await call(session, tool)
            assert caught.value.code == CONNECTION_CLOSED


# -- what is not -----------------------------------------------------------------------------------

Outcome: TypeAlias = Literal["answered", "failed", "nothing"]
ANSWER = '{"jsonrpc": "2.0", "id": ID, "result": {"content": []}}\n'
FOREIGN = ANSWER.replace("ID", "123456")

SAME: dict[str, tuple[Any, Outcome]] = {
    "an id as a text": (ANSWER.replace("ID", '"ID"'), "answered"),
    "noise before it": ("banner\n\n7\n{}\n" + ANSWER, "answered"),
    "CRLF": (ANSWER.replace("\n", "\r\n"), "answered"),
    "foreign answers before it": (FOREIGN * 50 + ANSWER, "answered"),
    "the answer twice": (ANSWER * 2, "answered"),
    "a cancellation of our request": (
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ID}}\n' + ANSWER,
        "answered",
    ),
    "an error": ({"error": {"code": 1, "message": "no"}}, "failed"),
    "another id": (FOREIGN, "nothing"),
    "several lines": (ANSWER.replace(", ", ",\n"), "nothing"),
}
DIFFERENT: dict[str, tuple[Any, Outcome, Outcome]] = {
    "an id as a fraction": (ANSWER.replace("ID", "ID.0"), "answered", "nothing"),
    "a byte order mark": ("\ufeff" + ANSWER, "answered", "nothing"),
    "no jsonrpc": (ANSWER.replace('"jsonrpc": "2.0", ', ""), "answered", "nothing"),
    "an array": (f"[{ANSWER.strip()}]\n", "answered", "nothing"),
    "half a surrogate pair": (
        ANSWER.replace("[]", r'[{"type": "text", "text": "\ud83d"}]'),
        "answered",
        "nothing",
    ),
    "a result of null": ({"result": None}, "failed", "nothing"),
    "no result": ({}, "failed", "nothing"),
    "an error that is a text": ({"error": "no"}, "failed", "nothing"),
    "an error whose code is a text": ({"error": {"code": "no", "message": "no"}}, "failed", "nothing"),
}


async def outcome(wire: Wire, answer: Any) -> Outcome:
    """What becomes of a call with this answer. The ping after it is answered after it."""
    found: list[Outcome] = []

    async def ask(session: ClientSession) -> None:
        try:
            await call(session, "echo")
            found.append("answered")
        except MCPError:
            found.append("failed")

    async with over_stdio(wire, answering({"tools/call": [answer]})) as session:
        await session.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, session)
            await anyio.wait_all_tasks_blocked()
            await session.send_ping()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    return found[0] if found else "nothing"


@both
@pytest.mark.parametrize(("answer", "expected"), SAME.values(), ids=SAME)
async def test_an_odd_answer_has_the_same_outcome(wire: Wire, answer: Any, expected: Outcome) -> None:
    assert await outcome(wire, answer) == expected


@pytest.mark.parametrize(("answer", "ours", "theirs"), DIFFERENT.values(), ids=DIFFERENT)
async def test_an_odd_answer_has_an_outcome_of_its_own_on_our_wire(
    answer: Any, ours: Outcome, theirs: Outcome
) -> None:
    assert (await outcome("ours", answer), await outcome("sdk", answer)) == (ours, theirs)


def test_each_difference_is_one() -> None:
    assert all(ours != theirs for _, ours, theirs in DIFFERENT.values())
    assert not SAME.keys() & DIFFERENT.keys()
