"""What a server asks of its client, and what it says besides: handlers, log messages, progress."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import anyio
import pytest

from tests.mcp.support import changing, host, odd, until
from toolpost import ConfigError, Handlers, OpenHost, ServerError, UnknownTooling, open_host
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


def test_handlers_for_a_tooling_that_is_not_there_are_an_error() -> None:
    with pytest.raises((UnknownTooling, ConfigError), match="elsewhere"):
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


class Clock:
    """The loop's clock, which a test can put forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self._ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self._ahead)

    async def advance(self, seconds: float) -> None:
        self._ahead += seconds
        for _ in range(20):  # the timers fire, and what they cancel comes to its end
            await anyio.lowlevel.checkpoint()


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

        assert "no answer within 1000 s" in getattr((await opened.recv(20)).event, "text", "")


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
