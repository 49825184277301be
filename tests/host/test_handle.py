"""Each operation of a handle: what it checks, what it writes down, what it gives."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any
from uuid import RFC_4122, UUID

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolpost
from tests import memory
from tests.loop import settle
from tests.memory import Memory
from toolpost import Error, ToolResult, UsageError
from toolpost.host.handle import tool_call
from toolpost.trace.events import Call, Opened

pytestmark = pytest.mark.usefixtures("either_way")


@asynccontextmanager
async def opened(
    memo: Memory, *, trace: bool = True, **tunables: Any
) -> AsyncGenerator[tuple[toolpost.OpenHost, toolpost.Tooling]]:
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo, tunables=tunables), trace=trace) as host:
            yield host, host.tooling.get("memo")


def calls(host: toolpost.OpenHost) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the trace has."""
    return [(event.op, event.detail) for event in host.trace if isinstance(event, Call)]


# -- arguments -------------------------------------------------------------------------------------

NO_OBJECTS: dict[str, Any] = {
    "a list": [],
    "a number": 7,
    "None": None,
    "bytes": b"{}",
    "the text of a list": "[]",
    "the text of a number": "7",
    "the text of null": "null",
    "an empty text": "",
    "broken JSON": '{"a": ',
    "JSON with a tail": "{} x",
    "single quotes": "{'a': 1}",
    "NaN in a mapping": {"a": math.nan},
    "infinity in a mapping": {"a": [math.inf]},
    "NaN in a text": '{"a": NaN}',
    "infinity in a text": '{"a": [-Infinity]}',
    "a number beyond floats in a text": '{"a": 1e999}',
    "half a surrogate pair in a mapping": {"a": "\ud83d"},
    "half a surrogate pair as a key": {"\ud83d": 1},
    "half a surrogate pair in a text": '{"a": "\ud83d"}',
    "half a surrogate pair escaped in a text": '{"a": "\\ud83d"}',
    "keys that are bytes": {b"a": 1},
    "keys that are numbers": {1: "a"},
    "values that are no JSON": {"a": object()},
    "sets": {"a": {1}},
    "a text nested too deeply": '{"a":' + "[" * 200_000 + "]" * 200_000 + "}",
}


def deep() -> dict[str, Any]:
    nested: list[Any] = []
    for _ in range(200_000):
        nested = [nested]
    return {"a": nested}


@pytest.mark.parametrize("arguments", NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
async def test_arguments_that_are_no_json_object_queue_nothing_and_trace_nothing(arguments: Any) -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        with pytest.raises(UsageError):
            await tooling.call_tool("echo", arguments)
        with pytest.raises(UsageError):
            await tooling.call_tool_blocking("echo", arguments)
        await settle()

        assert (memo.calls, list(host.trace), host.try_recv()) == ([], [], None)


async def test_a_mapping_nested_too_deeply_is_a_usage_error() -> None:
    async with opened(Memory()) as (_, tooling):
        with pytest.raises(UsageError, match="cannot be written as JSON"):
            await tooling.call_tool("echo", deep())


@pytest.mark.parametrize("as_text", [False, True], ids=["a mapping", "a text"])
async def test_arguments_deeper_than_peers_read_them_are_a_usage_error(as_text: bool) -> None:
    def nested(levels: int) -> Any:
        text = '{"a":' * levels + "1" + "}" * levels
        return text if as_text else json.loads(text)

    memo = Memory()
    async with opened(memo) as (host, tooling):
        with pytest.raises(UsageError, match="nested more than 200 deep"):
            await tooling.call_tool("echo", nested(201))
        assert (memo.calls, list(host.trace)) == ([], [])
        await tooling.call_tool_blocking("echo", nested(200))
        await tooling.call_tool_blocking("echo", {"many": [[]] * 1000})


async def test_the_record_of_a_call_is_its_own() -> None:
    memo = Memory()

    def on_call(call: toolpost.ToolCall) -> Any:
        call.arguments["list"].append("changed")
        call.arguments["more"] = 1
        raise LookupError("enough")

    memo.on_call = on_call
    async with opened(memo) as (host, tooling):
        await tooling.call_tool("echo", {"list": [{"a": 1}]})

        assert calls(host)[0][1]["arguments"] == {"list": [{"a": 1}]}


async def test_an_agent_that_tries_again_and_again_stops_nobody() -> None:
    memo = Memory()
    async with opened(memo, open_calls_bound=1) as (host, tooling):
        await tooling.call_tool("hold")
        asyncio.get_running_loop().call_soon(memo.held[0].answer)
        reader = asyncio.create_task(host.recv())
        while True:
            try:
                await tooling.call_tool("echo")
            except toolpost.TooManyOpenCalls:
                continue
            break

        assert reader.done()


@pytest.mark.parametrize("how", ["queued", "received", "in place"])
async def test_an_agent_that_need_never_wait_lets_others_run(how: str) -> None:
    memo, turns = Memory(), 0
    memo.on_call = done

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with opened(memo, open_calls_bound=1000) as (host, tooling):
        if how == "received":
            for _ in range(1000):
                await tooling.call_tool("any")
            await settle()
        task = asyncio.create_task(others())
        for _ in range(1000):
            match how:
                case "queued":
                    await tooling.call_tool("any")
                case "received":
                    await host.recv()
                case _:
                    await tooling.call_tool_blocking("any")
        task.cancel()
    assert turns >= 10


def done(call: toolpost.ToolCall) -> asyncio.Future[ToolResult]:
    outcome: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
    outcome.set_result(memory.result(call, "done"))
    return outcome


async def test_a_mapping_that_holds_itself_is_a_usage_error() -> None:
    arguments: dict[str, Any] = {}
    arguments["itself"] = arguments
    async with opened(Memory()) as (_, tooling):
        with pytest.raises(UsageError, match="cannot be written as JSON"):
            await tooling.call_tool("echo", arguments)


async def test_a_json_text_is_kept_byte_for_byte() -> None:
    text = ' {"message" : "\\u00fc\\ud83d\\ude00",\n "n": 1.50, "n": 1E2} '
    memo = Memory()
    async with opened(memo) as (_, tooling):
        result = await tooling.call_tool_blocking("echo", text)

    assert result.arguments == text
    assert memo.calls[0].arguments == {"message": "ü😀", "n": 100.0}


async def test_a_mapping_becomes_compact_json() -> None:
    async with opened(Memory()) as (_, tooling):
        result = await tooling.call_tool_blocking("echo", {"message": "ü", "list": [1, None, True]})

    assert result.arguments == '{"message":"ü","list":[1,null,true]}'


values = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
"""Also numbers of any size, and what JSON has to escape."""


@given(st.dictionaries(st.text(), values | st.lists(values) | st.dictionaries(st.text(), values)))
def test_whatever_is_in_a_mapping_its_text_is_compact_json_and_its_values_are_kept(
    mapping: dict[str, Any],
) -> None:
    call = tool_call("any", mapping, None)

    assert call.text == json.dumps(mapping, ensure_ascii=False, separators=(",", ":"))
    assert repr(call.arguments) == repr(mapping)  # `1 == True`, and `0.0 == -0.0`
    assert call.arguments is not mapping


async def test_any_mapping_will_do() -> None:
    arguments: Mapping[str, Any] = MappingProxyType({"message": "hi"})
    async with opened(Memory()) as (_, tooling):
        result = await tooling.call_tool_blocking("echo", arguments)

    assert (result.value, result.arguments) == ("hi", '{"message":"hi"}')


async def test_without_arguments_an_empty_object_is_sent() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        await tooling.call_tool_blocking("echo")

    assert (memo.calls[0].text, memo.calls[0].arguments) == ("{}", {})


async def test_changing_the_mapping_after_the_call_changes_nothing() -> None:
    memo = Memory()
    arguments = {"list": [1]}
    async with opened(memo) as (host, tooling):
        await tooling.call_tool("hold", arguments)
        arguments["list"].append(2)
        (held,) = await memo.wait_held()
        held.answer()
        event = (await host.recv()).event

        assert isinstance(event, ToolResult)
        assert event.arguments == '{"list":[1]}'
        assert memo.calls[0].arguments == {"list": [1]}
        assert calls(host)[0][1]["arguments"] == {"list": [1]}


@pytest.mark.parametrize("name", ["", None, 7], ids=repr)
async def test_names_and_uris_are_non_empty_strings(name: Any) -> None:
    async with opened(Memory()) as (host, tooling):
        for operation in (
            tooling.call_tool,
            tooling.call_tool_blocking,
            tooling.read_resource,
            tooling.subscribe_resource,
            tooling.request,
        ):
            with pytest.raises(UsageError, match="non-empty string"):
                await operation(name)

        assert list(host.trace) == []


@pytest.mark.parametrize("timeout", [0, -1, math.nan], ids=repr)
async def test_a_timeout_is_a_positive_number(timeout: float) -> None:
    async with opened(Memory()) as (host, tooling):
        with pytest.raises(UsageError, match="positive number of seconds"):
            await tooling.call_tool("echo", timeout=timeout)

        assert list(host.trace) == []


async def test_a_timeout_reaches_the_backend() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        await tooling.call_tool_blocking("echo", timeout=math.inf)
        await tooling.call_tool_blocking("echo")

    assert [call.timeout for call in memo.calls] == [math.inf, None]


# -- queued calls ----------------------------------------------------------------------------------


async def test_a_queued_call_gives_its_uuid_before_its_answer() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.call_tool("hold")
        assert tooling.is_open(uuid)
        assert host.try_recv() is None

        memo.held[0].answer("now")
        envelope = await host.recv()

    assert envelope.id == uuid
    assert isinstance(envelope.event, ToolResult)
    assert envelope.event.value == "now"


async def test_queued_calls_reach_the_far_end_in_the_order_they_were_made() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        for number in range(20):
            await tooling.call_tool("hold", {"n": number})

    assert [call.arguments["n"] for call in memo.calls] == list(range(20))


async def test_a_queued_call_is_at_the_far_end_when_its_uuid_is_given() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        await tooling.call_tool("hold")
        assert len(memo.calls) == 1


async def test_the_ids_of_calls_are_random_uuids() -> None:
    async with opened(Memory()) as (_, tooling):
        ids = [await tooling.call_tool("hold") for _ in range(20)]

    assert [str(UUID(each)) for each in ids] == ids
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(4, RFC_4122)}
    assert len(set(ids)) == 20


async def test_calls_may_be_answered_in_any_order() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuids = [await tooling.call_tool("hold") for _ in range(4)]
        for position in (2, 0, 3, 1):
            memo.held[position].answer()
            await settle()

        assert [(await host.recv()).id for _ in uuids] == [uuids[at] for at in (2, 0, 3, 1)]


async def test_past_open_calls_bound_nothing_is_queued_and_nothing_traced() -> None:
    memo = Memory()
    async with opened(memo, open_calls_bound=2) as (host, tooling):
        await tooling.call_tool("hold")
        await tooling.call_tool("echo")
        await settle()
        before = len(host.trace)
        with pytest.raises(toolpost.TooManyOpenCalls, match="open_calls_bound"):
            await tooling.call_tool("echo")
        await settle()
        assert (len(memo.calls), len(host.trace) - before) == (2, 0)

        await host.recv()
        await tooling.call_tool("echo")


async def test_calls_in_place_are_not_counted() -> None:
    memo = Memory()
    async with opened(memo, open_calls_bound=1) as (_, tooling):
        await tooling.call_tool("hold")
        assert (await tooling.call_tool_blocking("echo", {"message": "hi"})).value == "hi"


async def test_a_refused_call_is_an_error_envelope() -> None:
    async with opened(Memory()) as (host, tooling):
        uuid = await tooling.call_tool("fail")
        envelope = await host.recv()

    assert envelope == toolpost.Envelope(
        uuid, Error("tooling 'memo': call_tool 'fail': refused (code -32602)")
    )


async def test_a_caller_that_is_cancelled_before_it_has_the_uuid_leaves_no_call_behind() -> None:
    memo = Memory()
    memo.drives_calls = False  # else it has the UUID at once
    async with opened(memo) as (host, tooling):
        caller = asyncio.create_task(tooling.call_tool("hold"))
        await asyncio.sleep(0)
        caller.cancel()
        await settle()

        assert caller.cancelled()
        assert memo.held[0].was_cancelled
        assert host.try_recv() is None


# -- cancel ----------------------------------------------------------------------------------------


async def test_cancelling_tells_the_far_end_and_delivers_nothing() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.call_tool("hold")
        await tooling.cancel(uuid)
        assert not tooling.is_open(uuid)
        await settle()
        memo.held[0].answer()
        await settle()

        assert memo.held[0].was_cancelled
        assert host.try_recv() is None


async def test_cancelling_takes_back_an_answer_that_waits() -> None:
    async with opened(Memory()) as (host, tooling):
        uuid = await tooling.call_tool("echo")
        await settle()
        await tooling.cancel(uuid)

        assert host.try_recv() is None


async def test_cancelling_in_the_very_turn_of_the_answer_delivers_nothing() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        uuid = await tooling.call_tool("hold")
        memo.held[0].answer()
        await tooling.cancel(uuid)
        await settle()

        assert host.try_recv() is None


@pytest.mark.parametrize("uuid", ["", "no-such-uuid"], ids=["empty", "unknown"])
async def test_cancelling_an_unknown_uuid_has_no_effect(uuid: str) -> None:
    async with opened(Memory()) as (host, tooling):
        await tooling.cancel(uuid)
        await tooling.unsubscribe_resource(uuid)
        await tooling.unsubscribe_resource_list(uuid)

        assert [op for op, _ in calls(host)] == [
            "cancel",
            "unsubscribe_resource",
            "unsubscribe_resource_list",
        ]


async def test_a_uuid_is_good_on_every_handle_of_its_agent() -> None:
    memo = Memory()
    with anyio.fail_after(5):
        async with toolpost.open_host(memory.config(memo, Memory())) as host:
            uuid = await host.tooling.get("memo").call_tool("hold")
            other = host.tooling.get("memo2")
            assert other.is_open(uuid)
            await other.cancel(uuid)
            await settle()

    assert memo.held[0].was_cancelled


async def test_cancelling_a_call_in_place_tells_the_far_end() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        caller = asyncio.create_task(tooling.call_tool_blocking("hold"))
        await memo.wait_held()
        caller.cancel()
        await settle()

    assert memo.held[0].was_cancelled


# -- the other operations --------------------------------------------------------------------------


async def test_a_call_in_place_gives_its_result() -> None:
    async with opened(Memory()) as (host, tooling):
        result = await tooling.call_tool_blocking("echo", {"message": "hi"})

        assert (result.name, result.value, result.is_error) == ("echo", "hi", False)
        assert host.try_recv() is None


async def test_a_call_in_place_raises_its_failure() -> None:
    async with opened(Memory()) as (_, tooling):
        with pytest.raises(toolpost.ServerError) as caught:
            await tooling.call_tool_blocking("fail")

    assert (caught.value.code, caught.value.data) == (-32602, {"why": "to see"})


async def test_tools_and_resources_are_listed_and_read() -> None:
    async with opened(Memory()) as (_, tooling):
        assert [tool.name for tool in await tooling.list_tools()] == ["echo", "hold", "fail", "break"]
        assert [each.uri for each in await tooling.list_resources()] == ["memo:a", "memo:b"]
        assert (await tooling.read_resource("memo:a")).content == "a0"
        with pytest.raises(toolpost.ResourceNotFound):
            await tooling.read_resource("memo:none")


async def test_a_list_is_asked_for_each_time() -> None:
    memo = Memory()
    async with opened(memo) as (_, tooling):
        await tooling.list_resources()
        memo.resources["memo:c"] = ""
        assert len(await tooling.list_resources()) == 3


async def test_a_kind_without_raw_requests_is_unsupported() -> None:
    async with opened(Memory()) as (host, tooling):
        with pytest.raises(toolpost.Unsupported, match="kind 'memory' has no raw requests"):
            await tooling.request("prompts/list")

        assert list(host.trace) == []


async def test_kind_and_name_neither_connect_nor_are_traced() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        assert (tooling.kind(), tooling.name(), tooling.is_open("x")) == ("memory", "memo", False)
        assert repr(tooling) == "<Tooling 'memo' of kind 'memory'>"
        assert (memo.log, list(host.trace)) == ([], [])


# -- the record ------------------------------------------------------------------------------------


async def test_every_operation_is_traced_with_what_it_was_given() -> None:
    async with opened(Memory()) as (host, tooling):
        await tooling.list_tools()
        await tooling.call_tool_blocking("echo", '{"message": "hi"}')
        call = await tooling.call_tool("hold", {"n": 1})
        await tooling.cancel(call)
        await tooling.list_resources()
        await tooling.read_resource("memo:a")
        listed = await tooling.subscribe_resource_list()
        await tooling.unsubscribe_resource_list(listed)
        subscribed = await tooling.subscribe_resource("memo:a")
        await tooling.unsubscribe_resource(subscribed)

        memo = {"tooling": "memo"}
        assert calls(host) == [
            ("list_tools", memo),
            ("call_tool_blocking", {**memo, "name": "echo", "arguments": {"message": "hi"}}),
            ("call_tool", {**memo, "name": "hold", "arguments": {"n": 1}}),
            ("cancel", {**memo, "uuid": call}),
            ("list_resources", memo),
            ("read_resource", {**memo, "uri": "memo:a"}),
            ("subscribe_resource_list", memo),
            ("unsubscribe_resource_list", {**memo, "uuid": listed}),
            ("subscribe_resource", {**memo, "uri": "memo:a"}),
            ("unsubscribe_resource", {**memo, "uuid": subscribed}),
        ]


async def test_a_call_is_written_down_before_it_has_any_effect() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        seen: list[list[str]] = []

        def on_call(call: toolpost.ToolCall) -> Any:
            seen.append([event.kind for event in host.trace])
            raise LookupError("enough")

        memo.on_call = on_call
        await tooling.call_tool("echo")
        with pytest.raises(LookupError):
            await tooling.call_tool_blocking("echo")

    assert (seen[0], seen[1][-1]) == (["call", "opened"], "call")


async def test_read_backs_are_no_calls() -> None:
    memo = Memory()
    async with opened(memo) as (host, tooling):
        await tooling.subscribe_resource("memo:a")
        await memo.wait_subscribed()
        memo.change("memo:a", "a1")
        await host.recv()

        assert [op for op, _ in calls(host)] == ["subscribe_resource"]


async def test_a_failed_call_in_place_is_traced_all_the_same() -> None:
    async with opened(Memory()) as (host, tooling):
        with pytest.raises(toolpost.ServerError):
            await tooling.call_tool_blocking("fail")

        assert [op for op, _ in calls(host)] == ["call_tool_blocking"]


async def test_each_source_has_a_uuid_of_its_own() -> None:
    async with opened(Memory()) as (host, tooling):
        uuids = [await tooling.call_tool("hold"), await tooling.call_tool("hold")]
        uuids += [await tooling.subscribe_resource("memo:a"), await tooling.subscribe_resource_list()]

        assert [event.id for event in host.trace if isinstance(event, Opened)] == uuids
        assert len(set(uuids)) == 4


# -- futures of a backend --------------------------------------------------------------------------


async def test_a_future_of_another_loop_fails_its_call_however_that_was_made() -> None:
    """Its outcome comes in another thread, as like as not, where the inbox must not be touched."""
    memo = Memory()
    other = asyncio.new_event_loop()
    memo.on_call = lambda _call: other.create_future()
    try:
        async with opened(memo) as (host, tooling):
            uuid = await tooling.call_tool("echo")
            with pytest.raises(RuntimeError, match="different loop"):
                await tooling.call_tool_blocking("echo")
            envelope = await host.recv()
    finally:
        other.close()

    assert envelope.id == uuid
    assert isinstance(envelope.event, Error)
    assert "different loop" in envelope.event.text


async def test_a_task_that_takes_a_while_to_be_cancelled_has_ended_before_its_backend_is_closed() -> None:
    memo = Memory()

    async def call() -> ToolResult:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            for _ in range(5):
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
            memo.log.append("ended")

    memo.on_call = lambda _call: asyncio.ensure_future(call())
    async with opened(memo) as (_, tooling):
        await tooling.call_tool("echo")
        await settle()

    assert memo.log == ["call echo", "ended", "aclose"]


@pytest.mark.parametrize("outcome", ["result", "error", "cancelled"])
async def test_a_future_that_is_done_already_is_an_outcome_like_any_other(outcome: str) -> None:
    memo = Memory()

    def done(call: toolpost.ToolCall) -> asyncio.Future[ToolResult]:
        future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        match outcome:
            case "result":
                future.set_result(memory.result(call, "there"))
            case "error":
                future.set_exception(toolpost.ServerError("refused", code=1))
            case _:
                future.cancel()
        return future

    memo.on_call = done
    async with opened(memo) as (host, tooling):
        uuid = await tooling.call_tool("echo")
        envelope = await host.recv()

    assert envelope.id == uuid
    assert envelope.event.kind == ("tool-result" if outcome == "result" else "error")


async def test_of_two_calls_that_share_a_future_cancelling_one_fails_the_other() -> None:
    memo = Memory()
    shared: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
    memo.on_call = lambda _call: shared
    async with opened(memo) as (host, tooling):
        one, two = await tooling.call_tool("echo"), await tooling.call_tool("echo")
        await tooling.cancel(one)
        envelope = await host.recv()

    assert envelope.id == two
    assert isinstance(envelope.event, Error)
    assert "cancelled itself" in envelope.event.text


async def test_a_future_of_threads_is_none_that_can_be_awaited_and_says_so() -> None:
    memo = Memory()
    memo.on_call = lambda _call: concurrent.futures.Future[ToolResult]()
    async with opened(memo) as (host, tooling):
        await tooling.call_tool("echo")
        envelope = await host.recv()

    assert isinstance(envelope.event, Error)
    assert "can't be used in 'await'" in envelope.event.text
