"""Servers over HTTP that are processes of their own, in both eras: they are killed, and come back."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import real
from tests.mcp.support import OWN, event_of, host, http, states
from toolpost import OpenHost, ResourceListUpdated, ResourceUpdated, ServerError

OLD, NEW = "2025-11-25", "2026-07-28"
A = "demo://a"
PATIENT: dict[str, Any] = {"tooling_connect_backoff_start_ms": 50}

both_eras = pytest.mark.parametrize("era", [OLD, NEW])


class Process:
    """A server on a port of its own, which it keeps over restarts."""

    def __init__(self, command: list[str], **env: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._command = [each.replace("{port}", str(self.port)) for each in command]
        self._env = os.environ | env | {"PORT": str(self.port)}
        self.start()

    def start(self) -> None:
        silent = subprocess.DEVNULL
        self.process = subprocess.Popen(self._command, env=self._env, stdout=silent, stderr=silent)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def table(self, **keys: Any) -> dict[str, Any]:
        return http(f"http://127.0.0.1:{self.port}/mcp", **keys)


@contextmanager
def running(command: list[str], **env: str) -> Generator[Process]:
    process = Process(command, **env)
    try:
        yield process
    finally:
        process.kill()


@pytest.fixture
def changing() -> Generator[Process]:
    with running([sys.executable, str(OWN / "changing.py"), "http", "{port}"]) as process:
        yield process


@pytest.fixture
def everything() -> Generator[Process]:
    server = real.everything()
    with running([server.command, server.args[0], "streamableHttp"]) as process:
        yield process


async def set_(opened: OpenHost, text: str) -> None:
    await opened.tooling.get("it").call_tool_blocking("set", {"uri": A, "text": text})


@both_eras
async def test_each_era_lists_calls_reads_and_tells_of_changes(era: str, changing: Process) -> None:
    async with host(changing.table(protocol=era), **PATIENT) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await set_(opened, "changed")

        told = await event_of(opened, subscription)
        assert told == ResourceUpdated(uri=A, mime_type="text/plain", content="changed")
        assert "set" in {each.name for each in await it.list_tools()}
        assert (await it.read_resource(A)).content == "changed"
        with pytest.raises(ServerError, match="Unknown tool: none"):
            await it.call_tool_blocking("none")


async def test_the_list_of_resources_is_followed(changing: Process) -> None:
    async with host(changing.table(protocol=NEW), **PATIENT) as opened:
        it = opened.tooling.get("it")
        listing = await it.subscribe_resource_list()
        await it.call_tool_blocking("add", {"uri": "demo://new", "text": "new"})

        told = await event_of(opened, listing)
        assert isinstance(told, ResourceListUpdated)
        assert "demo://new" in {each.uri for each in told.resources}


async def test_the_newest_era_is_found(changing: Process) -> None:
    async with host(changing.table(), **PATIENT) as opened:
        subscription = await opened.tooling.get("it").subscribe_resource(A)
        await set_(opened, "changed")
        await event_of(opened, subscription)
        await opened.tooling.get("it").call_tool_blocking("close_streams")  # there are none in the old one

        assert isinstance(await event_of(opened, subscription), ResourceUpdated)


@both_eras
async def test_the_next_call_after_a_kill_works_and_a_subscription_goes_on(
    era: str, changing: Process
) -> None:
    async with host(changing.table(protocol=era), **PATIENT) as opened:
        subscription = await opened.tooling.get("it").subscribe_resource(A)
        await set_(opened, "before")
        await event_of(opened, subscription)

        changing.kill()
        changing.start()

        await set_(opened, "after")
        while True:  # the refresh after the reconnect, then the update, in one or in two
            event = await event_of(opened, subscription)
            assert isinstance(event, ResourceUpdated)
            if event.content == "after":
                break
        await set_(opened, "once more")
        event = await event_of(opened, subscription)
        assert isinstance(event, ResourceUpdated)
        assert event.content == "once more"


@both_eras
async def test_a_listener_that_makes_no_call_is_told_after_a_kill(era: str, changing: Process) -> None:
    async with host(changing.table(protocol=era), **PATIENT) as opened:
        subscription = await opened.tooling.get("it").subscribe_resource(A)
        await set_(opened, "before")
        await event_of(opened, subscription)

        changing.kill()
        changing.start()

        event = await event_of(opened, subscription)
        assert isinstance(event, ResourceUpdated)
        assert event.content == "alpha", "what the new process holds"


async def test_a_stream_of_changes_that_the_server_ends_is_opened_again(changing: Process) -> None:
    async with host(changing.table(protocol=NEW), **PATIENT) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(A)
        await set_(opened, "before")
        await event_of(opened, subscription)
        await it.call_tool_blocking("close_streams")
        await event_of(opened, subscription)
        await set_(opened, "after")

        event = await event_of(opened, subscription)
        assert isinstance(event, ResourceUpdated)
        assert event.content == "after"


async def test_a_call_that_is_cancelled_in_the_new_era_ends_its_request(changing: Process) -> None:
    async with host(changing.table(protocol=NEW), **PATIENT) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        waiting = await it.call_tool("wait", {})
        await it.cancel(waiting)
        await set_(opened, "goes on")


@pytest.mark.needs_node
async def test_server_everything_works_and_survives_a_kill(everything: Process) -> None:
    async with host(everything.table(), **PATIENT) as opened:
        it = opened.tooling.get("it")
        assert "echo" in {each.name for each in await it.list_tools()}
        assert (await it.call_tool_blocking("echo", {"message": "hi"})).value == "Echo: hi"
        assert (await it.call_tool_blocking("get-sum", {"a": 2, "b": 3})).value == "The sum of 2 and 3 is 5."

        everything.kill()
        everything.start()

        assert (await it.call_tool_blocking("echo", {"message": "again"})).value == "Echo: again"
        assert states(opened.trace)[:4] == ["dialing", "ready", "lost", "dialing"]


@pytest.mark.needs_node
async def test_server_everything_reports_progress_on_the_stream_of_a_call(everything: Process) -> None:
    async with host(everything.table(request_timeout_secs=1.5), **PATIENT) as opened:
        result = await opened.tooling.get("it").call_tool_blocking(
            "trigger-long-running-operation", {"duration": 2, "steps": 8}
        )

    assert "completed" in result.value
