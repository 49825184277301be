"""What a server gets of toolpost's environment, and what never leaves it: the secrets in the config."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.mcp.support import Table, event_of, host, odd, until
from toolpost import (
    ConnectFailed,
    ConnectionLost,
    Error,
    Handlers,
    OpenHost,
    RequestTimeout,
    ResourceNotFound,
    ResourceUpdated,
    ServerError,
    ToolpostError,
    ToolResult,
    Unsupported,
)
from toolpost.mcp.dispatcher import LineClosed
from toolpost.mcp.environment import PASSED_ON, server_environment
from toolpost.mcp.faults import NotSent
from toolpost.mcp.malformed import WithoutInput
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


@pytest.mark.parametrize(
    "name", ["TOOLPOST__TOOLING__OTHER__AUTH_TOKEN", "toolpost__tooling__other__auth_token", "TOOLPOST__X"]
)
def test_the_layer_of_the_config_is_passed_on_only_where_it_is_named(name: str) -> None:
    """It may hold the secrets of other toolings."""
    environ = {name: "of another", "TOOLPOST_HOME": "/", "HOME": "/"}

    assert passed({"inherit_env": True}, environ) == {"TOOLPOST_HOME": "/", "HOME": "/"}
    assert passed({}, environ) == {"HOME": "/"}
    assert passed({"inherit_env": [name]}, environ) == {name: "of another", "HOME": "/"}


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


async def test_a_secret_in_what_the_agent_asks_for_is_masked_in_every_error(
    debug: pytest.LogCaptureFixture,
) -> None:
    """A name and a URI are the agent's own, and an error's text may go to a log of its own."""
    uri = f"odd://{LEAK}"
    errors: list[ToolpostError] = []

    async def fails(kind: type[ToolpostError], use: Awaitable[object]) -> None:
        with pytest.raises(kind) as caught:
            await use
        assert type(caught.value) is kind
        errors.append(caught.value)

    async def subscribe(opened: OpenHost) -> None:
        backend: Any = opened.tooling.get("it")._backend  # pyright: ignore[reportPrivateUsage]: unmasked again
        async with backend.subscribe_resource(uri) as changes:
            await anext(changes)

    given: Table = {"env": {"LEAK": LEAK}}
    async with host(odd("leaky", **given, exclude_tools=["not-*"])) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        await fails(Unsupported, it.call_tool_blocking(f"not-{LEAK}"))
        await fails(ServerError, it.call_tool_blocking(f"unknown-{LEAK}"))
        await fails(ServerError, it.call_tool_blocking(f"malformed{LEAK}"))
        await fails(ServerError, it.read_resource(uri))
        await fails(ServerError, it.request(f"odd/{LEAK}"))
        await fails(RequestTimeout, it.call_tool_blocking(f"hold{LEAK}", timeout=0.01))
        await fails(ConnectionLost, it.call_tool_blocking(f"die{LEAK}"))
    async with host(odd("bare", **given)) as opened:
        it = opened.tooling.get("it")
        await fails(Unsupported, it.call_tool_blocking(LEAK))
        await fails(Unsupported, it.read_resource(uri))
        await fails(Unsupported, subscribe(opened))
    async with host(odd("silent", **given)) as opened:
        late = opened.tooling.get("it").call_tool_blocking(LEAK, timeout=0.01)
        await fails(RequestTimeout, late)
    async with host(odd("not_found", **given)) as opened:
        await fails(ResourceNotFound, opened.tooling.get("it").read_resource(uri))
    for protocol in ("2025-11-25", "2026-07-28"):
        async with host(odd("dies_over_subscription", **given, protocol=protocol)) as opened:
            await fails(ConnectionLost, subscribe(opened))
        async with host(odd("refuses_subscription", **given, protocol=protocol)) as opened:
            await fails(ServerError, subscribe(opened))
        table = odd("ignores_subscription", **given, protocol=protocol, request_timeout_secs=0.2)
        async with host(table) as opened:
            await fails(RequestTimeout, subscribe(opened))

    assert len(errors) == 18
    assert all("***" in str(each) for each in errors)
    assert_masked("\n".join(f"{each} {each!r} {each.args!r}" for each in errors))
    assert_masked(debug.text)


async def test_a_request_that_was_never_sent_is_told_masked() -> None:
    async with host(odd(env={"LEAK": LEAK})) as opened:
        await opened.tooling.get("it").list_tools()
        # it is sent again, so it takes two connections that are dead at the right moment to see it
        backend: Any = opened.tooling.get("it")._backend  # pyright: ignore[reportPrivateUsage]
        peer = await backend._connection.ready()
        error = peer.translate(LineClosed(written=False), f"read_resource {LEAK!r}")

    assert isinstance(error, NotSent)
    assert "read_resource '***': the connection was down: the server " in str(error)


START_FAILURES: dict[str, dict[str, Any]] = {
    "not found": {"command": f"no-such-{LEAK.replace('/', '')}"},
    "no folder": {"cwd": f"/no/such/{LEAK}"},
    "not executable": {"command": "/etc/passwd", "cwd": f"/{LEAK}/.."},
}


@pytest.mark.parametrize("keys", START_FAILURES.values(), ids=START_FAILURES)
async def test_a_secret_in_how_a_server_is_started_is_masked_where_that_fails(
    keys: dict[str, Any], debug: pytest.LogCaptureFixture
) -> None:
    secrets = {"LEAK": LEAK, "WITHOUT_SLASH": LEAK.replace("/", "")}
    async with host(odd(env=secrets) | keys) as opened:
        with pytest.raises(ConnectFailed) as caught:
            await opened.tooling.get("it").list_tools()

    assert_masked(str(caught.value))
    assert_masked(everything_said(debug, opened))


@pytest.mark.parametrize("path", ["/short", f"/opt/{LEAK}/bin:/usr/local/bin"])
async def test_a_path_that_env_gives_is_not_shown_when_a_command_is_not_found(
    path: str, debug: pytest.LogCaptureFixture
) -> None:
    async with host(odd(env={"PATH": path}) | {"command": "no-such-command"}) as opened:
        with pytest.raises(ConnectFailed, match="'no-such-command' was not found") as caught:
            await opened.tooling.get("it").list_tools()

    assert "on the PATH that `env` gives" in str(caught.value)
    for part in path.split(":"):
        assert part not in str(caught.value)
        assert part not in everything_said(debug, opened)


async def test_a_secret_in_what_came_in_place_of_an_answer_is_masked(debug: pytest.LogCaptureFixture) -> None:
    async with host(odd("leaky", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        await it.list_tools()
        with pytest.raises(
            RequestTimeout, match=r"7 lines on stdout made no message, the last: x+\*\*\*"
        ) as caught:
            await it.call_tool_blocking("hold", timeout=0.05)

    assert_masked(str(caught.value))


async def test_a_secret_in_a_malformed_notification_is_masked(debug: pytest.LogCaptureFixture) -> None:
    """What is wrong with it is quoted by pydantic, which cuts a long value in its middle."""
    async with host(odd("leaky", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        await it.call_tool_blocking("malformed_notification")
        await until(lambda: debug.text.count("Failed to validate notification") == 2)

    assert_masked(everything_said(debug, opened))


async def test_a_secret_in_a_malformed_answer_of_a_handler_is_masked(debug: pytest.LogCaptureFixture) -> None:
    async def wrong() -> Any:
        return [f"x{LEAK}{'y' * 80}"]

    async with host(odd("asks", env={"LEAK": LEAK}), Handlers(roots=wrong)) as opened:
        await opened.tooling.get("it").call_tool_blocking("ask", {"requests": [{"method": "roots/list"}]})

    assert (
        "a handler of requests of the server raised: roots.0.uri: Input should be a valid URL" in debug.text
    )
    assert_masked(everything_said(debug, opened))


@pytest.mark.parametrize("group", [False, True])
def test_a_malformed_value_is_quoted_in_no_traceback(group: bool, debug: pytest.LogCaptureFixture) -> None:
    """Wherever it stands: as the error, behind it, in a group, in the message."""
    logger = logging.getLogger("tests.malformed")
    WithoutInput.put_on(logger)
    value = f"x{LEAK}{'y' * 80}"
    try:
        try:
            TypeAdapter(int).validate_python(value)
        except ValidationError as error:
            logger.warning("wrong: %s", error)
            raise (ExceptionGroup("more", [error]) if group else KeyError("a")) from error
    except Exception:
        logger.exception("failed")

    assert "wrong: : Input should be a valid integer" in debug.text
    assert debug.text.count("Input should be a valid integer") == (3 if group else 2)
    assert LEAK[:9] not in debug.text


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


async def test_an_error_of_the_tool_is_verbatim_too(debug: pytest.LogCaptureFixture) -> None:
    async with host(odd("leaky_results", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        in_place = await it.call_tool_blocking("fail")
        queued = await event_of(opened, await it.call_tool("fail"))

    assert in_place.is_error
    assert in_place.value == LEAK
    assert queued == in_place
    assert_masked(everything_said(debug, opened))


async def test_a_secret_in_output_schemas_and_in_what_does_not_fit_them_is_masked(
    debug: pytest.LogCaptureFixture,
) -> None:
    async with host(odd("leaky_results", env={"LEAK": LEAK})) as opened:
        it = opened.tooling.get("it")
        with pytest.raises(ServerError, match="structured_content") as blocking:
            await it.call_tool_blocking("strict")
        queued = await event_of(opened, await it.call_tool("strict"))
        for unchecked in ("dangling", "wrong"):
            assert LEAK in (await it.call_tool_blocking(unchecked)).structured_content["s"]

    assert isinstance(queued, Error)
    error = blocking.value
    assert_masked(f"{error} {error!r} {error.message} {error.data} {queued.text}")
    said = everything_said(debug, opened)
    assert_masked(said)
    for warned in (
        "'none-***'",
        "it refers to '/***'",
        "output_schema.type: 'xxx",
        "connected to {'server': '***'",
    ):
        assert warned in said


@pytest.mark.parametrize(("n", "quoted"), [(0, "no access with ***"), (1, "***")])
async def test_a_secret_in_why_a_server_does_not_start_is_masked(
    n: float, quoted: str, debug: pytest.LogCaptureFixture
) -> None:
    table = odd("leaky_start", n=n, env={"LEAK": LEAK})
    async with host(table, tooling_connect_backoff_cap_secs=0) as opened:
        with pytest.raises(ConnectFailed) as caught:
            await opened.tooling.get("it").list_tools()

    assert quoted in str(caught.value)
    assert_masked(str(caught.value))
    assert_masked(everything_said(debug, opened))


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
