"""An MCP server whose resources change on request, on the SDK's lowlevel `Server`, over stdio or HTTP.

    changing.py              over stdio
    changing.py http PORT    http://127.0.0.1:PORT/mcp

It speaks both eras: `resources/subscribe` up to 2025-11-25, `subscriptions/listen` from 2026-07-28 on.
Lists come two a page. Tools:

    set {uri, text}   add {uri, text}   remove {uri}   rewrite {uri, times}   touch {uri}
    wait {}   go {}   progress {}   step {}   ask {what}   fail {}   log {level, text}   close_streams {}

`wait` and `progress` are answered when `go` is called; each `step` makes `progress` report once.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

PAGE = 2
Context: TypeAlias = ServerRequestContext[Any, Any]
Arguments: TypeAlias = dict[str, Any]

data: dict[str, str | bytes] = {
    "demo://a": "alpha",
    "demo://b": "beta",
    "demo://pixel": b"\x89PNG\r\n\x1a\n",
}
subscribed: set[str] = set()
bus = InMemorySubscriptionBus()
listen = ListenHandler(bus)
gates = [anyio.Event()]
"""What `go` opens; the last one is closed."""
steps: list[tuple[anyio.Event, anyio.Event]] = []
"""Of a running `progress`: what makes it report once, and what says that it has."""


def text(value: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def changed(context: Context, uri: str | None) -> None:
    """Announce a change, as the era of the connection wants it. None: the list has changed."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await bus.publish(ResourcesListChanged() if uri is None else ResourceUpdated(uri=uri))
    elif uri is None:
        await context.session.send_resource_list_changed()
    elif any(uri == each or uri.startswith(f"{each.rstrip('/')}/") for each in subscribed):
        await context.session.send_resource_updated(uri)


# -- tools -----------------------------------------------------------------------------------------


async def set_(context: Context, arguments: Arguments) -> types.CallToolResult:
    data[arguments["uri"]] = arguments["text"]
    await changed(context, arguments["uri"])
    return text("set")


async def add(context: Context, arguments: Arguments) -> types.CallToolResult:
    data[arguments["uri"]] = arguments["text"]
    await changed(context, None)
    return text("added")


async def remove(context: Context, arguments: Arguments) -> types.CallToolResult:
    del data[arguments["uri"]]
    await changed(context, None)
    return text("removed")


async def rewrite(context: Context, arguments: Arguments) -> types.CallToolResult:
    for number in range(arguments["times"]):
        data[arguments["uri"]] = str(number)
        await changed(context, arguments["uri"])
    return text("rewritten")


async def touch(context: Context, arguments: Arguments) -> types.CallToolResult:
    await changed(context, arguments["uri"])
    return text("touched")


async def wait(context: Context, arguments: Arguments) -> types.CallToolResult:
    await gates[-1].wait()
    return text("gone")


async def go(context: Context, arguments: Arguments) -> types.CallToolResult:
    gates.pop().set()
    gates.append(anyio.Event())
    return text("go")


async def progress(context: Context, arguments: Arguments) -> types.CallToolResult:
    async def report() -> None:
        number = 0
        while True:
            steps.append(step := (anyio.Event(), anyio.Event()))
            taken, reported = step
            await taken.wait()
            number += 1
            await context.session.report_progress(number)
            reported.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report)
        await gates[-1].wait()
        tasks.cancel_scope.cancel()
    return text("progressed")


async def step(context: Context, arguments: Arguments) -> types.CallToolResult:
    while not steps:  # noqa: ASYNC110  # a test's server may poll
        await anyio.sleep(0.01)
    taken, reported = steps.pop()
    taken.set()
    await reported.wait()
    return text("step")


async def ask(
    context: Context, arguments: Arguments, answers: types.InputResponses | None
) -> types.CallToolResult | types.InputRequiredResult:
    """Ask the client for something, and answer with what it answered."""
    request = requests()[arguments["what"]]
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if answers is None:
            return types.InputRequiredResult(input_requests={"it": request})
        answer = answers["it"]
    else:
        try:
            answer = await context.session.send_request(request, RESULTS[arguments["what"]])
        except MCPError as error:
            return text(json.dumps({"refused": error.error.code, "why": error.error.message}))
    return text(answer.model_dump_json(by_alias=True, exclude_none=True))


def requests() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="why?"))
    form = types.ElicitRequestFormParams(message="who?", requested_schema=schema)
    return {
        "elicitation": types.ElicitRequest(params=form),
        "roots": types.ListRootsRequest(),
        "sampling": types.CreateMessageRequest(
            params=types.CreateMessageRequestParams(messages=[question], max_tokens=7)
        ),
    }


RESULTS: dict[str, Any] = {
    "elicitation": types.ElicitResult,
    "roots": types.ListRootsResult,
    "sampling": types.CreateMessageResult,
}


async def fail(context: Context, arguments: Arguments) -> types.CallToolResult:
    return text("it broke").model_copy(update={"is_error": True})


async def log(context: Context, arguments: Arguments) -> types.CallToolResult:
    await context.session.send_log_message(  # pyright: ignore[reportDeprecated]: served all the same
        arguments["level"], arguments["text"], arguments.get("logger"), related_request_id=context.request_id
    )
    return text("logged")


async def close_streams(context: Context, arguments: Arguments) -> types.CallToolResult:
    listen.close()
    return text("closed")


Run: TypeAlias = Callable[[Context, Arguments], Awaitable[types.CallToolResult]]
TOOLS: dict[str, Run] = {
    "set": set_,
    "add": add,
    "remove": remove,
    "rewrite": rewrite,
    "touch": touch,
    "wait": wait,
    "go": go,
    "progress": progress,
    "step": step,
    "fail": fail,
    "log": log,
    "close_streams": close_streams,
}


# -- handlers --------------------------------------------------------------------------------------


def cursor(params: types.PaginatedRequestParams | None) -> int:
    return int(params.cursor) if params is not None and params.cursor else 0


def next_cursor(start: int, total: int) -> str | None:
    return str(start + PAGE) if start + PAGE < total else None


async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    names, start = [*TOOLS, "ask"], cursor(params)
    page = [types.Tool(name=each, input_schema={"type": "object"}) for each in names[start : start + PAGE]]
    return types.ListToolsResult(tools=page, next_cursor=next_cursor(start, len(names)))


async def call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name == "ask":
        return await ask(context, params.arguments or {}, params.input_responses)
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await TOOLS[params.name](context, params.arguments or {})


async def list_resources(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    uris, start = list(data), cursor(params)
    page = [types.Resource(uri=each, name=each.rsplit("/", 1)[-1]) for each in uris[start : start + PAGE]]
    return types.ListResourcesResult(resources=page, next_cursor=next_cursor(start, len(uris)))


async def read_resource(
    context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = params.uri
    if uri not in data:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    value = data[uri]
    if isinstance(value, str):
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=value)
    else:
        blob = base64.b64encode(value).decode()
        content = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=blob)
    return types.ReadResourceResult(contents=[content])


async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(params.uri)
    return types.EmptyResult()


async def unsubscribe(context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(params.uri)
    return types.EmptyResult()


def build() -> Server[Any]:
    return Server(
        "changing",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listen,
    )


async def serve() -> None:
    server = build()
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, options)


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        app = build().streamable_http_app(host="127.0.0.1")
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
    else:
        anyio.run(serve)
