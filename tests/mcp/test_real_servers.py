"""What toolpost does with servers that nobody here wrote, in both eras of the protocol."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import real
from tests.mcp.support import event_of, events_of, host, recorded, to_server, until
from toolpost import (
    ConnectFailed,
    Error,
    OpenHost,
    ResourceListUpdated,
    ResourceNotFound,
    ResourceUpdated,
    ServerError,
    ToolResult,
    Unsupported,
)
from toolpost.mcp import process
from toolpost.trace.events import Closed

GRAPH = "memory://knowledge-graph"


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


SERVERS: dict[str, Callable[[Path], real.Server]] = {
    "everything": lambda _: real.everything(),
    "memory": lambda folder: real.memory(folder / "memory.jsonl"),
    "filesystem": real.filesystem,
    "time": lambda _: real.time(),
    "git": lambda folder: real.git(repository(folder)),
    "sqlite": lambda folder: real.sqlite(folder / "data.db"),
}


async def described(opened: OpenHost) -> dict[str, Any]:
    backend: Any = opened.tooling.get("it")._backend  # pyright: ignore[reportPrivateUsage]: no public way yet
    return await backend.describe()


@pytest.mark.parametrize(
    ("name", "protocol", "tools", "resources"),
    [
        ("everything", "2025-11-25", 13, 7),
        ("memory", "2025-11-25", 9, 1),
        ("filesystem", "2025-11-25", 14, 0),
        ("time", "2026-07-28", 2, 0),
        ("git", "2026-07-28", 12, 0),
        ("sqlite", "2025-11-25", 6, 1),
    ],
)
async def test_each_server_is_spoken_to_in_its_era_and_lists_all_that_it_has(
    name: str, protocol: str, tools: int, resources: int, tmp_path: Path
) -> None:
    async with host(SERVERS[name](tmp_path).table()) as opened:
        it = opened.tooling.get("it")

        assert len(await it.list_tools()) == tools
        assert len(await it.list_resources()) == resources
        assert (await described(opened))["protocol"] == protocol


async def test_a_tool_is_listed_with_its_schemas(tmp_path: Path) -> None:
    async with host(real.filesystem(tmp_path).table()) as opened:
        tools = {tool.name: tool for tool in await opened.tooling.get("it").list_tools()}

    read = tools["read_text_file"]
    assert read.description is not None
    assert "path" in read.input_schema["properties"]
    assert read.output_schema is not None
    assert read.annotations is not None
    assert read.annotations["readOnlyHint"] is True


async def test_a_resource_is_listed_with_name_and_type() -> None:
    async with host(real.everything().table()) as opened:
        resources = await opened.tooling.get("it").list_resources()

    by_uri = {each.uri: each for each in resources}
    features = by_uri["demo://resource/static/document/features.md"]
    assert features.name == "features.md"
    assert features.mime_type == "text/markdown"


# -- calls -----------------------------------------------------------------------------------------


async def test_a_call_in_place_gives_its_result() -> None:
    async with host(real.everything().table()) as opened:
        result = await opened.tooling.get("it").call_tool_blocking("get-sum", {"a": 2, "b": 3})

    assert result.name == "get-sum"
    assert result.arguments == '{"a":2,"b":3}'
    assert result.value == "The sum of 2 and 3 is 5."
    assert result.is_error is False


async def test_structured_content_is_kept(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    async with host(real.filesystem(tmp_path).table()) as opened:
        result = await opened.tooling.get("it").call_tool_blocking(
            "read_text_file", {"path": str(tmp_path / "note.txt")}
        )

    assert result.value == "hello"
    assert result.structured_content == {"content": "hello"}


async def test_binary_content_is_in_the_blocks_and_not_in_the_value() -> None:
    async with host(real.everything().table()) as opened:
        result = await opened.tooling.get("it").call_tool_blocking("get-tiny-image")

    image = next(block for block in result.content if block["type"] == "image")
    assert base64.b64decode(image["data"]).startswith(b"\x89PNG")
    assert image["data"] not in result.value
    assert result.value.startswith("Here's the image you requested:\n")


async def test_32_queued_calls_are_open_at_once_and_each_gets_its_own_answer() -> None:
    async with host(real.everything().table()) as opened:
        it = opened.tooling.get("it")
        ids = {await it.call_tool("echo", {"message": f"m{n}"}): f"Echo: m{n}" for n in range(32)}
        assert all(it.is_open(id) for id in ids)

        answers = await events_of(opened, ids)

        assert not any(it.is_open(id) for id in ids)
    for id, expected in ids.items():
        answer = answers[id]
        assert isinstance(answer, ToolResult)
        assert answer.value == expected


@pytest.mark.parametrize("name", ["everything", "time"])
async def test_calls_that_were_queued_before_there_was_a_connection_are_sent_in_order(
    name: str, tmp_path: Path
) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(SERVERS[name](tmp_path).table(), log)) as opened:
        it = opened.tooling.get("it")
        ids = [await it.call_tool("no-such-tool", {"n": n}) for n in range(32)]
        await events_of(opened, ids)

    assert [each["params"]["arguments"]["n"] for each in to_server(log, "tools/call")] == list(range(32))


async def test_a_tool_that_reports_a_failure_gives_a_result_that_says_so(tmp_path: Path) -> None:
    async with host(real.filesystem(tmp_path).table()) as opened:
        result = await opened.tooling.get("it").call_tool_blocking("read_text_file", {"path": "/etc/passwd"})

    assert result.is_error is True
    assert "Access denied" in result.value


@pytest.mark.parametrize("name", sorted(SERVERS.keys() - {"sqlite"}))  # which calls it a good result
async def test_an_unknown_tool_is_an_answer_that_names_it(name: str, tmp_path: Path) -> None:
    """Servers differ: some answer with an error, some with a failed result. Either way the agent is told."""
    async with host(SERVERS[name](tmp_path).table()) as opened:
        answer = await event_of(opened, await opened.tooling.get("it").call_tool("no-such-tool"))

    match answer:
        case ToolResult(is_error=True, value=said) | Error(text=said):
            assert "no-such-tool" in said
        case _:
            pytest.fail(f"an unknown tool gave {answer}")


async def test_a_server_error_has_its_code_and_names_tooling_and_tool(tmp_path: Path) -> None:
    async with host(real.time().table()) as opened:
        with pytest.raises(ServerError, match="'it': call_tool 'no-such-tool'") as caught:
            await opened.tooling.get("it").call_tool_blocking("no-such-tool")

    assert isinstance(caught.value.code, int)


async def test_git_and_sqlite_do_their_work(tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    config = {
        "tooling": {"git": real.git(folder).table(), "sqlite": real.sqlite(tmp_path / "data.db").table()}
    }
    from toolpost import open_host

    async with open_host(config) as opened:
        git, sqlite = opened.tooling.get("git"), opened.tooling.get("sqlite")
        (folder / "new.txt").write_text("new")
        status = await git.call_tool_blocking("git_status", {"repo_path": str(folder)})
        await sqlite.call_tool_blocking("create_table", {"query": "CREATE TABLE t (n INTEGER)"})
        await sqlite.call_tool_blocking("write_query", {"query": "INSERT INTO t VALUES (42)"})
        rows = await sqlite.call_tool_blocking("read_query", {"query": "SELECT n FROM t"})

    assert "new.txt" in status.value
    assert rows.value == "[{'n': 42}]"


async def test_any_other_request_gives_its_raw_result() -> None:
    async with host(real.everything().table()) as opened:
        answer = await opened.tooling.get("it").request("prompts/list")

    assert {each["name"] for each in answer["prompts"]} >= {"simple-prompt", "args-prompt"}


async def test_a_request_that_the_server_does_not_know_is_its_error(tmp_path: Path) -> None:
    async with host(real.filesystem(tmp_path).table()) as opened:
        with pytest.raises(ServerError) as caught:
            await opened.tooling.get("it").request("prompts/list")

    assert caught.value.code == -32601


# -- resources -------------------------------------------------------------------------------------


async def test_text_is_read_as_it_is() -> None:
    uri = "demo://resource/static/document/features.md"
    async with host(real.everything().table()) as opened:
        content = await opened.tooling.get("it").read_resource(uri)

    assert content.uri == uri
    assert content.encoding == "text"
    assert content.content == content.text()
    assert content.text().startswith("# Everything Server")


async def test_a_blob_is_read_as_base64_though_the_server_calls_it_text() -> None:
    async with host(real.everything().table()) as opened:
        content = await opened.tooling.get("it").read_resource("demo://resource/dynamic/blob/1")

    assert content.mime_type == "text/plain"
    assert content.encoding == "base64"
    assert content.bytes().startswith(b"Resource 1:")


@pytest.mark.parametrize("name", ["everything", "memory"])
async def test_an_unknown_resource_is_not_found(name: str, tmp_path: Path) -> None:
    async with host(SERVERS[name](tmp_path).table()) as opened:
        with pytest.raises(ResourceNotFound, match="demo://no/such"):
            await opened.tooling.get("it").read_resource("demo://no/such")


# -- subscriptions ---------------------------------------------------------------------------------


async def test_an_update_carries_the_content_after_the_change(tmp_path: Path) -> None:
    async with host(real.memory(tmp_path / "memory.jsonl").table()) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(GRAPH)
        ada = {"name": "Ada", "entityType": "person", "observations": ["counts"]}
        await it.call_tool_blocking("create_entities", {"entities": [ada]})

        event = await event_of(opened, subscription)

        assert it.is_open(subscription)
    assert isinstance(event, ResourceUpdated)
    assert event.uri == GRAPH
    assert json.loads(event.content)["entities"][0]["name"] == "Ada"


async def test_after_unsubscribing_nothing_comes_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(real.memory(tmp_path / "memory.jsonl").table(), log)) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(GRAPH)
        await until(lambda: to_server(log, "resources/subscribe"))
        await it.unsubscribe_resource(subscription)
        await until(lambda: to_server(log, "resources/unsubscribe"))
        entity: dict[str, Any] = {"name": "Bob", "entityType": "person", "observations": []}
        await it.call_tool_blocking("create_entities", {"entities": [entity]})
        await it.read_resource(GRAPH)  # answered after whatever the server had to tell

        assert opened.try_recv() is None
        assert not it.is_open(subscription)


async def test_a_list_update_carries_the_new_list() -> None:
    async with host(real.everything().table()) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource_list()
        await it.list_resources()  # the subscription is on by now: it was asked for first
        arguments = {"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
        await it.call_tool_blocking("gzip-file-as-resource", arguments)

        event = await event_of(opened, subscription)
        packed = await it.read_resource("demo://resource/session/x.gz")

    assert isinstance(event, ResourceListUpdated)
    assert len(event.resources) == 8
    assert "demo://resource/session/x.gz" in {each.uri for each in event.resources}
    assert gzip.decompress(packed.bytes()) == b"hello"


@pytest.mark.parametrize("name", ["filesystem", "time", "sqlite"])
async def test_what_the_server_does_not_declare_is_not_asked_for(name: str, tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(SERVERS[name](tmp_path).table(), log)) as opened:
        it = opened.tooling.get("it")
        one, all_ = await it.subscribe_resource("memo://insights"), await it.subscribe_resource_list()

        events = await events_of(opened, [one, all_])

        assert not it.is_open(one)
        assert not it.is_open(all_)
    assert "did not declare resources.subscribe" in getattr(events[one], "text", "")
    assert "did not declare resources.listChanged" in getattr(events[all_], "text", "")
    asked = {each.get("method") for each in to_server(log)}
    assert asked <= {"server/discover", "initialize", "notifications/initialized"}


async def test_an_update_that_nobody_asked_for_is_passed_over(tmp_path: Path) -> None:
    async with host(real.sqlite(tmp_path / "data.db").table()) as opened:
        it = opened.tooling.get("it")
        await it.call_tool_blocking("append_insight", {"insight": "it sends resources/updated"})
        memo = await it.read_resource("memo://insights")

        assert "it sends resources/updated" in memo.content
        assert opened.try_recv() is None


async def test_reading_from_a_server_without_resources_is_unsupported(tmp_path: Path) -> None:
    async with host(real.filesystem(tmp_path).table()) as opened:
        with pytest.raises(Unsupported, match="did not declare resources"):
            await opened.tooling.get("it").read_resource("file:///x")


# -- cancelling ------------------------------------------------------------------------------------

LONG = {"duration": 600, "steps": 6}
OPERATION = "trigger-long-running-operation"


@pytest.fixture
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does not leave before its long operation has ended: it need not be waited for."""
    monkeypatch.setattr(process, "STDIN_CLOSED_SECS", 0.1)


@pytest.mark.usefixtures("quick_end")
async def test_a_call_that_is_cancelled_while_it_runs_is_cancelled_on_the_wire(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(real.everything().table(), log)) as opened:
        it = opened.tooling.get("it")
        call = await it.call_tool(OPERATION, LONG)
        (sent,) = await until(lambda: to_server(log, "tools/call"))

        await it.cancel(call)
        (cancelled,) = await until(lambda: to_server(log, "notifications/cancelled"))

        assert cancelled["params"]["requestId"] == sent["id"]
        assert not it.is_open(call)
        assert (await it.call_tool_blocking("echo", {"message": "on"})).value == "Echo: on"
        assert opened.try_recv() is None


async def test_a_call_that_is_cancelled_before_it_was_sent_never_is(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(real.everything().table(), log)) as opened:
        it = opened.tooling.get("it")
        call = await it.call_tool(OPERATION, LONG)  # dials
        kept = await it.call_tool("echo", {"message": "kept"})
        await it.cancel(call)
        await event_of(opened, kept)

    assert [each["params"]["name"] for each in to_server(log, "tools/call")] == ["echo"]
    assert to_server(log, "notifications/cancelled") == []


async def test_an_answer_that_waits_in_the_inbox_is_gone_after_cancel(tmp_path: Path) -> None:
    async with host(real.everything().table()) as opened:
        it = opened.tooling.get("it")
        call = await it.call_tool("echo", {"message": "unread"})
        await until(lambda: not it.is_open(call))

        await it.cancel(call)
        await it.cancel(call)

        assert opened.try_recv() is None
        assert [each.reason for each in opened.trace if isinstance(each, Closed)] == ["ended"]


@pytest.mark.usefixtures("quick_end")
async def test_a_call_in_place_that_is_cancelled_is_cancelled_on_the_wire(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(real.everything().table(), log)) as opened:
        it = opened.tooling.get("it")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.call_tool_blocking, OPERATION, LONG)
            await until(lambda: to_server(log, "tools/call"))
            tasks.cancel_scope.cancel()

        await until(lambda: to_server(log, "notifications/cancelled"))


@pytest.mark.usefixtures("quick_end")
async def test_the_end_of_the_host_cancels_what_is_open_on_the_wire(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with host(recorded(real.everything().table(), log)) as opened:
        await opened.tooling.get("it").call_tool(OPERATION, LONG)
        (sent,) = await until(lambda: to_server(log, "tools/call"))

    (cancelled,) = to_server(log, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == sent["id"]


# -- the version -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("time", "2026-07-28"),
        ("time", "2025-11-25"),
        ("time", "2025-06-18"),
        ("sqlite", "2025-11-25"),
        ("everything", "2024-11-05"),
    ],
)
async def test_a_pinned_version_is_spoken(name: str, protocol: str, tmp_path: Path) -> None:
    async with host(SERVERS[name](tmp_path).table() | {"protocol": protocol}) as opened:
        assert (await described(opened))["protocol"] == protocol


@pytest.mark.parametrize(("name", "protocol"), [("everything", "2026-07-28"), ("sqlite", "2026-07-28")])
async def test_a_pinned_version_that_the_server_does_not_speak_is_refused_at_once(
    name: str, protocol: str, tmp_path: Path
) -> None:
    async with host(SERVERS[name](tmp_path).table() | {"protocol": protocol}) as opened:
        with pytest.raises(ConnectFailed) as caught:
            await opened.tooling.get("it").list_tools()

    assert protocol in str(caught.value)
    assert "attempts" not in str(caught.value)


async def test_a_pinned_version_asks_for_no_other(tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    table = recorded(real.sqlite(tmp_path / "data.db").table(), log) | {"protocol": "2025-11-25"}
    async with host(table) as opened:
        await opened.tooling.get("it").list_tools()

    assert to_server(log, "server/discover") == []
