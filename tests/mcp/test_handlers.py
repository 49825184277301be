"""What a server asks of its client, and what it says besides: handlers, log messages, progress."""

from __future__ import annotations

import json
import logging
import re
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.mcp.support import Clock, changing, event_of, host, kill, odd, received, said, until
from toolpost import (
    Handlers,
    OpenHost,
    RequestTimeout,
    ServerError,
    UsageError,
    open_host,
)
from toolpost.model import JsonObject

OLD, NEW = "2025-11-25", "2026-07-28"

both_eras = pytest.mark.parametrize("era", [OLD, NEW])


async def elicitation(params: JsonObject) -> JsonObject:
    assert params["message"] == "who?"
    assert params["requestedSchema"]["properties"] == {"name": {"type": "string"}}
    return {"action": "accept", "content": {"name": "Ada"}}


async def sampling(params: JsonObject) -> JsonObject:
    assert params["maxTokens"] == 7
    (message,) = params["messages"]
    return {
        "role": "assistant",
        "model": "test",
        "content": {"type": "text", "text": f"because ({message['role']})"},
    }


async def roots() -> list[str]:
    return ["file:///srv/data"]


QUESTION: JsonObject = {"role": "user", "content": {"type": "text", "text": "why?"}}
FORM: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}}
REQUESTS: dict[str, JsonObject] = {
    "elicitation": {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": FORM}},
    "sampling": {"method": "sampling/createMessage", "params": {"messages": [QUESTION], "maxTokens": 7}},
    "roots": {"method": "roots/list"},
}


async def asked(what: str, era: str, handlers: Handlers | None) -> JsonObject:
    """What a server gets that asks for something during a call."""
    with anyio.fail_after(20):
        if era == NEW:
            async with host(changing(), handlers) as opened:
                result = await opened.tooling.get("it").call_tool_blocking("ask", {"what": what})
            return json.loads(result.value)
        async with host(odd("asks"), handlers) as opened:
            arguments = {"requests": [REQUESTS[what]]}
            result = await opened.tooling.get("it").call_tool_blocking("ask", arguments)
        (answer,) = json.loads(result.value)
        return answer.get("result") or {"refused": answer["error"]["code"], "why": answer["error"]["message"]}


# -- handlers --------------------------------------------------------------------------------------


@both_eras
async def test_elicitation_is_answered_by_its_handler(era: str) -> None:
    answer = await asked("elicitation", era, Handlers(elicitation=elicitation))

    assert answer["action"] == "accept"
    assert answer["content"] == {"name": "Ada"}


@both_eras
async def test_sampling_is_answered_by_its_handler(era: str) -> None:
    answer = await asked("sampling", era, Handlers(sampling=sampling))

    assert answer["model"] == "test"
    assert answer["content"] == {"type": "text", "text": "because (user)"}


@both_eras
@pytest.mark.parametrize("given", [["file:///srv/data"], roots], ids=["list", "function"])
async def test_roots_are_a_list_or_a_function(era: str, given: Any) -> None:
    answer = await asked("roots", era, Handlers(roots=given))

    assert [each["uri"] for each in answer["roots"]] == ["file:///srv/data"]


@pytest.mark.parametrize("what", ["elicitation", "sampling", "roots"])
async def test_what_has_no_handler_is_refused(what: str) -> None:
    assert "refused" in await asked(what, OLD, None)


@pytest.mark.parametrize("what", ["elicitation", "sampling", "roots"])
async def test_what_has_no_handler_fails_the_call_that_needs_it(what: str) -> None:
    """2026-07-28: the question comes as the call's answer."""
    with pytest.raises(ServerError, match="'it': call_tool 'ask'"):
        await asked(what, NEW, None)


@pytest.mark.parametrize(
    ("handlers", "declared"),
    [
        (Handlers(), set[str]()),
        (Handlers(elicitation=elicitation), {"elicitation"}),
        (Handlers(sampling=sampling), {"sampling"}),
        (Handlers(roots=[]), {"roots"}),
        (
            Handlers(roots=roots, sampling=sampling, elicitation=elicitation),
            {"elicitation", "sampling", "roots"},
        ),
    ],
)
async def test_exactly_what_has_a_handler_is_declared(handlers: Handlers, declared: set[str]) -> None:
    async with host(odd(), handlers) as opened:
        result = await opened.tooling.get("it").call_tool_blocking("client")

    assert set(json.loads(result.value)) == declared


async def test_a_handler_may_refuse_with_a_code_of_its_own() -> None:
    async def refuse(params: JsonObject) -> JsonObject:
        raise ServerError("not today", code=-1)

    assert await asked("elicitation", OLD, Handlers(elicitation=refuse)) == {
        "refused": -1,
        "why": "not today",
    }


async def test_a_handler_that_raises_is_a_refusal_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(params: JsonObject) -> JsonObject:
        raise ValueError("a fault of the handler")

    answer = await asked("elicitation", OLD, Handlers(elicitation=broken))

    assert answer["refused"] == -32603
    assert "a fault of the handler" not in answer["why"]
    assert "a fault of the handler" in caplog.text


async def test_a_handler_that_raises_fails_the_call_in_the_new_era(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(params: JsonObject) -> JsonObject:
        raise ValueError("a fault of the handler")

    with pytest.raises(ServerError, match="'it': call_tool 'ask'"):
        await asked("elicitation", NEW, Handlers(elicitation=broken))
    assert "a fault of the handler" in caplog.text


@both_eras
async def test_roots_that_are_no_file_uris_are_a_refusal(era: str, caplog: pytest.LogCaptureFixture) -> None:
    handlers = Handlers(roots=["/srv/data"])
    if era == NEW:
        with pytest.raises(ServerError, match="Internal error"):
            await asked("roots", era, handlers)
    else:
        assert await asked("roots", era, handlers) == {"refused": -32603, "why": "Internal error"}
    assert "file://" in caplog.text or "uri" in caplog.text


async def test_a_handler_whose_answer_is_none_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    async def wrong(params: JsonObject) -> JsonObject:
        return {"action": "perhaps"}

    answer = await asked("elicitation", OLD, Handlers(elicitation=wrong))

    assert answer == {"refused": -32603, "why": "Internal error"}
    assert "action" in caplog.text


async def test_a_slow_handler_holds_up_no_other_call() -> None:
    asked_ = anyio.Event()

    async def slow(params: JsonObject) -> JsonObject:
        asked_.set()
        await anyio.sleep_forever()
        return {}

    with anyio.fail_after(20):
        async with host(odd("asks"), Handlers(elicitation=slow)) as opened:
            it = opened.tooling.get("it")
            await it.call_tool("ask", {"requests": [REQUESTS["elicitation"]]})
            await asked_.wait()
            assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"


WRONG: dict[str, Any] = {
    "a bare string": "file:///srv/data",
    "bytes": b"file:///srv/data",
    "a number": 7,
    "a table": {"uri": "file:///srv/data"},
    "a list of something else": [{"uri": "file:///srv/data"}],
}


@pytest.mark.parametrize("roots", WRONG.values(), ids=WRONG)
def test_roots_that_are_no_list_of_uris_are_refused_at_once(roots: Any) -> None:
    with pytest.raises(UsageError, match="roots must be a list of URIs, or a function"):
        Handlers(roots=roots)


@pytest.mark.parametrize("roots", [[], ["file:///srv/data"], ("file:///a", "file:///b"), roots, None])
def test_roots_that_are_a_list_a_tuple_or_a_function_are_taken(roots: Any) -> None:
    assert Handlers(roots=roots).roots == roots


@pytest.mark.parametrize("what", ["sampling", "elicitation"])
def test_a_handler_that_is_no_function_is_refused_at_once(what: str) -> None:
    wrong: Any = {what: {"action": "accept"}}
    with pytest.raises(UsageError, match=f"{what} must be a function, not dict"):
        Handlers(**wrong)


async def test_a_bare_string_from_the_function_is_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    async def wrong() -> Any:
        return "file:///srv/data"

    answer = await asked("roots", OLD, Handlers(roots=wrong))

    assert answer == {"refused": -32603, "why": "Internal error"}
    assert "roots must be a list of URIs" in caplog.text


def test_handlers_for_a_tooling_that_is_not_there_are_an_error() -> None:
    with pytest.raises(UsageError, match="elsewhere"):
        open_host({"tooling": {"it": odd()}}, handlers={"elsewhere": Handlers()})


# -- log messages ----------------------------------------------------------------------------------


LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


@both_eras
async def test_log_messages_go_to_the_logger_of_the_server_at_their_levels(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "toolpost.server.it")
    async with host(changing(protocol=era)) as opened:
        for level in LEVELS:
            arguments = {"level": level, "text": f"said {level}", "logger": "engine"}
            await opened.tooling.get("it").call_tool_blocking("log", arguments)

    logged = {
        each.getMessage(): each.levelno
        for each in caplog.records
        if each.name == "toolpost.server.it" and "said" in each.getMessage()
    }
    assert logged == {f"engine: said {name}": level for name, level in LEVELS.items()}


async def test_a_server_of_the_new_era_is_asked_only_for_what_the_logger_takes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "toolpost.server.it")
    async with host(changing(protocol=NEW)) as opened:
        it = opened.tooling.get("it")
        await it.call_tool_blocking("log", {"level": "info", "text": "too quiet"})
        await it.call_tool_blocking("log", {"level": "warning", "text": "loud enough"})

    said = [each.getMessage() for each in caplog.records if each.name == "toolpost.server.it"]
    assert said == ["loud enough"]


async def test_data_that_is_no_text_is_logged_as_json(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolpost.server.it")
    async with host(odd()) as opened:
        params = {"level": "info", "data": {"why": [1, "ä"]}}
        arguments = {"method": "notifications/message", "params": params}
        await opened.tooling.get("it").call_tool_blocking("notify", arguments)

    said = [each.getMessage() for each in caplog.records if each.name == "toolpost.server.it"]
    assert len(said) == 1
    assert "why" in said[0]


# -- progress --------------------------------------------------------------------------------------


async def reported(opened: OpenHost) -> None:
    """Make the running `progress` report once, and wait for the report to be here."""
    await opened.tooling.get("it").call_tool_blocking("step", timeout=1e6)


async def test_progress_restarts_the_clock_of_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with host(changing()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)
        call = await it.call_tool("progress", timeout=1000)
        for _ in range(5):
            await reported(opened)
            await clock.advance(900)
            assert it.is_open(call)
        await it.call_tool_blocking("go", timeout=1e6)

        assert getattr((await opened.recv(20)).event, "value", None) == "progressed"


async def test_without_progress_the_clock_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with host(changing()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)
        await it.call_tool("progress", timeout=1000)
        await reported(opened)
        await clock.advance(900)
        await clock.advance(200)

        said_ = getattr((await opened.recv(20)).event, "text", "")
        # what the machine took in truth is part of it
        assert re.search(
            r"no answer within 11\d\d\.\d s, in which progress restarted the limit of 1000 s", said_
        )


async def test_progress_without_end_is_given_up_after_ten_times_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with host(changing()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)
        call = await it.call_tool("progress", timeout=1000)
        advanced = 0
        while it.is_open(call):
            await reported(opened)
            await clock.advance(900)
            advanced += 900
            assert advanced <= 11_000

        assert advanced > 10_000 - 900
        assert "no answer" in getattr((await opened.recv(20)).event, "text", "")


async def test_progress_of_one_call_does_not_help_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with host(changing()) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)
        waiting = await it.call_tool("wait", timeout=1000)
        running = await it.call_tool("progress", timeout=1000)
        await reported(opened)
        await clock.advance(900)
        await reported(opened)
        await clock.advance(200)

        await until(lambda: not it.is_open(waiting))
        assert it.is_open(running)


@pytest.mark.parametrize("what", ["read", "request"])
async def test_progress_restarts_the_clock_of_any_request(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("reports", log=log, request_timeout_secs=1000)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)

        async def use() -> None:
            if what == "read":
                await it.read_resource("odd://slow")
            else:
                await it.request("odd/slow")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            await until(lambda: received(log, "resources/read") or received(log, "odd/slow"))
            for _ in range(3):
                await it.call_tool_blocking("step", timeout=1e6)
                await clock.advance(900)
            await it.call_tool_blocking("go", timeout=1e6)


async def test_a_calls_limit_is_one_for_its_dial_and_its_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table = odd("slow_discover", log=log, n=0.5)
    async with host(table, tooling_connect_timeout_secs=10_000) as opened:
        it = opened.tooling.get("it")
        clock = Clock(monkeypatch)
        call = await it.call_tool("hold", timeout=1000)
        await until(lambda: said(log, "pid"))
        await clock.advance(900)
        await until(lambda: received(log, "tools/call"))
        assert it.is_open(call)
        await clock.advance(200)

        assert "call_tool 'hold': no answer within 1000 s" in getattr(
            await event_of(opened, call), "text", ""
        )


async def test_a_call_that_is_sent_again_has_no_second_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The connection is found dead as the call is sent, and the next dial takes most of its limit."""
    log = tmp_path / "log"
    table = odd("slow_discover", log=log, n=0.5)
    async with host(table, tooling_connect_timeout_secs=10_000) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        clock = Clock(monkeypatch)
        # the moment cannot be hit from outside
        backend: Any = it._backend  # pyright: ignore[reportPrivateUsage]
        peer = await backend._connection.ready()
        peer._dispatcher._write_now = lambda data: False  # pyright: ignore[reportUnknownLambdaType]
        call = await it.call_tool("hold", timeout=1000)
        kill(said(log, "pid")[0])
        await until(lambda: len(said(log, "pid")) == 2)
        await clock.advance(900)
        await until(lambda: received(log, "tools/call"))
        await clock.advance(200)

        event = await event_of(opened, call)
    assert "call_tool 'hold': no answer within 1000 s" in getattr(event, "text", "")


async def test_a_call_whose_dial_takes_too_long_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("silent", log=log)) as opened:
        with pytest.raises(RequestTimeout, match=r"call_tool 'echo': no connection within 0\.05 s"):
            await opened.tooling.get("it").call_tool_blocking("echo", timeout=0.05)


async def test_a_handler_that_answers_for_a_call_finds_the_context_of_its_caller() -> None:
    """As it would if the caller had awaited it: whose call it is, say, for a log or a tracer."""
    user: ContextVar[str] = ContextVar("user", default="nobody")
    found: list[str] = []

    async def answer(_: JsonObject) -> JsonObject:
        found.append(user.get())
        return {"action": "accept", "content": {"name": "Ada"}}

    async with host(changing(), Handlers(elicitation=answer)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        user.set("Ada")
        await it.call_tool_blocking("ask", {"what": "elicitation"})
        user.set("Grace")
        await event_of(opened, await it.call_tool("ask", {"what": "elicitation"}))

    assert found == ["Ada", "Grace"]
