"""What a server gets of toolpost's environment, and what never leaves it: the secrets in the config."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest

from tests.mcp.support import event_of, host, odd
from toolpost import (
    ConnectFailed,
    ConnectionLost,
    Error,
    OpenHost,
    ResourceUpdated,
    ServerError,
    ToolResult,
)
from toolpost.mcp.environment import PASSED_ON, server_environment
from toolpost.mcp.params import McpParams
from toolpost.secret import Secret

LEAK = "s3cr3t-t0ken/with+odd=chars"


def passed(params: dict[str, Any], environ: dict[str, str]) -> dict[str, str]:
    given = {name: Secret(value) for name, value in params.pop("env", {}).items()}
    return server_environment(McpParams(transport="stdio", command="x", env=given, **params), environ)


# -- what is passed on -----------------------------------------------------------------------------


async def test_a_server_gets_the_short_list_and_what_env_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_SERVICE_KEY", "not its business")
    async with host(odd(env={"OWN": "given"})) as opened:
        result = await opened.tooling.get("it").call_tool_blocking("environ")

    environ = json.loads(result.value)
    assert environ["OWN"] == "given"
    assert "PATH" in environ
    assert "OTHER_SERVICE_KEY" not in environ
    names = {name for name in environ if not name.startswith(("LC_", "__"))}
    assert names <= PASSED_ON | {"OWN"}


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "LANG", "LC_ALL",
     "TZ", "TMPDIR"],
)  # fmt: skip
def test_what_any_program_needs_is_passed_on(name: str) -> None:
    assert passed({}, {name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "NODE_OPTIONS", "path", "VIRTUAL_ENV"]
)
def test_anything_else_is_not(name: str) -> None:
    assert passed({}, {name: "value"}) == {}


def test_inherit_env_true_passes_everything_on() -> None:
    assert passed({"inherit_env": True}, {"A": "1", "B": "2"}) == {"A": "1", "B": "2"}


def test_inherit_env_with_names_passes_those_on_too() -> None:
    assert passed({"inherit_env": ["B"]}, {"A": "1", "B": "2", "HOME": "/"}) == {"B": "2", "HOME": "/"}


def test_env_goes_before_what_is_inherited() -> None:
    assert passed({"inherit_env": True, "env": {"A": "own"}}, {"A": "1"}) == {"A": "own"}


def test_exported_shell_functions_are_not_passed_on() -> None:
    assert passed({}, {"LC_X": "() { echo; }"}) == {}


async def test_the_error_of_a_failing_start_points_to_inherit_env() -> None:
    async with host(odd("leaky"), tooling_connect_backoff_cap_secs=0) as opened:
        with pytest.raises(ConnectFailed, match="KeyError: 'LEAK'") as caught:
            await opened.tooling.get("it").list_tools()

    assert "`env` or `inherit_env`" in str(caught.value)


# -- secrets ---------------------------------------------------------------------------------------


def everything_said(caplog: pytest.LogCaptureFixture, opened: OpenHost) -> str:
    """All that leaves toolpost besides an agent's own data: logs as formatted and as records, the trace."""
    records = [f"{each.getMessage()} {each.args!r} {each.msg!r} {each.exc_text}" for each in caplog.records]
    return "\n".join([caplog.text, *records, *opened.trace.json_lines()])


def assert_masked(text: str) -> None:
    assert LEAK not in text
    assert json.dumps(LEAK)[1:-1] not in text
    assert base64.b64encode(LEAK.encode()).decode().rstrip("=") not in text
    for start in range(len(LEAK) - 8):  # no piece of it either
        assert LEAK[start : start + 9] not in text


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Every logger speaks, those of asyncio and of the SDK too."""
    caplog.set_level(logging.DEBUG)
    for name in ("toolpost", "mcp", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


async def test_a_secret_that_the_server_writes_wherever_it_can_is_masked(
    debug: pytest.LogCaptureFixture,
) -> None:
    errors: list[str] = []
    async with host(odd("leaky", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        with pytest.raises(ServerError) as refused:
            await it.call_tool_blocking("refuse")
        with pytest.raises(ServerError) as unread:
            await it.read_resource("odd://one")
        with pytest.raises(ServerError) as malformed:
            await it.call_tool_blocking("malformed")
        queued = await event_of(opened, await it.call_tool("refuse"))
        assert isinstance(queued, Error)
        await it.call_tool_blocking("leak")
        with pytest.raises(ConnectionLost) as lost:
            await it.call_tool_blocking("die")
        errors += [str(each.value) for each in (refused, unread, malformed, lost)]
        errors += [queued.text, repr(unread.value.data), repr(refused.value), unread.value.message]

    said = everything_said(debug, opened)
    assert_masked(said)
    assert_masked("\n".join(errors))
    for trace_of_it in ("starting with ***", "early ***", "noise with ***", "dying of ***"):
        assert trace_of_it in said
    assert "*** is not enough" in errors[0]
    assert "dying of ***" in errors[3]


async def test_a_secret_in_a_failing_handshake_is_masked(debug: pytest.LogCaptureFixture) -> None:
    table = odd("leaky", n=1, env={"LEAK": LEAK})
    async with host(table, tooling_connect_backoff_cap_secs=0.2) as opened:
        with pytest.raises(ConnectFailed) as caught:
            await opened.tooling.get("it").list_tools()

    assert "refused, since ***" in str(caught.value)
    assert_masked(str(caught.value))
    assert_masked(everything_said(debug, opened))


async def test_a_tool_result_is_handed_to_the_agent_verbatim_and_masked_in_the_trace(
    debug: pytest.LogCaptureFixture,
) -> None:
    async with host(odd("leaky", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        in_place = await it.call_tool_blocking("leak")
        queued = await event_of(opened, await it.call_tool("leak"))

    assert in_place.value == f"the secret is {LEAK}"
    assert isinstance(queued, ToolResult)
    assert queued.value == f"the secret is {LEAK}"
    assert_masked(everything_said(debug, opened))
    assert any('"the secret is ***"' in line for line in opened.trace.json_lines())


async def test_content_that_an_agent_subscribed_to_is_verbatim(debug: pytest.LogCaptureFixture) -> None:
    uri = f"odd://{LEAK}"
    async with host(odd(env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        subscription = await it.subscribe_resource(uri)
        params = {"method": "notifications/resources/updated", "params": {"uri": uri}}
        await it.call_tool_blocking("notify", params)
        event = await event_of(opened, subscription)

    assert isinstance(event, ResourceUpdated)
    assert event.content == f"of {uri}"
    assert_masked(everything_said(debug, opened))


async def test_a_secret_on_stderr_is_masked_where_a_long_line_is_cut(debug: pytest.LogCaptureFixture) -> None:
    async with host(odd("leaky", env={"LEAK": LEAK})) as opened:
        await opened.tooling.get("it").list_tools()

    assert_masked("".join(each.getMessage() for each in debug.records))
