"""Where requests go, and what may go with them: redirects, proxies, certificates, secrets."""

from __future__ import annotations

import logging
import os
import resource
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from yarl import URL

from tests.mcp.support import OWN, events_of, host, http, until
from tests.servers.own.odd_http import Message, OddHttp, odd_http, reset, status
from toolpost import ConnectFailed, OpenHost, ServerError
from toolpost.mcp.endpoint import BadEndpoint, proxy_for, shown

TOKEN = "a-token-that-is-long-enough"
SECRETS: dict[str, Any] = {
    "auth_token": TOKEN,
    "headers": {"X-Api-Key": "another-long-secret", "accept": "x/y"},
}
UNLOCKED: dict[str, Any] = {"allow_unlocked_secrets": True}


async def call(opened: OpenHost) -> str:
    return (await opened.tooling.get("it").call_tool_blocking("echo", {"text": "hi"})).value


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# -- secrets ---------------------------------------------------------------------------------------


async def test_the_token_and_the_headers_go_with_every_request() -> None:
    async with odd_http() as server, host(http(server.url, **SECRETS), **UNLOCKED) as opened:
        await call(opened)

    for each in server.seen:
        assert each.headers["Authorization"] == f"Bearer {TOKEN}"
        assert each.headers["X-Api-Key"] == "another-long-secret"
        assert each.headers.getall("Accept") != ["x/y"], "the protocol's own headers are not the config's"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]: a multidict


async def test_a_server_that_gives_the_token_back_does_not_make_it_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with odd_http() as server, host(http(server.url, **SECRETS), **UNLOCKED) as opened:

        async def reflect(request: Any, message: Message) -> Any:
            given = request.headers["Authorization"]
            return await status(401, f"bad: {given}", WWW_Authenticate=f'Bearer realm="{given}"')(
                request, message
            )

        server.on["tools/call"] = reflect
        with pytest.raises(ServerError) as caught:
            await call(opened)
        trace = str(list(opened.trace))

    assert "HTTP 401 Unauthorized" in str(caught.value)
    for told in (str(caught.value), repr(caught.value.data), caplog.text, trace):
        assert TOKEN not in told


# -- redirects -------------------------------------------------------------------------------------


@asynccontextmanager
async def redirecting(code: int, target: str, **keys: Any) -> AsyncGenerator[tuple[OddHttp, OpenHost]]:
    """A server that sends from /mcp to a target, and a host that asks it there."""
    async with odd_http() as server:

        async def redirect(request: Any, message: Message) -> Any:
            if request.path == "/mcp":
                return await status(code, Location=target)(request, message)
            if message.get("method") == "initialize":
                return await server.initialize(request, message)
            return await (status(202) if "id" not in message else server.answer)(request, message)

        for name in ("server/discover", "initialize", "notifications/initialized", "tools/call", "GET"):
            server.on[name] = redirect
        async with host(http(server.url, **keys), **UNLOCKED) as opened:
            yield server, opened


@pytest.mark.parametrize("code", [307, 308])
async def test_a_redirect_within_the_origin_is_followed_with_all_that_it_had(code: int) -> None:
    async with redirecting(code, "/mcp/", **SECRETS) as (server, opened):
        assert await call(opened) == "hi"

    [_, asked] = server.asked("tools/call")
    assert asked.path == "/mcp/"
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["Mcp-Session-Id"] == "session-1"


@pytest.mark.parametrize("code", [301, 302, 303])
async def test_a_redirect_that_would_make_a_get_of_it_is_an_error_that_names_the_target(
    code: int, waits: list[float]
) -> None:
    async with redirecting(code, "/elsewhere?key=secret") as (server, opened):
        with pytest.raises(ConnectFailed, match=rf"HTTP {code}.*/elsewhere; make that the `url`") as caught:
            await call(opened)

    assert "secret" not in str(caught.value)
    assert {each.path for each in server.seen} == {"/mcp"}
    assert waits == []


async def test_nothing_goes_to_another_origin(waits: list[float]) -> None:
    async with odd_http() as other, redirecting(307, other.url, **SECRETS) as (_, opened):
        with pytest.raises(ConnectFailed, match=rf"to another origin, {other.url}; if that is the server"):
            await call(opened)

        assert other.seen == []
    assert waits == []


async def test_a_redirect_in_a_circle_ends(waits: list[float]) -> None:
    async with redirecting(307, "/mcp") as (server, opened):
        with pytest.raises(ConnectFailed, match="redirects more than 5 times"):
            await call(opened)

    assert len(server.asked("initialize")) == 5
    assert waits == []


# -- proxies ---------------------------------------------------------------------------------------


def test_the_environment_names_the_proxy_and_what_goes_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")

    assert proxy_for(URL("https://outside.test/mcp")) == (URL("http://proxy.test:3128"), {})
    assert proxy_for(URL("http://outside.test/mcp")) == (None, {})
    assert proxy_for(URL("https://inside.test/mcp")) == (None, {})


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "127.1.2.3", "[::1]", "my.localhost"])
def test_loopback_is_never_asked_through_a_proxy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")

    assert proxy_for(URL(f"http://{name}:1/mcp")) == (None, {})


def test_the_credentials_of_a_proxy_are_a_header_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "http://me:pass@proxy.test:3128")

    proxy, headers = proxy_for(URL("https://outside.test/mcp"))

    assert proxy == URL("http://proxy.test:3128")
    assert headers == {"Proxy-Authorization": "Basic bWU6cGFzcw=="}


def test_a_proxy_that_cannot_be_used_is_an_error_that_names_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", "socks5://proxy.test:1080")

    with pytest.raises(BadEndpoint, match="socks5 proxy"):
        proxy_for(URL("https://outside.test/mcp"))


async def test_a_request_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with odd_http() as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{proxy.port}")
        async with host(http("http://outside.test/mcp")) as opened:
            assert await call(opened) == "hi"

    assert {each.headers["Host"] for each in proxy.seen} == {"outside.test"}
    assert {each.headers["Proxy-Authorization"] for each in proxy.seen} == {"Basic bWU6cGFzcw=="}


# -- certificates ----------------------------------------------------------------------------------

CERTIFICATE = OWN / "localhost.pem"
"""For this machine alone, signed by itself, with its key: it vouches for nothing."""


def tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_final_and_named(waits: list[float]) -> None:
    async with odd_http(tls()) as server, host(http(server.url, **SECRETS), **UNLOCKED) as opened:
        with pytest.raises(ConnectFailed, match="a certificate that is not trusted"):
            await call(opened)

        assert server.seen == []
    assert waits == []


async def test_the_file_of_the_environment_vouches_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    async with odd_http(tls()) as server, host(http(server.url)) as opened:
        assert await call(opened) == "hi"


# -- texts -----------------------------------------------------------------------------------------


def test_a_url_is_shown_without_what_may_be_a_secret() -> None:
    assert shown(URL("https://me:pass@host.test:8443/mcp?key=secret#x")) == "https://host.test:8443/mcp"


async def test_two_servers_do_not_hurt_each_other() -> None:
    from toolpost import open_host

    async with odd_http() as good, odd_http() as bad:
        bad.on["tools/call"] = reset
        tables = {"good": http(good.url), "bad": http(bad.url)}
        async with open_host({"tooling": tables}) as opened:
            broken = await opened.tooling.get("bad").call_tool("echo", {"text": "x"})
            result = await opened.tooling.get("good").call_tool_blocking("echo", {"text": "hi"})
            envelope = await opened.recv(20)

    assert result.value == "hi"
    assert envelope.id == broken


# -- descriptors -----------------------------------------------------------------------------------


@contextmanager
def no_descriptors() -> Generator[None]:
    """Nothing more can be opened in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    taken: list[int] = []
    try:
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_request_waits_for_a_descriptor_and_takes_no_other_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with odd_http() as server, host(http(server.url)) as opened:
        it = opened.tooling.get("it")
        assert await call(opened) == "hi"
        with no_descriptors():
            ids = [await it.call_tool("echo", {"text": "hi"}) for _ in range(3)]  # one connection was kept
            await until(lambda: "no file descriptor is left" in caplog.text)

        assert [event.kind for event in (await events_of(opened, ids)).values()] == ["tool-result"] * 3
