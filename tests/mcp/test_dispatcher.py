"""The wire under the official session: answers to requests, requests of the server, and what is neither."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import dispatcher as sdk
from mcp.shared.exceptions import MCPError

from tests.mcp.support import start_task
from toolpost.mcp import dispatcher
from toolpost.mcp.dispatcher import LineClosed
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.line import MAX_JOINED_BYTES, LineDispatcher
from toolpost.mcp.peer import Peer
from toolpost.mcp.process import LineBuffer


class Line:
    """A line whose other end is the test."""

    def __init__(self) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self.sent: list[Any] = []
        self.writes = 0
        self.broken = False
        self.fills_after = math.inf
        """After so many more messages it takes no more."""
        self.on_line: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        if self.broken:
            raise BrokenPipeError
        assert data.endswith(b"\n")
        self.writes += 1
        for line in data.splitlines():
            self.sent.append(json.loads(line))
            self.fills_after -= 1
        if self.fills_after <= 0:
            self.writable.clear()

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.on_line, self.on_end = on_line, on_end

    def take(self, message: Any) -> None:
        self.on_line(message if isinstance(message, bytes) else json.dumps(message).encode())


class Wire:
    """A dispatcher at work, its line, and what the session above it was told."""

    def __init__(self) -> None:
        self.line = Line()
        self.dispatcher = LineDispatcher(self.line)
        self.notified: list[tuple[str, Any]] = []
        self.serve: Callable[[Any, str, Any], Awaitable[dict[str, Any]]] = self._unserved

    async def _unserved(self, context: Any, method: str, params: Any) -> dict[str, Any]:
        raise MCPError(-32601, "no such method")

    async def on_request(self, context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        return await self.serve(context, method, params)

    async def on_notify(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "slow":
            await anyio.lowlevel.checkpoint()
        self.notified.append((method, params))
        if method == "raise":
            raise ValueError("a fault of the session")

    async def answered(self, answer: Callable[[Any], Any], **options: Any) -> Any:
        """The outcome of one request whose answer is made of its id."""
        outcome: list[Any] = []

        async def ask() -> None:
            try:
                outcome.append(await self.dispatcher.send_raw_request("ask", {"a": 1}, options or None))  # pyright: ignore[reportArgumentType]: the options of one test
            except MCPError as error:
                outcome.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await blocked()
            self.line.take(answer(self.line.sent[-1]["id"]))
        return outcome[0]


async def blocked() -> None:
    """All tasks wait, and what they have written has gone out."""
    await anyio.wait_all_tasks_blocked()
    await asyncio.sleep(0)
    await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def wire() -> AsyncGenerator[Wire]:
    made = Wire()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.dispatcher.run, made.on_request, made.on_notify)
            yield made
            made.line.on_end()


def result(id: object, value: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {"value": value}}


# -- answers ---------------------------------------------------------------------------------------


async def test_a_request_is_one_line_of_json_rpc() -> None:
    async with wire() as it:
        await it.answered(result)

    assert it.line.sent == [{"jsonrpc": "2.0", "id": 1, "method": "ask", "params": {"a": 1}}]


@pytest.mark.parametrize("form", [int, str, float])
async def test_an_id_may_come_back_as_number_string_or_fraction(form: Callable[[int], object]) -> None:
    async with wire() as it:
        assert await it.answered(lambda id: result(form(id), 7)) == {"value": 7}


async def test_answers_in_any_order_go_each_to_its_request() -> None:
    outcomes: dict[int, Any] = {}
    async with wire() as it:

        async def ask(number: int) -> None:
            outcomes[number] = await it.dispatcher.send_raw_request("ask", {"n": number})

        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(ask, number)
            await blocked()
            for request in reversed(it.line.sent):
                it.line.take(result(request["id"], request["params"]["n"]))

    assert outcomes == {number: {"value": number} for number in range(50)}


@pytest.mark.parametrize("id", [99, "99", 99.0, 1.5, None, True, [1], {"1": 1}], ids=repr)
async def test_an_answer_that_nobody_waits_for_is_passed_over(id: object) -> None:
    async with wire() as it:

        def both(right: int) -> Any:
            it.line.take(result(id, "foreign"))
            return result(right, "own")

        assert await it.answered(both) == {"value": "own"}


async def test_of_two_answers_the_first_counts() -> None:
    async with wire() as it:

        def twice(id: int) -> Any:
            it.line.take(result(id, "first"))
            return result(id, "second")

        assert await it.answered(twice) == {"value": "first"}
        assert await it.answered(lambda id: result(id, "third")) == {"value": "third"}


@pytest.mark.parametrize(
    "answer",
    [
        {"result": None},
        {"result": [1]},
        {"result": "text"},
        {"error": None},
        {"error": "text"},
        {"error": []},
        {},
    ],
)
async def test_a_malformed_answer_fails_its_request_at_once(answer: dict[str, Any]) -> None:
    async with wire() as it:
        outcome = await it.answered(lambda id: {"jsonrpc": "2.0", "id": id, **answer})

    assert isinstance(outcome, MCPError)
    assert "malformed" in outcome.message


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ({"code": -5, "message": "no"}, -5, "no"),
        ({"code": "x", "message": "no"}, -32603, "no"),
        ({"code": -5}, -5, "the server gave no message"),
        ({"message": 7}, -32603, "the server gave no message"),
        ({"code": True, "message": "no"}, -32603, "no"),
    ],
)
async def test_an_error_keeps_of_code_and_message_what_is_usable(
    error: dict[str, Any], code: int, message: str
) -> None:
    async with wire() as it:
        outcome = await it.answered(lambda id: {"jsonrpc": "2.0", "id": id, "error": error})

    assert isinstance(outcome, MCPError)
    assert (outcome.code, outcome.message) == (code, message)


async def test_a_result_with_an_empty_error_beside_it_is_a_result() -> None:
    async with wire() as it:
        assert await it.answered(lambda id: result(id, 1) | {"error": None}) == {"value": 1}


async def test_an_answer_to_several_requests_in_one_array_is_taken_apart() -> None:
    async with wire() as it:
        assert await it.answered(lambda id: [result(77), result(id, "mine")]) == {"value": "mine"}


@pytest.mark.parametrize("text", ["\ud83d", "a\udc00b"])
async def test_half_a_surrogate_pair_in_an_answer_is_replaced(text: str) -> None:
    async with wire() as it:
        outcome = await it.answered(lambda id: json.dumps(result(id, text)).encode())

    outcome["value"].encode()  # can be written again
    assert "\ufffd" in outcome["value"]


async def test_nan_in_an_answer_is_taken() -> None:
    async with wire() as it:
        outcome = await it.answered(lambda id: b'{"id": %d, "result": {"value": NaN}}' % id)

    assert math.isnan(outcome["value"])


async def test_half_a_surrogate_pair_in_a_request_is_sent_escaped() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", {"text": "\ud83d"})
        await blocked()
        tasks.cancel_scope.cancel()

    assert it.line.sent[0]["params"] == {"text": "\ud83d"}


@given(st.lists(st.integers(0)))
def test_an_answer_may_come_in_any_pieces(points: list[int]) -> None:
    async def run() -> None:
        async with wire() as it:
            buffer = LineBuffer()

            def in_pieces(id: int) -> bytes:
                data = json.dumps(result(id, "ä€🙂"), ensure_ascii=False).encode()
                cuts = [0, *sorted(point % len(data) for point in points), len(data)]
                for start, end in itertools.pairwise(cuts):
                    assert buffer.feed(data[start:end]) == []
                return buffer.feed(b"\n")[0]

            assert await it.answered(in_pieces) == {"value": "ä€🙂"}

    asyncio.run(run())


# -- what is no message ----------------------------------------------------------------------------

NO_JSON = [b"banner", b"\xff\xfe", b"{", b"[" * 100_000, b"\x00"]
NO_MESSAGE = [b"17", b'"text"', b"null", b"{}", b"[1]", b'{"jsonrpc": "2.0"}', b'{"id": 1}', b'{"method": 7}']
NOISE = NO_JSON + NO_MESSAGE


@pytest.mark.parametrize("line", NOISE, ids=range(len(NOISE)))
async def test_a_line_that_is_no_message_is_logged_and_skipped(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with wire() as it:

        def after_noise(id: int) -> Any:
            it.line.take(line)
            return result(id, "good")

        assert await it.answered(after_noise) == {"value": "good"}

    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert len(warnings[0].getMessage()) < 500


@pytest.mark.parametrize("line", [b"", b"\r", b"  \t ", b"\xef\xbb\xbf"])
async def test_an_empty_line_is_skipped_in_silence(line: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with wire() as it:
        it.line.take(line)

    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_a_byte_order_mark_and_a_carriage_return_are_no_part_of_a_message() -> None:
    async with wire() as it:
        dressed = await it.answered(lambda id: b"\xef\xbb\xbf" + json.dumps(result(id, 1)).encode() + b"\r")

    assert dressed == {"value": 1}


async def test_of_much_noise_little_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with wire() as it:
        for number in range(5000):
            it.line.take(b"noise %d" % number)

    warnings = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 10
    assert "the rest is skipped in silence" in warnings[-1]


# -- giving up -------------------------------------------------------------------------------------


async def test_a_request_that_is_given_up_is_cancelled_on_the_wire() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", None)
        await blocked()
        tasks.cancel_scope.cancel()

    asked, cancelled = it.line.sent
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == asked["id"]
    assert "id" not in cancelled


async def test_a_request_that_must_not_be_cancelled_is_not() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        options: sdk.CallOptions = {"cancel_on_abandon": False}
        tasks.start_soon(it.dispatcher.send_raw_request, "initialize", None, options)
        await blocked()
        tasks.cancel_scope.cancel()

    assert [each["method"] for each in it.line.sent] == ["initialize"]


async def test_a_request_that_was_never_written_is_not_cancelled_on_the_wire() -> None:
    async with wire() as it:
        it.line.writable.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.dispatcher.send_raw_request, "ask", None)
            await blocked()
            tasks.cancel_scope.cancel()
        it.line.writable.set()

    assert it.line.sent == []


async def test_a_request_past_its_limit_is_a_time_out_and_cancelled() -> None:
    async with wire() as it:
        with pytest.raises(MCPError) as caught:
            await it.dispatcher.send_raw_request("ask", None, {"timeout": 0.001})

    assert caught.value.code == -32001
    assert [each["method"] for each in it.line.sent] == ["ask", "notifications/cancelled"]


async def test_an_answer_that_comes_after_its_request_was_given_up_is_passed_over() -> None:
    async with wire() as it:
        with pytest.raises(MCPError):
            await it.dispatcher.send_raw_request("ask", None, {"timeout": 0.001})
        it.line.take(result(it.line.sent[0]["id"], "late"))

        assert await it.answered(lambda id: result(id, "own")) == {"value": "own"}


async def test_late_answers_are_not_counted_as_foreign() -> None:
    async with wire() as it:
        for _ in range(3):
            with pytest.raises(MCPError):
                await it.dispatcher.send_raw_request("ask", None, {"timeout": 0})
        async with anyio.create_task_group() as tasks:
            options: sdk.CallOptions = {"request_id": "own"}
            tasks.start_soon(it.dispatcher.send_raw_request, "ask", None, options)
            await blocked()
            tasks.cancel_scope.cancel()
        ids = [each["id"] for each in it.line.sent if each["method"] == "ask"]
        for id in ids:
            it.line.take(result(id, "late"))
        it.line.take(result(str(ids[0]), "late, and as a string"))

        assert len(ids) == 4
        assert it.dispatcher.unmatched == 0
        it.line.take(result(99, "foreign"))
        assert it.dispatcher.unmatched == 1


async def test_of_the_requests_that_were_given_up_the_last_are_remembered() -> None:
    async with wire() as it:
        for _ in range(300):
            with pytest.raises(MCPError):
                await it.dispatcher.send_raw_request("ask", None, {"timeout": 0})
        for id in (45, 44):
            it.line.take(result(id, "late"))

    assert it.dispatcher.unmatched == 1


# -- order and pressure ----------------------------------------------------------------------------


async def test_while_the_line_is_full_requests_wait_and_keep_their_order() -> None:
    """Also where it takes but a few at a time, and while newcomers find it open just then."""
    async with wire() as it, anyio.create_task_group() as tasks:
        it.line.writable.clear()
        for number in range(5):
            tasks.start_soon(it.dispatcher.send_raw_request, "ask", {"n": number})
        await blocked()
        assert it.line.sent == []

        for number in range(5, 10):
            it.line.fills_after = 2
            it.line.writable.set()
            await asyncio.create_task(step(it, tasks, number))
            await blocked()
        it.line.fills_after = math.inf
        it.line.writable.set()
        await blocked()

        assert [each["params"]["n"] for each in it.line.sent] == list(range(10))
        tasks.cancel_scope.cancel()


async def step(it: Wire, tasks: Any, number: int) -> None:
    tasks.start_soon(it.dispatcher.send_raw_request, "ask", {"n": number})


async def ask_at_once(it: Wire, count: int) -> list[asyncio.Task[dict[str, Any]]]:
    """So many requests in one turn of the loop."""
    asked = [
        asyncio.create_task(it.dispatcher.send_raw_request("ask", {"n": number})) for number in range(count)
    ]
    await asyncio.sleep(0)
    return asked


async def test_what_is_asked_in_one_turn_goes_out_together_in_its_order() -> None:
    async with wire() as it:
        asked = await ask_at_once(it, 10)
        await it.dispatcher.notify("told", None)
        await blocked()
        for each in it.line.sent[:10]:
            it.line.take(result(each["id"], each["params"]["n"]))

        assert [await each for each in asked] == [{"value": number} for number in range(10)]
    assert [each["method"] for each in it.line.sent] == ["ask"] * 10 + ["told"]
    assert it.line.writes == 2  # the first, which was alone, was not kept waiting


async def test_more_than_a_pipe_holds_is_not_kept_back() -> None:
    async with wire() as it:
        it.line.fills_after = 6
        text = "x" * (MAX_JOINED_BYTES // 4)
        asked = [
            asyncio.create_task(it.dispatcher.send_raw_request("ask", {"n": number, "text": text}))
            for number in range(20)
        ]
        await blocked()

        assert len(it.line.sent) < 12, "those that wait for the line are not written to it"
        for each in asked:
            each.cancel()


async def test_a_request_that_is_given_up_before_it_went_out_is_cancelled_behind_it() -> None:
    async with wire() as it:
        asked = await ask_at_once(it, 2)
        asked[1].cancel()
        await blocked()

        methods = [each["method"] for each in it.line.sent]
        assert methods == ["ask", "ask", "notifications/cancelled"]
        asked[0].cancel()


async def test_what_did_not_go_out_when_the_line_broke_was_never_written() -> None:
    async with wire() as it:
        asked = await ask_at_once(it, 3)
        it.line.broken = True
        await asyncio.wait(asked[1:])
        it.line.on_end()
        await asyncio.wait(asked)

    written = [error.written for each in asked if isinstance(error := each.exception(), LineClosed)]
    assert written == [True, False, False]


async def test_what_was_to_go_out_when_the_line_ends_goes_out_before() -> None:
    async with wire() as it:
        asked = await ask_at_once(it, 3)
        it.line.on_end()
        await asyncio.wait(asked)

    written = [error.written for each in asked if isinstance(error := each.exception(), LineClosed)]
    assert written == [True, True, True]
    assert len(it.line.sent) == 3


async def test_a_newcomer_does_not_overtake_those_who_waited_for_the_line() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        it.line.writable.clear()
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", {"n": 0})
        await blocked()

        it.line.writable.set()  # the one that waits has not had its turn yet
        with anyio.move_on_after(0):
            await it.dispatcher.send_raw_request("ask", {"n": 1})
        await blocked()

        assert [each["params"]["n"] for each in it.line.sent if each["method"] == "ask"][:1] == [0]
        tasks.cancel_scope.cancel()


async def test_a_waiting_request_that_is_given_up_holds_nobody_up() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        it.line.writable.clear()
        async with anyio.create_task_group() as given_up:
            given_up.start_soon(it.dispatcher.send_raw_request, "ask", {"n": 0})
            await blocked()
            given_up.cancel_scope.cancel()
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", {"n": 1})
        it.line.writable.set()
        await blocked()

        assert [each["params"]["n"] for each in it.line.sent] == [1]
        tasks.cancel_scope.cancel()


# -- the end ---------------------------------------------------------------------------------------


async def test_the_end_of_the_line_fails_every_open_request() -> None:
    outcomes: list[bool] = []
    async with wire() as it:

        async def ask() -> None:
            try:
                await it.dispatcher.send_raw_request("ask", None)
            except LineClosed as error:
                outcomes.append(error.written)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await blocked()
            it.line.writable.clear()
            tasks.start_soon(ask)  # waits for the line, so it is not written
            await blocked()
            it.line.on_end()
            it.line.writable.set()

    assert sorted(outcomes) == [False, True, True, True]


async def test_after_the_end_a_request_fails_as_never_written() -> None:
    async with wire() as it:
        it.line.on_end()
        with pytest.raises(LineClosed) as caught:
            await it.dispatcher.send_raw_request("ask", None)

    assert caught.value.written is False


async def test_on_a_broken_line_a_request_fails_as_never_written_and_a_notification_is_dropped() -> None:
    async with wire() as it:
        it.line.broken = True
        with pytest.raises(LineClosed) as caught:
            await it.dispatcher.send_raw_request("ask", None)
        await it.dispatcher.notify("notifications/x", None)

    assert caught.value.written is False


# -- from the server -------------------------------------------------------------------------------


async def test_a_request_of_the_server_is_answered_under_its_id() -> None:
    async with wire() as it:

        async def serve(context: Any, method: str, params: Any) -> dict[str, Any]:
            return {"method": method, "params": params}

        it.serve = serve
        for id in (7, "seven"):
            it.line.take({"jsonrpc": "2.0", "id": id, "method": "roots/list", "params": {"a": 1}})
        await blocked()

    said = {"method": "roots/list", "params": {"a": 1}}
    assert it.line.sent == [{"jsonrpc": "2.0", "id": id, "result": said} for id in (7, "seven")]


async def test_an_error_of_the_session_is_the_answer() -> None:
    async with wire() as it:
        it.line.take({"jsonrpc": "2.0", "id": 7, "method": "unknown"})
        await blocked()

    assert it.line.sent == [
        {"jsonrpc": "2.0", "id": 7, "error": {"code": -32601, "message": "no such method"}}
    ]


async def test_a_fault_in_serving_is_answered_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    async with wire() as it:

        async def serve(context: Any, method: str, params: Any) -> dict[str, Any]:
            raise RuntimeError("inner workings")

        it.serve = serve
        it.line.take({"jsonrpc": "2.0", "id": 7, "method": "x"})
        await blocked()

    assert it.line.sent[0]["error"] == {"code": -32603, "message": "Internal error"}
    assert "inner workings" in caplog.text


async def test_a_request_that_the_server_cancels_is_not_answered() -> None:
    ended: list[str] = []
    async with wire() as it:

        async def serve(context: Any, method: str, params: Any) -> dict[str, Any]:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(method)
            return {}

        it.serve = serve
        it.line.take({"jsonrpc": "2.0", "id": "7", "method": "slow"})
        await blocked()
        it.line.take({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}})
        await blocked()

    assert ended == ["slow"]
    assert it.line.sent == []


async def test_a_request_that_is_cancelled_before_its_task_started_is_not_answered() -> None:
    served: list[str] = []
    async with wire() as it:

        async def serve(context: Any, method: str, params: Any) -> dict[str, Any]:
            await anyio.lowlevel.checkpoint()
            served.append(method)
            return {}

        it.serve = serve
        it.line.take({"jsonrpc": "2.0", "id": 7, "method": "slow"})
        it.line.take({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        await blocked()

    assert served == []
    assert it.line.sent == []


def ping(id: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


async def pong(context: Any, method: str, params: Any) -> dict[str, Any]:
    return {}


async def test_a_server_that_does_not_read_is_answered_when_it_does() -> None:
    async with wire() as it:
        it.serve = pong
        it.line.writable.clear()
        for id in range(3):
            it.line.take(ping(id))
        await blocked()
        assert it.line.sent == []

        it.line.fills_after = 2
        it.line.writable.set()
        await blocked()
        assert [each["id"] for each in it.line.sent] == [0, 1]

        it.line.fills_after = math.inf
        it.line.writable.set()
        await blocked()
    assert it.line.sent == [{"jsonrpc": "2.0", "id": id, "result": {}} for id in range(3)]


@pytest.mark.parametrize("ids", [range(5000), [7] * 5000], ids=["many ids", "one id"])
async def test_of_a_server_that_asks_and_does_not_read_only_so_many_requests_are_held(
    ids: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    served = 0

    async def serve(context: Any, method: str, params: Any) -> dict[str, Any]:
        nonlocal served
        served += 1
        return {}

    async with wire() as it:
        it.serve = serve
        it.line.writable.clear()
        for id in ids:
            it.line.take(ping(id))
        await blocked()
        assert served == dispatcher.MAX_SERVED
        assert it.line.sent == []

        it.line.writable.set()
        await blocked()
        assert len(it.line.sent) == dispatcher.MAX_SERVED

        it.line.take(ping("after"))  # there is room again
        await blocked()
        assert it.line.sent[-1] == {"jsonrpc": "2.0", "id": "after", "result": {}}

    assert [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING] == [
        "the server has 1024 requests open; further ones are refused"
    ]


async def test_a_request_too_many_of_a_server_that_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "MAX_SERVED", 2)
    async with wire() as it:

        async def never(context: Any, method: str, params: Any) -> dict[str, Any]:
            await anyio.sleep_forever()
            return {}

        it.serve = never
        for id in range(3):
            it.line.take(ping(id))
        await blocked()
        assert [(each["id"], each["error"]["code"]) for each in it.line.sent] == [(2, -32000)]

        it.line.take({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
        await blocked()
        it.serve = pong
        it.line.take(ping(3))
        await blocked()

    assert it.line.sent[1:] == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


async def test_a_cancelled_notification_cannot_cancel_our_own_request() -> None:
    async with wire() as it:

        def first_cancelled(id: int) -> Any:
            params = {"requestId": id}
            it.line.take({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            return result(id, "all the same")

        assert await it.answered(first_cancelled) == {"value": "all the same"}


async def test_notifications_reach_the_session_in_order() -> None:
    async with wire() as it:
        for number in range(5):  # whichever of them keeps the session waiting
            method = "notifications/x" if number % 2 else "slow"
            it.line.take({"jsonrpc": "2.0", "method": method, "params": {"n": number}})
        it.line.take({"jsonrpc": "2.0", "id": None, "method": "notifications/odd", "params": [1]})
        await blocked()

    assert [params for _, params in it.notified] == [*({"n": number} for number in range(5)), None]


async def test_a_flood_of_changes_is_told_of_as_it_is_read_and_makes_no_tasks() -> None:
    line, told = Line(), list[str | None]()
    peer = Peer(
        "it",
        dispatcher=LineDispatcher(line),
        timeout=math.inf,
        handlers=Handlers(),
        describe_end=str,
        start_task=start_task,
    )
    peer.on_change(told.append)

    def take(method: str, params: Any = None) -> None:
        line.take({"jsonrpc": "2.0", "method": f"notifications/resources/{method}", "params": params})

    async with peer.session:
        tasks = asyncio.all_tasks()
        for _ in range(1000):
            take("updated", {"uri": "file:///a"})
            take("list_changed")
        assert asyncio.all_tasks() == tasks
        take("updated", {"uri": 7})
    assert told == ["file:///a", None] * 1000


async def test_a_notification_that_makes_the_session_raise_harms_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with wire() as it:
        it.line.take({"jsonrpc": "2.0", "method": "raise"})
        await blocked()

        assert await it.answered(lambda id: result(id, "good")) == {"value": "good"}
    assert "a fault of the session" in caplog.text


async def test_progress_reaches_the_request_that_asked_for_it() -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        raise ValueError("contained")

    async with wire() as it:

        def with_progress(id: int) -> Any:
            for token, progress in ((id, 1), (str(id), 2.5), (99, 3), (id, "much"), (None, 4), (id, True)):
                params = {"progressToken": token, "progress": progress, "total": 10, "message": "on"}
                it.line.take({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            return result(id, "done")

        assert await it.answered(with_progress, on_progress=on_progress) == {"value": "done"}
        assert it.line.sent[0]["params"]["_meta"] == {"progressToken": it.line.sent[0]["id"]}
        it.line.take(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": it.line.sent[0]["id"], "progress": 9},
            }
        )
        await blocked()

    assert seen == [(1, 10, "on"), (2.5, 10, "on")]


# -- ids of the caller's own -----------------------------------------------------------------------


async def test_a_request_may_have_an_id_of_the_callers_own() -> None:
    async with wire() as it:
        assert await it.answered(lambda id: result(id, 1), request_id="listen-1") == {"value": 1}

    assert it.line.sent[0]["id"] == "listen-1"


async def test_an_id_that_is_in_use_is_refused_and_never_minted() -> None:
    async with wire() as it, anyio.create_task_group() as tasks:
        options: sdk.CallOptions = {"request_id": "1"}
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", None, options)
        await blocked()
        with pytest.raises(ValueError, match="in use"):
            await it.dispatcher.send_raw_request("ask", None, {"request_id": 1})
        tasks.start_soon(it.dispatcher.send_raw_request, "ask", None)
        await blocked()
        tasks.cancel_scope.cancel()

    assert [each["id"] for each in it.line.sent if each["method"] == "ask"] == ["1", 2]


# -- the seam --------------------------------------------------------------------------------------


def test_the_sdks_provisional_dispatcher_is_as_we_know_it() -> None:
    """`toolpost.mcp` stands on these. A new SDK that changes one fails here, and not at a user's."""

    def parameters(function: Callable[..., Any]) -> list[str]:
        return list(inspect.signature(function).parameters)

    assert parameters(sdk.Dispatcher[Any].run) == [
        "self",
        "on_request",
        "on_notify",
        "on_notify_intercept",
        "task_status",
    ]
    assert parameters(sdk.Outbound.send_raw_request) == ["self", "method", "params", "opts"]
    assert parameters(sdk.Outbound.notify) == ["self", "method", "params", "opts"]
    assert parameters(sdk.run_notify_intercept) == ["intercept", "method", "params"]
    assert parameters(sdk.as_request_id) == ["value"]
    assert parameters(sdk.coerce_request_id) == ["request_id"]
    options = {"request_id", "timeout", "cancel_on_abandon", "on_progress", "headers"}
    resuming = {"resumption_token", "on_resumption_token"}
    assert set(sdk.CallOptions.__annotations__) == options | resuming
    context = {name for name in vars(sdk.DispatchContext) if not name.startswith("_")}
    of_a_request = {"request_id", "cancel_requested", "progress"}
    assert context == of_a_request | {"transport", "can_send_request", "message_metadata"}


def test_the_ids_are_matched_as_we_know_it() -> None:
    assert [sdk.as_request_id(each) for each in (1, "1", True, 1.0, None)] == [1, "1", None, None, None]
    assert [sdk.coerce_request_id(each) for each in (7, "7", "listen-7")] == [7, 7, "listen-7"]
