"""What odd servers list: pages, tools, resources, names. What can be used is there, in bounded time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.support import answering, host, odd, received
from toolpost import RequestTimeout, ResourceInfo, ServerError, Tool, Unsupported
from toolpost.mcp import clock, pages
from toolpost.model import Json, JsonObject

GOOD: JsonObject = {"name": "good", "inputSchema": {"type": "object"}}


def listing(*tools: Json, **more: Json) -> dict[str, list[Any]]:
    """The answers of a server that lists these tools, on one page."""
    return {"tools/list": [{"result": {"tools": list(tools), **more}}]}


async def tools_of(answers: dict[str, list[Any]], **keys: Any) -> list[Tool]:
    async with host(answering(answers, **keys)) as opened:
        return await opened.tooling.get("it").list_tools()


async def resources_of(*resources: Json, **keys: Any) -> list[ResourceInfo]:
    answers = {"resources/list": [{"result": {"resources": list(resources)}}]}
    async with host(answering(answers, **keys)) as opened:
        return await opened.tooling.get("it").list_resources()


# -- pages -----------------------------------------------------------------------------------------


async def test_every_page_of_a_list_is_fetched(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("pages", log=log)) as opened:
        tools = await opened.tooling.get("it").list_tools()

    assert [tool.name for tool in tools] == [f"tool-{n}" for n in range(50)]
    assert len(received(log, "tools/list")) == 8


async def test_a_list_is_never_cached(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd(log=log)) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        await it.list_tools()

    assert len(received(log, "tools/list")) == 2


async def test_a_cursor_that_comes_again_ends_the_walk_with_a_warning(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with host(odd("cursor_loop", log=log)) as opened:
        tools = await opened.tooling.get("it").list_tools()

    assert [tool.name for tool in tools] == ["after-None", "after-a", "after-b"]
    assert "a cursor came twice" in caplog.text


async def test_pages_without_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGES", 30)
    async with host(odd("endless_pages")) as opened:
        with pytest.raises(ServerError, match="more than 30 pages"):
            await opened.tooling.get("it").list_tools()


async def test_items_without_end_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_ITEMS", 30)
    async with host(odd("pages")) as opened:
        with pytest.raises(ServerError, match="listed more than 30 items"):
            await opened.tooling.get("it").list_tools()


async def test_all_pages_together_have_the_time_of_one_request_that_reports_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "EXTENDS", 3)
    async with host(odd("slow_pages", n=0.05, request_timeout_secs=0.2)) as opened:
        with pytest.raises(RequestTimeout, match=r"list_tools: .* restarted the limit of 0\.2 s"):
            await opened.tooling.get("it").list_tools()


async def test_a_page_that_fails_fails_the_list() -> None:
    async with host(odd("bad_page")) as opened:
        with pytest.raises(ServerError, match="Invalid cursor"):
            await opened.tooling.get("it").list_tools()


async def test_a_server_that_declares_tools_and_cannot_list_them_has_none() -> None:
    async with host(odd("unknown_page", n=1)) as opened:
        assert await opened.tooling.get("it").list_tools() == []


async def test_a_list_whose_later_page_is_refused_as_unknown_is_no_whole_list() -> None:
    async with host(odd("unknown_page", n=2)) as opened:
        with pytest.raises(ServerError, match="list_tools: the server answered: Method not found"):
            await opened.tooling.get("it").list_tools()


async def test_a_server_without_capabilities_has_empty_lists_and_is_not_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with host(odd("bare", log=log)) as opened:
        it = opened.tooling.get("it")
        assert await it.list_tools() == []
        assert await it.list_resources() == []
        with pytest.raises(Unsupported, match="did not declare tools"):
            await it.call_tool_blocking("echo")

    asked = {each["method"] for each in received(log)}
    assert asked == {"server/discover", "initialize", "notifications/initialized"}


async def test_include_and_exclude_say_which_tools_there_are() -> None:
    table = odd("pages", include_tools=["tool-1*", "tool-2"], exclude_tools=["tool-1[0-7]"])
    async with host(table) as opened:
        it = opened.tooling.get("it")
        tools = await it.list_tools()
        with pytest.raises(Unsupported, match=r"include_tools, exclude_tools"):
            await it.call_tool_blocking("tool-12")

    assert [tool.name for tool in tools] == ["tool-1", "tool-2", "tool-18", "tool-19"]


@pytest.mark.parametrize("cursors", [["again"], [""], ["a", "b", "a"]], ids=repr)
async def test_what_comes_twice_from_a_server_that_goes_in_a_circle_is_listed_once(
    cursors: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page: list[Json] = [GOOD, GOOD | {"name": "good too"}]
    answers = {"tools/list": [{"result": {"tools": page, "nextCursor": cursor}} for cursor in cursors]}
    log = tmp_path / "log"
    assert [tool.name for tool in await tools_of(answers, log=log)] == ["good", "good too"]

    assert len(received(log, "tools/list")) == max(2, len(cursors))
    assert "'it': list_tools: a cursor came twice" in caplog.text


async def test_a_cursor_of_null_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert len(await tools_of(listing(GOOD, nextCursor=None), log=log)) == 1
    assert len(received(log, "tools/list")) == 1


@pytest.mark.parametrize(
    "page", [{}, {"tools": None}, {"tools": {"good": GOOD}}, {"tools": [GOOD], "nextCursor": 2}], ids=repr
)
async def test_a_page_that_is_none_is_an_error_and_no_short_list(page: JsonObject) -> None:
    with pytest.raises(ServerError, match="'it': list_tools: the server's answer is malformed"):
        await tools_of({"tools/list": [{"result": page}]})


# -- tools -----------------------------------------------------------------------------------------


def with_schema(schema: Json) -> JsonObject:
    return {"name": "odd", "inputSchema": schema}


UNUSABLE: list[tuple[Json, str]] = [
    (7, "7 is left out: it is no object"),
    (None, "None is left out: it is no object"),
    ({"name": "odd"}, "'odd' is left out: its inputSchema is missing"),
    (with_schema(None), "'odd' is left out: its inputSchema is missing"),
    (with_schema([]), "'odd' is left out: its inputSchema is no object"),
    (with_schema(True), "'odd' is left out: its inputSchema is no object"),
    (with_schema({"type": "string"}), "its inputSchema has the type 'string'"),
    (with_schema({"type": ["null"]}), "its inputSchema has the type a list"),
    (with_schema({"properties": []}), "is malformed: properties is no object"),
    (with_schema({"properties": {"a": {}, "required": ["a"]}}), "properties.required is no schema"),
    (with_schema({"properties": {"a": {"type": "strnig"}}}), "properties.a.type cannot be 'strnig'"),
    (with_schema({"required": "a"}), "required cannot be 'a'"),
    (with_schema({"required": [1]}), "required cannot be a list"),
    (with_schema({"anyOf": {"a": {}}}), "anyOf is no list"),
    (with_schema({"$defs": {"a": {"items": [{"not": 1}]}}}), "$defs.a.items[0].not is no schema"),
    (with_schema({"properties": {"a": {"enum": 1}}}), "properties.a.enum cannot be a int"),
    (with_schema({"$ref": 1}), "$ref cannot be a int"),
    ({"inputSchema": {}}, "None is left out: its name is missing, empty or no text"),
    ({"name": "", "inputSchema": {}}, "'' is left out: its name is missing"),
    ({"name": 7, "inputSchema": {}}, "7 is left out: its name is missing, empty or no text"),
]


async def test_what_cannot_be_used_is_left_out_with_a_warning_and_takes_no_other_tool_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = listing(GOOD, *(entry for entry, _ in UNUSABLE), GOOD | {"name": "good too"})
    async with host(answering(answers)) as opened:
        it = opened.tooling.get("it")
        assert [tool.name for tool in await it.list_tools()] == ["good", "good too"]
        assert (await it.call_tool_blocking("echo", {"text": "on"})).value == "on", "it can still be called"

    for _, warning in UNUSABLE:
        assert warning in caplog.text


USABLE: list[JsonObject] = [
    {},
    {"type": "object", "properties": {"a": True, "b": False, "c": {"type": ["string", "null"]}}},
    {"type": ["object", "null"]},
    {"type": "object", "properties": {"list": {"type": "array"}, "tuple": {"items": [{}, True]}}},
    {
        "properties": {"n": {"$ref": "#/$defs/N"}},
        "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}},
    },
    {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"e": {"enum": list(range(3000))}}},
    {"properties": {"$ref": {"type": "string"}, "type": {"type": "string"}, "required": {}}},
    {"$schema": 7, "x-own": {"type": "strnig"}, "default": {"required": 1}},
    {"allOf": [{"if": {}, "then": {"required": []}}], "additionalProperties": {"type": "integer"}},
]


@pytest.mark.parametrize("mode", ["2025-11-25", "2026-07-28"])
async def test_a_schema_that_is_only_unusual_is_given_as_it_was_sent(mode: str) -> None:
    listed = [GOOD | {"name": f"tool-{n}", "inputSchema": schema} for n, schema in enumerate(USABLE)]
    table = answering(listing(*listed), protocol=mode)
    if mode == "2026-07-28":
        table["args"][1] = "modern_answers"
    async with host(table) as opened:
        tools = await opened.tooling.get("it").list_tools()

    assert [tool.input_schema for tool in tools] == USABLE


async def test_of_a_tool_a_part_that_is_of_no_use_is_left_out_and_not_the_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd_parts = {"description": 7, "title": ["x"], "annotations": "none", "outputSchema": 1, "icons": 3}
    nulls = dict.fromkeys(odd_parts)
    tools = await tools_of(listing(GOOD | odd_parts | {"_meta": 7}, GOOD | {"name": "nulls"} | nulls))

    assert tools == [
        Tool(name="good", input_schema={"type": "object"}),
        Tool(name="nulls", input_schema={"type": "object"}),
    ]
    for key in odd_parts.keys() - {"icons"}:
        assert f"tool 'good': its {key} cannot be a " in caplog.text
    assert "'nulls'" not in caplog.text


async def test_what_a_server_adds_to_a_tool_is_no_obstacle() -> None:
    hints = {"readOnlyHint": True, "mood": "good"}
    more = {
        "title": "Good",
        "vendor": {"k": 1},
        "annotations": hints,
        "_meta": {"": 1},
        "description": "It is.",
    }
    (tool,) = await tools_of(listing(GOOD | more, own=1, _meta={"": None}))

    assert (tool.title, tool.annotations, tool.description) == ("Good", hints, "It is.")


ODD_NAMES = ["a.b", "a/b", "a b", "répète😀", "n" * 200, "Echo", "echo", "a_b", "__proto__", "-x", "\n"]


async def test_a_name_is_kept_and_sent_back_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    answers = listing(*(GOOD | {"name": name} for name in ODD_NAMES))
    answers |= {"tools/call": [{"result": {"content": []}}]}
    async with host(answering(answers, log=log)) as opened:
        it = opened.tooling.get("it")
        listed = [tool.name for tool in await it.list_tools()]
        for name in listed:
            await it.call_tool_blocking(name)

    assert listed == ODD_NAMES
    assert [each["params"]["name"] for each in received(log, "tools/call")] == ODD_NAMES


async def test_two_tools_of_one_name_are_listed_as_they_are_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = await tools_of(listing(GOOD, GOOD | {"description": "another"}, GOOD | {"name": "good too"}))

    assert [(tool.name, tool.description) for tool in tools] == [
        ("good", None),
        ("good", "another"),
        ("good too", None),
    ]
    assert caplog.text.count("2 tools have the name 'good'") == 1


async def test_a_raw_request_for_the_tools_gives_them_as_they_came() -> None:
    came: list[Json] = [GOOD | {"outputSchema": 7, "_meta": {"a": 1}}, {"name": "bad"}]
    async with host(answering(listing(*came, own=1))) as opened:
        raw = await opened.tooling.get("it").request("tools/list")

    assert raw == {"tools": came, "own": 1}


# -- resources -------------------------------------------------------------------------------------


async def test_a_resource_without_a_usable_uri_is_left_out_with_a_warning_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    resources = await resources_of(
        {"uri": "odd://a", "name": "a", "mimeType": "text/plain", "description": "It is."},
        {"name": "no uri"},
        {"name": "a list", "uri": ["odd://b"]},
        {"name": "empty", "uri": ""},
        "odd://c",
        {"uri": "odd://d"},
        {"uri": "odd://e", "name": 7, "mimeType": 7, "size": "large", "icons": 1},
    )

    assert resources == [
        ResourceInfo(uri="odd://a", name="a", mime_type="text/plain", description="It is."),
        ResourceInfo(uri="odd://d", name="odd://d"),
        ResourceInfo(uri="odd://e", name="odd://e"),
    ]
    for left_out in ("'no uri'", "'a list'", "'empty'", "'odd://c'"):
        assert f"resource {left_out} is left out" in caplog.text


ODD_URIS = [
    "users/me",
    "HTTP://Example.COM",
    "http://example.com",
    "http://example.com/",
    "file:///a b.txt",
    "mem://é/%C3%A9",
    "mem://item/{id}",
    "urn:x:Y",
]


async def test_a_uri_is_kept_and_sent_back_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    answers = {"resources/list": [{"result": {"resources": [{"uri": uri, "name": "x"} for uri in ODD_URIS]}}]}
    async with host(answering(answers, log=log)) as opened:
        it = opened.tooling.get("it")
        listed = [each.uri for each in await it.list_resources()]
        for uri in listed:
            assert (await it.read_resource(uri)).content == f"of {uri}"

    assert listed == ODD_URIS
    assert [each["params"]["uri"] for each in received(log, "resources/read")] == ODD_URIS


async def read(*contents: Json) -> Any:
    answers = {"resources/read": [{"result": {"contents": list(contents)}}]}
    async with host(answering(answers)) as opened:
        return await opened.tooling.get("it").read_resource("odd://one")


async def test_of_several_contents_the_first_is_given_and_the_rest_stands_beside_it() -> None:
    came = [
        {"uri": "odd://x", "mimeType": "text/markdown", "text": "# x"},
        {"uri": "odd://y", "mimeType": "application/gzip", "blob": "H4v/AA=="},
        {"uri": "odd://z", "blob": "//79"},
    ]
    content = await read(*came)

    assert (content.content, content.encoding, content.mime_type) == ("# x", "text", "text/markdown")
    assert content.parts == came[1:]


async def test_no_contents_are_an_empty_text() -> None:
    assert (await read()).content == ""


async def test_a_blob_without_a_type_is_bytes() -> None:
    content = await read({"uri": "odd://one", "blob": "//79"})

    assert (content.encoding, content.mime_type, content.bytes()) == ("base64", None, b"\xff\xfe\xfd")


async def test_a_blob_that_is_broken_into_lines_is_base64() -> None:
    assert (await read({"uri": "odd://one", "blob": "//\n79\n"})).bytes() == b"\xff\xfe\xfd"


@pytest.mark.parametrize("blob", ["!!not base64!!", "_-79", "//7", "=", "ä"])
async def test_a_blob_that_is_not_base64_fails_its_read(blob: str) -> None:
    with pytest.raises(ServerError, match="'odd://one': the server sent a blob that is not base64"):
        await read({"uri": "odd://one", "blob": blob})


@pytest.mark.parametrize("content", [{"uri": "odd://one"}, {"text": "x"}, {"uri": "odd://one", "text": 7}, 7])
async def test_a_content_that_is_none_fails_its_read(content: Json) -> None:
    with pytest.raises(ServerError, match="'odd://one': the server's answer is malformed"):
        await read(content)
