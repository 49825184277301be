"""The environment's layer over a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.config import Config, load_config
from toolpost.errors import ConfigError
from toolpost.tooling.registry import Kind


def no_backend(*_: Any) -> Any:
    raise AssertionError("a config builds nothing")


def load(source: dict[str, Any], **environ: str) -> Config:
    kinds = {"free": Kind(name="free", factory=no_backend)}
    from toolpost.mcp.kind import KIND

    return load_config(source, environ=environ, kinds={"mcp": KIND, **kinds})


def problems(source: dict[str, Any], **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(source, **environ)
    return list(caught.value.problems)


def http(**keys: Any) -> dict[str, Any]:
    return {"tooling": {"mcp": {"kind": "mcp", "transport": "http", "url": "https://example.org", **keys}}}


def stdio(**keys: Any) -> dict[str, Any]:
    return {"tooling": {"my-files": {"kind": "mcp", "transport": "stdio", "command": "serve", **keys}}}


def test_a_secret_comes_from_the_environment() -> None:
    config = load(http(), TOOLPOST__TOOLING__MCP__AUTH_TOKEN="hunter2")

    assert config.tooling["mcp"].params.auth_token.expose() == "hunter2"


def test_it_wins_over_the_file() -> None:
    assert (
        load({"tunables": {"inbox_bound": 1}}, TOOLPOST__TUNABLES__INBOX_BOUND="2").tunables.inbox_bound == 2
    )


def test_a_table_of_tunables_need_not_be_there() -> None:
    assert load({}, TOOLPOST__TUNABLES__INBOX_BOUND="2").tunables.inbox_bound == 2


def test_names_match_without_regard_to_case_and_dashes() -> None:
    config = load(stdio(), toolpost__Tooling__MY_FILES__Request_Timeout_SECS="0.5")

    assert config.tooling["my-files"].params.request_timeout_secs == 0.5


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("ARGS", '["-y", "5"]', ["-y", "5"]),
        ("COMMAND", "5", "5"),
        ("COMMAND", "true", "true"),
        ("COMMAND", "'quoted'", "quoted"),
        ("COMMAND", "a\nb = 1", "a\nb = 1"),
        ("COMMAND", "1\nb = 1", "1\nb = 1"),
        ("INHERIT_ENV", "true", True),
        ("INHERIT_ENV", '["HOME"]', ["HOME"]),
        ("REQUEST_TIMEOUT_SECS", "5", 5.0),
        ("PROTOCOL", "2025-11-25", "2025-11-25"),
    ],
)
def test_a_value_is_toml_where_that_is_what_the_key_expects(key: str, text: str, value: Any) -> None:
    config = load(stdio(), **{f"TOOLPOST__TOOLING__MY_FILES__{key}": text})

    assert getattr(config.tooling["my-files"].params, key.lower()) == value


def test_a_whole_table_and_single_names_in_it() -> None:
    config = load(
        stdio(env={"A": "file"}),
        TOOLPOST__TOOLING__MY_FILES__ENV='{ B = "whole" }',
        TOOLPOST__TOOLING__MY_FILES__ENV__Api__KEY_x="${not expanded}",
    )

    env = config.tooling["my-files"].params.env
    assert {key: value.expose() for key, value in env.items()} == {
        "B": "whole",
        "Api__KEY_x": "${not expanded}",
    }


def test_headers_keep_their_case() -> None:
    config = load(http(headers={"X-One": "1"}), **{"TOOLPOST__TOOLING__MCP__HEADERS__X-Two": "2"})

    assert list(config.tooling["mcp"].params.headers) == ["X-One", "X-Two"]


def test_agents_and_their_params() -> None:
    source = {"agents": {"alice": {"entry": "a:b", "params": {"Model-Name": "x", "deep": {"n": 1}}}}}

    config = load(
        source,
        TOOLPOST__AGENTS__ALICE__PARAMS__MODEL_NAME="y",
        TOOLPOST__AGENTS__ALICE__PARAMS__DEEP__N="2",
        TOOLPOST__AGENTS__ALICE__PARAMS__NEW__ONE="[true]",
        TOOLPOST__AGENTS__ALICE__ENTRY="c:d",
    )

    assert config.agents["alice"].entry == "c:d"
    assert config.agents["alice"].params == {"Model-Name": "y", "deep": {"n": 2}, "new": {"one": [True]}}


def test_the_kind_decides_about_the_other_keys_of_its_table() -> None:
    config = load(
        {"tooling": {"x": {"kind": "mcp"}}}, TOOLPOST__TOOLING__X__ANY="1", TOOLPOST__TOOLING__X__KIND="free"
    )

    assert config.tooling["x"].kind.name == "free"
    assert config.tooling["x"].params == {"any": 1}


def test_other_variables_are_none_of_its_business() -> None:
    assert load({}, TOOLPOST_CONFIG="x", TOOLPOST="y", XTOOLPOST__A="z").tooling == {}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("TOOLPOST__", "unknown table ''; known tables: agents, tooling, tunables"),
        ("TOOLPOST__TOOL__X__URL", "unknown table 'tool'; known tables: tooling, agents, tunables"),
        ("TOOLPOST__TEST__SEED", "unknown table 'test'; known tables: agents, tooling, tunables"),
        ("TOOLPOST__TUNABLES", "it names a whole table; name one key of it"),
        ("TOOLPOST__TOOLING__MCP", "it names a whole table; name one key of it"),
        ("TOOLPOST__TOOLING__WEB__URL", "no tooling 'web'; known toolings: a-b, a_b, mcp"),
        ("TOOLPOST__TOOLING__A_b__URL", "A_b may be a_b or a-b"),
        ("TOOLPOST__TOOLING__MCP____X", "a name in it is empty"),
        ("TOOLPOST__TOOLING__MCP__HEADERS__", "a name in it is empty"),
        ("TOOLPOST__TOOLING__MCP__URL__X", "tooling.mcp.url has no keys in it"),
        ("TOOLPOST__TOOLING__MCP__ARGS__0", "tooling.mcp.args has no keys in it"),
        ("TOOLPOST__AGENTS__BOB__ENTRY", "no agent 'bob'; known agents: alice"),
        ("TOOLPOST__AGENTS__ALICE__PARAMS__FLAT__X", "agents.alice.params.flat is no table"),
        ("TOOLPOST__AGENTS__ALICE__PARAMS__K_K", "K_K may be k-k or k_k"),
    ],
)
def test_a_variable_that_leads_nowhere_is_named_without_its_value(name: str, why: str) -> None:
    source = http()
    source["tooling"] |= {"a_b": {"kind": "free"}, "a-b": {"kind": "free"}}
    source["agents"] = {"alice": {"entry": "a:b", "params": {"flat": 1, "k-k": 1, "k_k": 2}}}

    assert problems(source, **{name: "hunter2"}) == [f"environment: {name} leads nowhere: {why}"]


def test_an_unknown_key_lists_the_known_ones() -> None:
    (problem,) = problems(http(), TOOLPOST__TOOLING__MCP__AUTH_TOKN="hunter2")

    assert problem.startswith(
        "environment: TOOLPOST__TOOLING__MCP__AUTH_TOKN leads nowhere: unknown key 'auth_tokn'; "
        "known keys: auth_token, "
    )


def test_two_variables_for_one_key() -> None:
    assert problems({}, TOOLPOST__TUNABLES__INBOX_BOUND="1", toolpost__tunables__inbox_bound="2") == [
        (
            "environment: toolpost__tunables__inbox_bound and TOOLPOST__TUNABLES__INBOX_BOUND both set "
            "tunables.inbox_bound"
        )
    ]


def test_a_wrong_value_is_blamed_on_its_variable_and_not_shown() -> None:
    assert problems(
        stdio(),
        TOOLPOST__TUNABLES__INBOX_BOUND="0",
        TOOLPOST__TUNABLES__OPEN_CALLS_BOUND="many",
        TOOLPOST__TOOLING__MY_FILES__TRANSPORT="sse",
        TOOLPOST__TOOLING__MY_FILES__ENV='{ A = 5, "=" = "x" }',
    ) == [
        (
            "config: tunables.inbox_bound (from TOOLPOST__TUNABLES__INBOX_BOUND): "
            "expected an integer of at least 1, found an integer"
        ),
        (
            "config: tunables.open_calls_bound (from TOOLPOST__TUNABLES__OPEN_CALLS_BOUND): "
            "expected an integer of at least 1, found a string"
        ),
        (
            "config: tooling.my-files.transport (from TOOLPOST__TOOLING__MY_FILES__TRANSPORT): "
            'expected "stdio" or "http", found a string; use transport = "http", which is streamable HTTP; '
            "the old HTTP+SSE transport is not supported"
        ),
        (
            "config: tooling.my-files.env.A (from TOOLPOST__TOOLING__MY_FILES__ENV): "
            "expected a string, found an integer; put it in quotes"
        ),
        (
            'config: tooling.my-files.env."=" (from TOOLPOST__TOOLING__MY_FILES__ENV): '
            "not the name of an environment variable"
        ),
    ]


def test_a_script_from_a_variable_is_not_shown() -> None:
    (problem,) = problems({"agents": {"a": {}}}, TOOLPOST__AGENTS__A__SCRIPT="none.py")

    assert problem.startswith(
        "config: agents.a.script (from TOOLPOST__AGENTS__A__SCRIPT): no such file; relative paths start in "
    )


def test_a_kind_that_is_not_known_is_told_once() -> None:
    (problem,) = problems({"tooling": {"x": {"kind": "y"}}}, TOOLPOST__TOOLING__X__A="1")

    assert problem.startswith("config: tooling.x.kind: unknown kind 'y'")


def test_tables_of_the_wrong_type_are_told_once() -> None:
    assert problems(
        {"tunables": 1, "tooling": {"x": 2}},
        TOOLPOST__TUNABLES__INBOX_BOUND="1",
        TOOLPOST__TOOLING__X__URL="2",
    ) == [
        "config: tunables: expected a table, found the integer 1",
        "config: tooling.x: expected a table, found the integer 2",
    ]


plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(st.dictionaries(st.from_regex(r"[A-Za-z][A-Za-z0-9-]*(_[A-Za-z0-9-]+)*", fullmatch=True), plain_text))
def test_every_variable_of_a_server_comes_back_as_it_was_given(env: dict[str, str]) -> None:
    # without quotes, which TOML would take off
    env = {key: value for key, value in env.items() if value.strip()[:1] not in ('"', "'")}

    config = load(
        stdio(), **{f"TOOLPOST__TOOLING__MY_FILES__ENV__{key}": value for key, value in env.items()}
    )

    assert {key: each.expose() for key, each in config.tooling["my-files"].params.env.items()} == env
