"""Servers that do one thing badly, over a real pipe: the rest still works."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import event_of, events_of, host, odd, received, until
from toolpost import Error, RequestTimeout, ServerError, ToolResult
from toolpost.model import JsonObject


async def echoed(table: dict[str, Any], text: str = "ä€🙂") -> str:
    """What `echo` gives on a server, in bounded time."""
    with anyio.fail_after(20):
        async with host(table) as opened:
            return (await opened.tooling.get("it").call_tool_blocking("echo", {"text": text})).value


# -- the wire --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode",
    ["noise", "noise_without_end", "string_ids", "float_ids", "stderr_flood", "stderr_without_newline"],
)
async def test_what_is_odd_on_the_wire_does_not_matter(mode: str) -> None:
    assert await echoed(odd(mode)) == "ä€🙂"


async def test_of_two_answers_and_many_foreign_ones_the_right_one_is_taken() -> None:
    assert await echoed(odd("duplicate_answers"), "right") == "right"


async def test_an_answer_of_20_mib_comes_whole_and_the_next_call_works() -> None:
    size = 20 * 1024 * 1024
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        assert len((await it.call_tool_blocking("big", {"size": size})).value) == size
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"


async def test_a_request_larger_than_the_pipe_is_written_whole() -> None:
    text = "x" * 5_000_000
    assert await echoed(odd(), text) == text


async def test_an_answer_under_a_wrong_id_is_a_time_out_that_says_so() -> None:
    async with host(odd("zero_ids")) as opened:
        await opened.tooling.get("it").list_tools()  # a call's limit holds for its dial too
        with pytest.raises(RequestTimeout, match=r"1 answers? came under"):
            await opened.tooling.get("it").call_tool_blocking("echo", timeout=0.2)


@pytest.mark.parametrize(
    "answer",
    [{"result": None}, {"result": [7]}, {"result": "done"}, {"error": 1}],
    ids=json.dumps,
)
async def test_a_malformed_answer_fails_that_call_at_once_and_no_other(answer: dict[str, Any]) -> None:
    async with host(odd("malformed")) as opened:
        it = opened.tooling.get("it")
        with pytest.raises(ServerError, match=r"'it': call_tool 'echo': .*malformed"):
            await it.call_tool_blocking("echo", {"answer": answer})
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"


async def test_stderr_is_logged_by_line_under_the_name_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "toolpost.server")
    async with host(odd("silent", protocol="2025-11-25"), tooling_connect_timeout_secs=0.5) as opened:
        call = await opened.tooling.get("it").call_tool("echo")
        await until(lambda: "warming up" in caplog.text)
        await opened.tooling.get("it").cancel(call)

    (record,) = [each for each in caplog.records if each.getMessage() == "warming up"]
    assert record.name == "toolpost.server.it"


async def test_stderr_without_a_line_end_is_logged_in_bounded_parts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolpost.server")
    await echoed(odd("stderr_without_newline"))

    said = [each.getMessage() for each in caplog.records if each.name == "toolpost.server.it"]
    assert max(map(len, said)) <= 1000
    assert "".join(said).count("flood") >= 37_000


# -- requests of the server ------------------------------------------------------------------------


async def asked(*requests: dict[str, Any], cancel: list[int] | None = None) -> list[dict[str, Any]]:
    """What a host without handlers answers to requests of its server."""
    with anyio.fail_after(20):
        async with host(odd("asks")) as opened:
            arguments = {"requests": list(requests), "cancel": cancel or []}
            result = await opened.tooling.get("it").call_tool_blocking("ask", arguments)
    return json.loads(result.value)


async def test_a_ping_is_answered_also_while_a_call_is_open() -> None:
    assert await asked({"method": "ping"}) == [{"jsonrpc": "2.0", "id": "ask-0", "result": {}}]


async def test_a_method_that_nobody_knows_is_refused_as_such() -> None:
    (answer,) = await asked({"method": "no/such/method", "params": {}})
    assert answer["error"]["code"] == -32601


async def test_what_has_no_handler_is_refused_at_once() -> None:
    message = {"role": "user", "content": {"type": "text", "text": "why?"}}
    form: dict[str, Any] = {"type": "object", "properties": {}}
    answers = await asked(
        {"method": "roots/list"},
        {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 1}},
        {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": form}},
    )
    assert [each["error"]["code"] for each in answers] == [-32600] * 3


async def test_what_has_no_handler_is_not_declared() -> None:
    async with host(odd()) as opened:
        declared = await opened.tooling.get("it").call_tool_blocking("client")

    assert json.loads(declared.value) == {}


async def test_malformed_parameters_are_refused() -> None:
    (answer,) = await asked({"method": "elicitation/create", "params": {"message": 7}})
    assert answer["error"]["code"] == -32602


async def test_several_requests_at_once_are_all_answered() -> None:
    assert len(await asked(*[{"method": "ping"}] * 20)) == 20


async def test_a_server_that_asks_without_end_and_does_not_read_is_called_as_ever() -> None:
    async with host(odd("floods", n=50_000)) as opened:
        it = opened.tooling.get("it")
        for said in ("one", "two"):
            with anyio.fail_after(60):
                assert (await it.call_tool_blocking("echo", {"text": said})).value == said


# -- raw requests ----------------------------------------------------------------------------------


PARAMS: list[JsonObject | None] = [
    None,
    {},
    {"name": "greet", "arguments": {"who": "Ada"}, "cursor": None, "own": [1, {"deep": True}]},
    {"_meta": {"com.example/key": 1}, "name": "greet"},
]


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("params", PARAMS, ids=repr)
async def test_the_params_of_a_raw_request_reach_the_server(
    params: JsonObject | None, protocol: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("modern", log=log, protocol=protocol)) as opened:
        with pytest.raises(ServerError, match="Method not found"):
            await opened.tooling.get("it").request("odd/unknown", params)

    (sent,) = received(log, "odd/unknown")
    came: JsonObject = sent.get("params") or {}
    meta = came.pop("_meta", {})
    given = dict(params or {})
    assert given.pop("_meta", {}).items() <= meta.items()
    assert came == given


# -- cancelling, time-outs -------------------------------------------------------------------------


async def test_calls_that_are_answered_in_another_order_find_their_callers() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        ids = {await it.call_tool("hold", {"text": str(n)}): str(n) for n in range(32)}
        await it.call_tool_blocking("release")
        answers = await events_of(opened, ids)

    assert {id: getattr(answer, "value", None) for id, answer in answers.items()} == ids


async def test_a_call_past_its_limit_is_a_time_out_and_cancelled_on_the_wire(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        with pytest.raises(RequestTimeout, match=r"'it': call_tool 'hold': no answer within 0\.05 s"):
            await it.call_tool_blocking("hold", timeout=0.05)
        (cancelled,) = await until(lambda: received(log, "notifications/cancelled"))
        (sent,) = received(log, "tools/call")
        assert cancelled["params"]["requestId"] == sent["id"]

        await it.call_tool_blocking("release")  # answers late
        assert (await it.call_tool_blocking("echo", {"text": "own"})).value == "own"


async def test_late_answers_of_calls_that_were_given_up_are_not_told_as_foreign() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        for _ in range(3):
            with pytest.raises(RequestTimeout):
                await it.call_tool_blocking("hold", timeout=0.05)
        await it.call_tool_blocking("release")  # answers late
        with pytest.raises(RequestTimeout) as caught:
            await it.call_tool_blocking("hold", timeout=0.05)

    assert "came under" not in str(caught.value)


async def test_a_queued_call_past_its_limit_gets_the_error_as_its_envelope() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        event = await event_of(opened, await it.call_tool("hold", timeout=0.05))

    assert isinstance(event, Error)
    assert "no answer within 0.05 s" in event.text


async def test_every_call_to_a_server_that_reads_no_more_runs_out_at_its_limit() -> None:
    """Most have not been written by then: they wait for their turn, each for the one before."""
    with anyio.fail_after(20):
        async with host(odd(request_timeout_secs=0.3)) as opened:
            it = opened.tooling.get("it")
            await it.list_tools()
            await it.call_tool("sleep", {"seconds": 60})
            calls = [await it.call_tool("echo", {"text": "x" * 50_000}) for _ in range(20)]
            events = await events_of(opened, calls)

    assert len(events) == 20
    for event in events.values():
        assert isinstance(event, Error)
        assert "no answer within 0.3 s" in event.text


async def test_the_limit_of_the_config_holds_for_every_request() -> None:
    async with host(odd(request_timeout_secs=0.1)) as opened:
        it = opened.tooling.get("it")
        with pytest.raises(RequestTimeout, match=r"within 0\.1 s"):
            await it.call_tool_blocking("hold")


async def test_a_limit_of_0_is_none() -> None:
    async with host(odd(request_timeout_secs=0)) as opened:
        it = opened.tooling.get("it")
        held = await it.call_tool("hold", {"text": "at last"})
        await it.call_tool_blocking("release")
        answer = await event_of(opened, held)

    assert isinstance(answer, ToolResult)
    assert answer.value == "at last"


async def test_an_answer_to_a_cancelled_call_is_given_to_nobody() -> None:
    async with host(odd()) as opened:
        it = opened.tooling.get("it")
        call = await it.call_tool("hold", {"text": "late"})
        await it.list_tools()
        await it.cancel(call)
        await it.call_tool_blocking("release")

        assert opened.try_recv() is None
