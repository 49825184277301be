"""What comes back from a call: whole, in order, and checked by the schema that the tool declares."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import anyio
import pytest

from tests.mcp.support import event_of, host, odd, received, until
from toolpost import ConnectionLost, Error, OpenHost, ServerError, ToolResult
from toolpost.mcp import peer
from toolpost.model import Json, JsonObject

IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
KINDS: list[JsonObject] = [
    {"type": "text", "text": "one", "annotations": {"audience": ["user"], "own": 1}, "_meta": {"a/b": None}},
    IMAGE,
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "odd://one", "name": "one", "icons": [{"src": "data:,"}]},
    {"type": "resource", "resource": {"uri": "odd://one", "text": "embedded"}},
    {"type": "resource", "resource": {"uri": "odd://two", "blob": "AAAA"}},
    {"type": "video", "data": "AAAA", "frames": [1, {"deep": True}]},
    {"no": "type"},
    {"type": "text"},
    {"type": "text", "text": "two"},
]


async def answered(answer: JsonObject, table: JsonObject | None = None) -> ToolResult:
    """What a call gives whose raw result is `answer`; the next call must work too."""
    async with host(table or odd("malformed")) as opened:
        it = opened.tooling.get("it")
        result = await it.call_tool_blocking("echo", {"answer": {"result": answer}})
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on"
    return result


async def test_every_kind_of_content_is_kept_in_order_and_as_it_was_sent() -> None:
    result = await answered({"content": KINDS})

    assert result.content == KINDS
    assert result.value == "one\ntwo"


@pytest.mark.parametrize(
    ("content", "kept", "value"),
    [
        ([], [], ""),
        (None, [], ""),
        (IMAGE, [IMAGE], ""),
        ("done", [{"type": "text", "text": "done"}], "done"),
        ([7, "x", None], [{"type": "text", "text": each} for each in ("7", "x", "null")], "7\nx\nnull"),
    ],
)
async def test_content_that_is_no_list_of_blocks_breaks_no_call(
    content: Json, kept: list[JsonObject], value: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await answered({"content": content})

    assert (result.content, result.value) == (kept, value)
    assert ("content that is no block" in caplog.text) is bool(value)


@pytest.mark.parametrize("structured", [{"status": "completed"}, [0], "text", 0, False])
async def test_a_value_that_is_only_in_structured_content_is_delivered(structured: Json) -> None:
    result = await answered({"structuredContent": structured})

    assert (result.structured_content, result.content, result.value) == (structured, [], "")


@pytest.mark.parametrize("flag", [True, "true"])
async def test_an_error_of_the_tool_is_a_value_with_all_its_parts(flag: Json) -> None:
    details = {"code": "RATE_LIMITED", "retry_after": 30}
    result = await answered({"content": [IMAGE], "structuredContent": details, "isError": flag})

    assert result.is_error
    assert (result.structured_content, result.content) == (details, [IMAGE])


async def test_a_result_of_2026_07_28_without_its_type_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("forgetful", log=log)) as opened:
        it = opened.tooling.get("it")
        assert [tool.name for tool in await it.list_tools()] == ["echo", "pid"]
        assert [each.uri for each in await it.list_resources()] == ["odd://one"]
        assert (await it.read_resource("odd://one")).content == "of odd://one"
        assert (await it.call_tool_blocking("echo", {"text": "done"})).value == "done"

    assert not received(log, "initialize")
    assert len(received(log, "tools/call")) == 1


async def test_a_call_refused_for_its_headers_is_sent_again_once_when_the_tools_are_listed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with host(odd("wants_headers", log=log)) as opened:
        assert (await opened.tooling.get("it").call_tool_blocking("echo", {"text": "done"})).value == "done"
    methods = [each["method"] for each in received(log)]
    assert methods[1:] == ["tools/call", "tools/list", "tools/call"]

    async with host(odd("wants_headers", n=1)) as opened:
        with pytest.raises(ServerError, match="Mcp-Param-Region is missing") as caught:
            await opened.tooling.get("it").call_tool_blocking("echo")
    assert caught.value.code == -32020


async def test_a_raw_request_for_a_call_gives_the_raw_result() -> None:
    answer: JsonObject = {"content": [{"type": "odd"}], "own": 1}
    async with host(odd("malformed")) as opened:
        params: JsonObject = {"name": "echo", "arguments": {"answer": {"result": answer}}}
        assert await opened.tooling.get("it").request("tools/call", params) == answer


# -- output schemas --------------------------------------------------------------------------------


async def call(opened: OpenHost, tool: str = "sum", **result: Json) -> ToolResult:
    """Call a tool of `odd.py structured` that answers with this result."""
    arguments: JsonObject = {"answer": {"result": {"content": [], **result}}}
    return await opened.tooling.get("it").call_tool_blocking(tool, arguments)


async def declare(opened: OpenHost, **schemas: Json) -> None:
    """Give the server these tools with these output schemas; it tells of the change before it answers."""
    await opened.tooling.get("it").call_tool_blocking("declare", {"schemas": schemas})


@pytest.mark.parametrize("listed", [True, False])
async def test_a_result_that_does_not_fit_is_an_error_that_names_tool_and_path(listed: bool) -> None:
    async with host(odd("structured")) as opened:
        if listed:
            await opened.tooling.get("it").list_tools()
        with pytest.raises(ServerError) as caught:
            await call(opened, structuredContent={"sum": "three"})
        assert (await call(opened, structuredContent={"sum": 3})).structured_content == {"sum": 3}

    assert caught.value.message == (
        "tooling 'it': call_tool 'sum': the result does not fit the tool's output_schema: "
        "structured_content.sum: 'three' is not of type 'number'"
    )
    assert caught.value.data == {"content": [], "structuredContent": {"sum": "three"}}, "nothing is lost"


async def test_of_a_queued_call_that_error_is_the_envelope() -> None:
    arguments = {"answer": {"result": {"structuredContent": {"sum": "three"}}}}
    async with host(odd("structured")) as opened:
        event = await event_of(opened, await opened.tooling.get("it").call_tool("sum", arguments))

    assert isinstance(event, Error)
    assert "structured_content.sum: 'three' is not of type 'number'" in event.text


async def test_a_result_without_structured_content_does_not_fit_either() -> None:
    async with host(odd("structured")) as opened:
        with pytest.raises(ServerError, match=r"'sum': .*structured_content is missing"):
            await call(opened)


async def test_an_error_of_the_tool_is_not_checked() -> None:
    async with host(odd("structured")) as opened:
        assert (await call(opened, isError=True)).is_error
        assert (await call(opened, isError=True, structuredContent=["why"])).structured_content == ["why"]


SUM: JsonObject = {"type": "object", "properties": {"sum": {"type": "number"}}}
UNUSABLE: dict[str, tuple[JsonObject, str]] = {
    "dangling": ({"type": "object", "properties": {"s": {"$ref": "#/$defs/Missing"}}}, "'/$defs/Missing'"),
    "no schema": ({"type": "object", "required": 7}, "output_schema.required: 7 is not of type 'array'"),
    "a loop": ({"type": "object", "$ref": "#"}, "refers to itself"),
}


@pytest.mark.parametrize(("schema", "why"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_schema_that_cannot_be_used_is_a_warning_once_and_no_obstacle(
    schema: JsonObject, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with host(odd("structured")) as opened:
        await declare(opened, bad=schema, good={"type": "object", "required": ["it"]})
        for _ in range(3):
            assert (await call(opened, "bad", structuredContent={"s": 1})).structured_content == {"s": 1}
            await opened.tooling.get("it").list_tools()
        with pytest.raises(ServerError, match="'it' is a required property"):
            await call(opened, "good", structuredContent={})

    assert caplog.text.count("a result of tool 'bad' is not checked by its output_schema") == 1
    assert why in caplog.text


async def test_an_odd_output_schema_takes_no_tool_away() -> None:
    schemas: JsonObject = {"array": {"type": "array"}, "empty": {}, "number": 7, "null": None, "plain": SUM}
    async with host(odd("structured")) as opened:
        await declare(opened, **schemas)
        listed = {tool.name: tool.output_schema for tool in await opened.tooling.get("it").list_tools()}
        raw = await opened.tooling.get("it").request("tools/list")

    assert listed == schemas | {"number": None}
    assert {tool["name"]: tool["outputSchema"] for tool in raw["tools"]} == schemas, "as it came"
    assert not any("_meta" in tool for tool in raw["tools"])


async def test_what_a_schema_refers_to_is_never_fetched(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        url = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/schema.json"
        async with host(odd("structured")) as opened:
            await declare(opened, far={"type": "object", "properties": {"s": {"$ref": url}}})
            await call(opened, "far", structuredContent={"s": 1})
        with pytest.raises(BlockingIOError):
            elsewhere.accept()

    assert f"it refers to '{url}', which is not in it" in caplog.text


async def test_the_tools_are_listed_once_a_connection_and_again_when_they_have_changed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    async with host(odd("structured", log=log)) as opened:
        for _ in range(3):
            await call(opened, structuredContent={})
        assert len(received(log, "tools/list")) == 1

        await declare(opened, sum={"type": "object", "required": ["total"]})
        with pytest.raises(ServerError, match="'total' is a required property"):
            await call(opened, structuredContent={})
        assert len(received(log, "tools/list")) == 2

        with pytest.raises(ConnectionLost):
            await opened.tooling.get("it").call_tool_blocking("crash")
        await call(opened, structuredContent={"sum": 1})
        assert len(received(log, "tools/list")) == 3


async def test_calls_at_once_share_that_list(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("structured", log=log)) as opened, anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(lambda: call(opened, structuredContent={}))

    assert len(received(log, "tools/list")) == 1


async def test_a_server_that_does_not_list_its_tools_has_its_results_delivered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(peer, "LEARN_SECS", 0.05)
    log = tmp_path / "log"
    async with host(odd("structured", log=log, n=1)) as opened:
        for _ in range(2):
            result = await call(opened, structuredContent={"sum": "three"})
            assert result.structured_content == {"sum": "three"}
        await until(lambda: received(log, "notifications/cancelled"))

    assert len(received(log, "tools/list")) == 1
    assert caplog.text.count("results are not checked, since the tools cannot be listed") == 1


async def test_a_secret_in_a_result_that_does_not_fit_is_masked(caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cret-t0ken-in-the-result"
    caplog.set_level(logging.DEBUG)
    async with host(odd("structured", env={"KEY": secret})) as opened:
        with pytest.raises(ServerError) as caught:
            await call(opened, structuredContent={"sum": f"{'x' * 180}{secret}"})

    for said in (str(caught.value), repr(caught.value.data), caplog.text):
        for start in range(len(secret) - 8):
            assert secret[start : start + 9] not in said
    assert "***" in repr(caught.value.data)
