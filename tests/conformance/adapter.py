"""The client that the conformance suite tests: what a scenario asks for, done with toolpost's own interface.

    adapter.py URL

The suite says by environment variables what is to be done: MCP_CONFORMANCE_SCENARIO names it,
MCP_CONFORMANCE_CONTEXT is a JSON object with its data. Only what the suite's servers see is judged, so
results are written to stderr, for people.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

from toolpost import Handlers, Tooling, open_host

Json = dict[str, Any]

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT: Json = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")

FILLERS: Json = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


# -- what the host answers -------------------------------------------------------------------------


async def elicit(params: Json) -> Json:
    """A user who accepts, and leaves every field as the form proposes it."""
    fields: Json = params.get("requestedSchema", {}).get("properties", {})
    content = {name: field.get("default", FILLERS.get(field.get("type"))) for name, field in fields.items()}
    return {"action": "accept", "content": content}


async def sample(params: Json) -> Json:
    return {"role": "assistant", "content": {"type": "text", "text": "so be it"}, "model": "none"}


HANDLERS = Handlers(roots=[], sampling=sample, elicitation=elicit)


# -- what the host does ----------------------------------------------------------------------------


def arguments(schema: Json) -> Json:
    """The least that a schema wants."""
    properties: Json = schema.get("properties") or {}
    required: list[str] = schema.get("required") or []
    return {name: FILLERS.get(properties.get(name, {}).get("type"), "text") for name in required}


async def list_tools(it: Tooling) -> None:
    say(await it.list_tools())


async def call_tools(it: Tooling) -> None:
    for tool in await it.list_tools():
        say(await it.call_tool_blocking(tool.name, arguments(tool.input_schema)))


async def ask_anything(it: Tooling) -> None:
    """The server declares nothing, so toolpost's own calls would not ask it."""
    say(await it.request("tools/list"))


async def use_everything(it: Tooling) -> None:
    await call_tools(it)
    for resource in await it.list_resources():
        say(await it.read_resource(resource.uri))
    for prompt in (await it.request("prompts/list"))["prompts"]:
        say(await it.request("prompts/get", {"name": prompt["name"]}))


async def call_as_told(it: Tooling) -> None:
    listed = {tool.name for tool in await it.list_tools()}
    for call in CONTEXT["toolCalls"]:
        if call["name"] in listed:
            say(await it.call_tool_blocking(call["name"], call.get("arguments") or {}))


async def answer_for_input(it: Tooling) -> None:
    """Calls that ask for input before they answer: with state, between them one without, and one of old."""
    await list_tools(it)
    for case in ("echo_state", "unrelated", "no_state", "no_result_type"):
        say(await it.call_tool_blocking(f"test_mrtr_{case}"))


async def return_schema(it: Tooling) -> None:
    tools = {tool.name: tool for tool in await it.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    say(await it.call_tool_blocking("json_schema_echo", {"schema": schema}))


SCENARIOS: dict[str, Callable[[Tooling], Awaitable[None]]] = {
    "initialize": list_tools,
    "json-schema-ref-no-deref": list_tools,
    "request-metadata": ask_anything,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "sep-2322-client-request-state": answer_for_input,
    "json-schema-2020-12-preservation": return_schema,
}
"""The others list the tools and call each."""


# -- a token ---------------------------------------------------------------------------------------


def token(url: str) -> str:
    """A bearer token, got as an operator would: by a client's credentials, outside of toolpost."""
    parts = urllib.parse.urlsplit(url)
    resource = fetch(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}")
    issuer = urllib.parse.urlsplit(str(resource["authorization_servers"][0]))
    place = f"/.well-known/oauth-authorization-server{issuer.path.rstrip('/')}"
    server = fetch(f"{issuer.scheme}://{issuer.netloc}{place}")
    credentials = base64.b64encode(f"{CONTEXT['client_id']}:{CONTEXT['client_secret']}".encode()).decode()
    form = {"grant_type": "client_credentials", "resource": resource["resource"]}
    granted = fetch(server["token_endpoint"], form, {"Authorization": f"Basic {credentials}"})
    return granted["access_token"]


def fetch(url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None) -> Json:
    body = None if form is None else urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers or {}), timeout=10) as response:
        return json.load(response)


# -- running ---------------------------------------------------------------------------------------


def say(what: object) -> None:
    sys.stderr.write(f"{what!r}\n")


async def main(url: str) -> None:
    tooling: Json = {"kind": "mcp", "transport": "http", "url": url}
    if SCENARIO == "auth/client-credentials-basic":
        tooling["auth_token"] = token(url)
    async with open_host({"tooling": {"it": tooling}}, handlers={"it": HANDLERS}) as host:
        await SCENARIOS.get(SCENARIO, call_tools)(host.tooling.get("it"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
