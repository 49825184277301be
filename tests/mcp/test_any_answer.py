"""Whatever stands in whatever part of a message: it gives a value, or an error of toolpost's, and no wait."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import msgspec
import pytest

from tests.mcp.support import start_task
from toolpost.errors import ToolpostError
from toolpost.mcp.handlers import Handlers
from toolpost.mcp.line import LineDispatcher
from toolpost.mcp.peer import Peer
from toolpost.model import Json, JsonObject
from toolpost.tooling.port import ToolCall

Path = tuple[str | int, ...]

ANYTHING: list[Json] = [None, 7, -1.5, 10**30, float("inf"), True, "", "x" * 300, [], [None], {}, {"a": None}]
CAPABILITIES: JsonObject = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"p": {"type": "string", "enum": ["a"], "x-mcp-header": "Region"}},
    "required": ["p"],
    "$defs": {"q": {"anyOf": [{}]}},
}
GOOD: dict[str, JsonObject] = {
    "tools/list": {
        "tools": [
            {
                "name": "a",
                "title": "A",
                "description": "It is.",
                "inputSchema": SCHEMA,
                "outputSchema": {"type": "object", "properties": {"r": {"type": "number"}}},
                "annotations": {"readOnlyHint": True},
                "icons": [{"src": "data:,"}],
                "_meta": {"k": 1},
            },
            {"name": "b", "inputSchema": {}},
        ],
        "nextCursor": None,
        "_meta": {},
    },
    "tools/call": {
        "content": [
            {"type": "text", "text": "x"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "structuredContent": {"r": 1},
        "isError": False,
    },
    "resources/list": {
        "resources": [
            {"uri": "odd://a", "name": "a", "mimeType": "text/plain", "size": 1, "annotations": {}}
        ],
    },
    "resources/read": {"contents": [{"uri": "odd://a", "text": "x"}, {"uri": "odd://b", "blob": "AAAA"}]},
    "resources/subscribe": {"_meta": {}},
}
USES: dict[str, Callable[[Peer], Any]] = {
    "tools/list": lambda peer: peer.list_tools(),
    "tools/call": lambda peer: peer.call_tool(ToolCall(name="a", arguments={}, text="{}", timeout=None)),
    "resources/list": lambda peer: peer.list_resources(),
    "resources/read": lambda peer: peer.read_resource("odd://a"),
    "resources/subscribe": lambda peer: peer.subscribe("odd://a"),
}


def places(value: Json, path: Path = ()) -> Iterator[Path]:
    """Where something else can stand."""
    yield path
    if isinstance(value, dict):
        for key, each in cast("JsonObject", value).items():
            yield from places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(cast("list[Json]", value)):
            yield from places(each, (*path, index))


def variants(good: Json) -> Iterator[Json]:
    """The value with anything in each place, or nothing there."""
    for path in places(good):
        for other in ANYTHING:
            yield _changed(good, path, lambda holder, key, other=other: holder.__setitem__(key, other))
        if path:
            yield _changed(good, path, lambda holder, key: holder.__delitem__(key))


def _changed(good: Json, path: Path, change: Callable[[Any, Any], None]) -> Json:
    root: list[Json] = [copy.deepcopy(good)]
    holder: Any = root
    for key in (whole := (0, *path))[:-1]:
        holder = holder[key]
    change(holder, whole[-1])
    return root[0]


class Server:
    """A line whose other end answers every request at once."""

    def __init__(self, era: str) -> None:
        self.writable = asyncio.Event()
        self.writable.set()
        self.answers: JsonObject = dict(GOOD)
        self.answered: list[JsonObject] = []
        """What came for requests of the server."""
        info = {"name": "any", "version": "1"}
        if era == "2025-11-25":
            self.answers["initialize"] = {
                "protocolVersion": era,
                "capabilities": CAPABILITIES,
                "serverInfo": info,
            }
        else:
            self.answers["server/discover"] = {"supportedVersions": [era], "capabilities": CAPABILITIES}
        self.say: Callable[[bytes], None] = lambda _: None

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self.say = on_line

    def write(self, data: bytes) -> None:
        message: JsonObject = json.loads(data)
        if "method" not in message:
            self.answered.append(message)
        elif "id" in message:
            answer: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
            if message["method"] in self.answers:
                answer["result"] = self.answers[message["method"]]
            else:
                answer["error"] = {"code": -32601, "message": "Method not found"}
            asyncio.get_running_loop().call_soon(self.tell, answer)

    def tell(self, message: JsonObject) -> None:
        self.say(json.dumps(message).encode())


@asynccontextmanager
async def connected(era: str) -> AsyncGenerator[tuple[Server, Peer]]:
    server = Server(era)
    peer = Peer(
        "any",
        dispatcher=LineDispatcher(server),
        timeout=5,
        handlers=Handlers(),
        describe_end=lambda: "left",
        start_task=start_task,
    )
    with anyio.fail_after(60):
        async with peer.session:
            await peer.shake_hands(pinned=era, skip_probe=False)
            yield server, peer


each_era = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


@pytest.mark.parametrize(
    ("era", "method"),
    [("2025-11-25", method) for method in USES]
    + [("2026-07-28", method) for method in USES if method != "resources/subscribe"],
)
async def test_any_answer_gives_a_value_or_an_error_of_toolposts(
    era: str, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[ToolpostError] = []
    async with connected(era) as (server, peer):
        for answer in variants(GOOD[method]):
            server.answers[method] = answer
            try:
                msgspec.json.encode(await USES[method](peer))  # a value can go on to a model
            except ToolpostError as error:
                errors.append(error)
        server.answers |= GOOD
        assert [tool.name for tool in await peer.list_tools()] == ["a", "b"]

    assert errors, "a result that is none is one"
    assert [error for error in errors if "no answer within" in str(error)] == []
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


NOTIFICATIONS: dict[str, JsonObject] = {
    "notifications/message": {"level": "info", "logger": "x", "data": {"a": 1}},
    "notifications/resources/updated": {"uri": "odd://a", "_meta": {"k": 1}},
    "notifications/resources/list_changed": {},
    "notifications/tools/list_changed": {},
    "notifications/progress": {"progressToken": 1, "progress": 1, "total": 2, "message": "x"},
    "notifications/cancelled": {"requestId": 1, "reason": "x"},
    "notifications/subscriptions/acknowledged": {"notifications": {"resourceSubscriptions": ["odd://a"]}},
    "notifications/unknown": {},
}


@each_era
async def test_any_notification_leaves_the_session_as_it_was(
    era: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(era) as (server, peer):
        for method, params in NOTIFICATIONS.items():
            for changed in variants({"jsonrpc": "2.0", "method": method, "params": params}):
                server.say(json.dumps(changed).encode())
            assert [tool.name for tool in await peer.list_tools()] == ["a", "b"]

    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


REQUESTS: dict[str, JsonObject] = {
    "ping": {},
    "roots/list": {},
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "why?"}}],
        "maxTokens": 1,
    },
    "elicitation/create": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}},
    "unknown/request": {},
}


@each_era
async def test_any_request_of_a_server_is_answered(era: str, caplog: pytest.LogCaptureFixture) -> None:
    asked = 0
    async with connected(era) as (server, peer):
        for method, params in REQUESTS.items():
            for changed in variants(params):
                asked += 1
                server.tell({"jsonrpc": "2.0", "id": f"ask-{asked}", "method": method, "params": changed})
            assert [tool.name for tool in await peer.list_tools()] == ["a", "b"]

    ids = {cast("str", each["id"]) for each in server.answered if "result" in each or "error" in each}
    assert len(ids) == asked
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []
