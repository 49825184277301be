"""The keys of kind `mcp`: what they take, and what must hold between them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import toolpost
from toolpost.config import load_config
from toolpost.errors import ConfigError
from toolpost.mcp.kind import KIND
from toolpost.mcp.params import McpParams
from toolpost.secret import Secret, mask


def load(environ: dict[str, str] | None = None, **keys: Any) -> Any:
    source = {"tooling": {"x": {"kind": "mcp", **keys}}}
    return load_config(source, environ=environ or {}, kinds={"mcp": KIND})


def params(environ: dict[str, str] | None = None, **keys: Any) -> McpParams:
    return load(environ, **keys).tooling["x"].params


def problems(environ: dict[str, str] | None = None, **keys: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(environ, **keys)
    return [each.removeprefix("config: tooling.x.") for each in caught.value.problems]


def stdio_problems(environ: dict[str, str] | None = None, **keys: Any) -> list[str]:
    return problems(environ, **{"transport": "stdio", "command": "serve", **keys})


def http_problems(environ: dict[str, str] | None = None, **keys: Any) -> list[str]:
    return problems(environ, **{"transport": "http", "url": "https://example.org/mcp", **keys})


def test_stdio_with_every_key() -> None:
    made = params(
        transport="stdio",
        command="npx",
        args=["-y", "server"],
        env={"API_KEY": "hunter2"},
        cwd="servers",
        inherit_env=["HOME"],
        request_timeout_secs=0.5,
        protocol="2026-07-28",
        include_tools=["read_*"],
        exclude_tools=["*_all"],
    )

    assert made == McpParams(
        transport="stdio",
        command="npx",
        args=["-y", "server"],
        env={"API_KEY": Secret("hunter2")},
        cwd=str(Path.cwd() / "servers"),
        inherit_env=["HOME"],
        request_timeout_secs=0.5,
        protocol="2026-07-28",
        include_tools=["read_*"],
        exclude_tools=["*_all"],
    )


def test_http_with_every_key() -> None:
    made = params(
        transport="http",
        url="http://[::1]:8080/mcp?x=1",
        auth_token="hunter2",
        headers={"X-Key": "hunter3"},
        request_timeout_secs=0,
    )

    assert made == McpParams(
        transport="http",
        url="http://[::1]:8080/mcp?x=1",
        auth_token=Secret("hunter2"),
        headers={"X-Key": Secret("hunter3")},
        request_timeout_secs=0.0,
    )


def test_the_example_of_the_official_server() -> None:
    made = params(transport="stdio", command="npx", args=["-y", "@modelcontextprotocol/server-everything"])

    assert (made.env, made.cwd, made.inherit_env, made.protocol) == ({}, None, False, None)


def test_nothing_shows_a_secret() -> None:
    config = load(transport="stdio", command="serve", env={"API_KEY": "hunter2hunter2"})

    assert "hunter2" not in repr(config)
    assert mask("hunter2hunter2") == "***"


def test_the_transport_is_required_and_one_of_two() -> None:
    assert problems() == ['transport: missing; expected "stdio" or "http"']
    assert problems(transport="pipe") == ['transport: expected "stdio" or "http", found the string \'pipe\'']


@pytest.mark.parametrize("name", ["sse", "streamable-http", "streamable_http", "streamableHttp"])
def test_other_names_for_http_are_answered(name: str) -> None:
    assert problems(transport=name) == [
        (
            f'transport: expected "stdio" or "http", found the string \'{name}\'; '
            'use transport = "http", which is streamable HTTP; the old HTTP+SSE transport is not supported'
        )
    ]


def test_what_a_transport_needs() -> None:
    assert problems(transport="stdio") == ['command: missing; transport = "stdio" needs it']
    assert problems(transport="http") == ['url: missing; transport = "http" needs it']


def test_keys_of_the_other_transport_say_so() -> None:
    there = 'belongs to transport = "stdio"; this tooling has transport = "http"'
    assert http_problems(command="x", args=[], env={}, cwd=".", inherit_env=True) == [
        f"{key}: {there}" for key in ("command", "args", "env", "cwd", "inherit_env")
    ]
    there = 'belongs to transport = "http"; this tooling has transport = "stdio"'
    assert stdio_problems(url="https://example.org", auth_token="hunter2", headers={}) == [
        f"{key}: {there}" for key in ("url", "auth_token", "headers")
    ]


def test_unknown_keys_list_the_known_ones_nearest_first() -> None:
    (problem,) = stdio_problems(arg=[])

    assert problem == (
        "arg: unknown key; known keys: args, auth_token, command, cwd, env, exclude_tools, headers, "
        "include_tools, inherit_env, protocol, request_timeout_secs, transport, url"
    )


def test_wrong_types_are_all_told() -> None:
    assert stdio_problems(
        command=["serve"],
        args=5,
        env={"PORT": 8080, "DEBUG": True, "RATIO": 0.5, "LIST": ["x"]},
        cwd=1,
        inherit_env="HOME",
        request_timeout_secs=-1,
        protocol="2025-01-01",
        include_tools="read_*",
        exclude_tools=[1],
    ) == [
        "command: expected a string, found a list",
        "args: expected a list of strings, found the integer 5",
        "env.PORT: expected a string, found an integer; put it in quotes",
        "env.DEBUG: expected a string, found a boolean; put it in quotes",
        "env.RATIO: expected a string, found a number; put it in quotes",
        "env.LIST: expected a string, found a list",
        "cwd: expected a string, found the integer 1",
        "inherit_env: expected true or false or a list of strings, found the string 'HOME'",
        "request_timeout_secs: expected a number of at least 0, found the integer -1",
        (
            'protocol: expected "2024-11-05" or "2025-03-26" or "2025-06-18" or "2025-11-25" '
            "or \"2026-07-28\", found the string '2025-01-01'"
        ),
        "include_tools: expected a list of strings, found the string 'read_*'",
        "exclude_tools[0]: expected a string, found the integer 1",
    ]


def test_a_secret_in_the_place_of_a_table_is_not_shown() -> None:
    assert stdio_problems(env="API_KEY=hunter2") == ["env: expected a table of strings, found a string"]
    assert http_problems(auth_token={"a": "hunter2"}) == ["auth_token: expected a string, found a table"]


def test_what_no_program_can_be_started_with() -> None:
    nul = "a NUL character cannot be passed to a program"
    assert stdio_problems(
        command=" ",
        args=["a", "b\0"],
        env={"A": "hunter2\0", "B=C": "", "": "", "D\0": ""},
        cwd="",
        inherit_env=[""],
    ) == [
        "command: is empty",
        f"args[1]: {nul}",
        f"env.A: {nul}",
        'env."B=…": not the name of an environment variable',
        'env."": not the name of an environment variable',
        'env."D\\u0000": not the name of an environment variable',
        "cwd: is empty",
        "inherit_env[0]: not the name of an environment variable",
    ]
    assert stdio_problems(command="a\0") == [f"command: {nul}"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "https://",
        "https:///mcp",
        "https://[::1",
        "https://example.org:port",
        "https://example.org:99999",
        "https://example.org:0",
        "https://exa mple.org",
        "https://example.org/\n",
        "//example.org",
    ],
)
def test_a_url_that_is_none_is_refused_and_not_shown(url: str) -> None:
    assert http_problems(url=url) == ["url: expected an http:// or https:// URL with a host"]


@pytest.mark.parametrize("user", ["me@", "me:hunter2@", ":hunter2@", "@"])
def test_a_url_with_credentials_is_refused(user: str) -> None:
    assert http_problems(url=f"https://{user}example.org") == [
        "url: a URL with credentials in it is not accepted; use auth_token or headers"
    ]


def test_headers_that_no_request_can_have() -> None:
    broken = "a header's value has no line break and no NUL"
    assert http_problems(
        headers={"A": "hunter2\r\nB: c", "B:": "x", "": "x", "Ü": "x", "C": 1}, auth_token="a\n"
    ) == [
        f"headers.A: {broken}",
        'headers."B:": not the name of a header',
        'headers."": not the name of a header',
        'headers."Ü": not the name of a header',
        "headers.C: expected a string, found an integer; put it in quotes",
        f"auth_token: {broken}",
    ]
    assert http_problems(auth_token="") == ["auth_token: is empty"]


def test_the_same_header_twice() -> None:
    assert http_problems(headers={"X-A": "1", "x-a": "2"}) == [
        "headers: 'X-A' and 'x-a' are the same header; keep one"
    ]
    assert http_problems(headers={"authorization": "1"}, auth_token="2") == [
        "headers: 'authorization' and auth_token set the same header; keep one"
    ]


def test_variables_are_put_in_where_connections_are_described() -> None:
    environ = {"V": "value", "DIR": "/srv", "HOST": "example.org"}

    made = params(
        environ, transport="stdio", command="${V}", args=["<${V}>"], env={"A": "${V}"}, cwd="${DIR}/x"
    )
    web = params(
        environ, transport="http", url="https://${HOST}/", auth_token="${V}", headers={"A": "${V} ${NONE:-x}"}
    )

    assert (made.command, made.args, made.env["A"].expose(), made.cwd) == (
        "value",
        ["<value>"],
        "value",
        "/srv/x",
    )
    assert web.url == "https://example.org/"
    assert web.auth_token == Secret("value")
    assert web.headers["A"].expose() == "value x"


def test_variables_are_put_in_nowhere_else() -> None:
    made = params(
        transport="stdio", command="a", include_tools=["${V}"], inherit_env=["${V}"], env={"${V}": "x"}
    )

    assert (made.include_tools, made.inherit_env, list(made.env)) == (["${V}"], ["${V}"], ["${V}"])


def test_variables_that_are_not_set_are_all_told() -> None:
    unset = "the environment variable {0} is not set; set it, or write ${{{0}:-default}}"
    assert stdio_problems(args=["${A}", "${B}"], env={"X": "${C}"}) == [
        f"args[0]: {unset.format('A')}",
        f"args[1]: {unset.format('B')}",
        f"env.X: {unset.format('C')}",
    ]
    assert http_problems(auth_token="${TOKEN}") == [f"auth_token: {unset.format('TOKEN')}"]


def test_a_variable_that_is_empty_is_seen_as_what_it_gives() -> None:
    assert http_problems({"TOKEN": ""}, auth_token="${TOKEN}") == ["auth_token: is empty"]
    assert http_problems({"URL": "hunter2"}, url="${URL}") == [
        "url: expected an http:// or https:// URL with a host"
    ]


def test_a_variable_in_the_arguments_is_warned_of() -> None:
    config = load(
        {"TOKEN": "hunter2"}, transport="stdio", command="a", args=["-t", "${TOKEN}", "$${X}", "${Y:-z}"]
    )

    assert config.tooling["x"].params.args == ["-t", "hunter2", "${X}", "z"]
    assert config.warnings == [
        (
            "config: tooling.x.args[1]: ${TOKEN} becomes part of a command line, which every user of this "
            "machine can read; pass secrets in env"
        )
    ]


def test_each_key_has_a_description_and_a_schema_can_be_made() -> None:
    def secret(hint: type) -> dict[str, Any]:
        assert hint is Secret
        return {"type": "string"}

    schema = msgspec.json.schema(McpParams, schema_hook=secret)

    assert all(each["description"] for each in schema["$defs"]["McpParams"]["properties"].values())
    assert json.dumps(schema)


def test_the_kind_imports_no_sdk() -> None:
    code = "import sys, toolpost.mcp.kind; print('mcp' in sys.modules, 'anyio' in sys.modules)"
    source = Path(str(toolpost.__path__[0])).parent

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False False\n"
