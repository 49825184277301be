"""Editors' servers become toolings: what is carried over, what is withheld, what is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import example, given
from hypothesis import strategies as st

from toolpost.config.editors import EDITORS, places, workspace_of
from toolpost.config.importing import Imported, import_servers
from toolpost.config.load import load_config
from toolpost.errors import ConfigError


def imported(servers: Any, *, environ: dict[str, str] | None = None, **rest: Any) -> Imported:
    """What an editor's servers give."""
    content = json.dumps({"mcpServers": servers}).encode()
    return import_servers(content, label="mcp.json", environ=environ or {}, **rest)


def tooling(entry: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """The table of one server, called `it`."""
    return tomli.loads(imported({"it": entry}, **rest).toml())["tooling"]["it"]


def only_variables(result: Imported) -> list[str]:
    return [each.name for each in result.variables]


# -- kinds of servers ------------------------------------------------------------------------------


def test_a_command_becomes_stdio() -> None:
    assert tooling({"command": "npx", "args": ["-y", 1, True], "cwd": "/srv"}) == {
        "kind": "mcp",
        "transport": "stdio",
        "command": "npx",
        "args": ["-y", "1", "true"],
        "cwd": "/srv",
    }


@pytest.mark.parametrize("entry", [{"type": "http"}, {"type": "streamable-http"}, {}])
def test_a_url_becomes_http(entry: dict[str, Any]) -> None:
    found = tooling(entry | {"url": "https://a.example/mcp"})

    assert found == {"kind": "mcp", "transport": "http", "url": "https://a.example/mcp"}


UNUSABLE: list[tuple[Any, str]] = [
    ({"type": "sse", "url": "https://a.example/x"}, "old HTTP+SSE"),
    ({"url": "https://a.example/sse?x=1"}, "old HTTP+SSE"),
    ({"type": "ws", "url": "wss://a.example"}, 'its type is "ws"; toolpost has stdio and http'),
    ({"type": 7, "url": "https://a.example"}, "its type is no text"),
    ({"type": "http"}, "it has no url"),
    ({}, "neither a command nor a url"),
    ({"command": "x", "url": "https://a.example"}, "both a command and a url"),
    ({"command": " "}, "command: is empty"),
    ({"command": "x", "args": "y"}, "args is no list"),
    ({"command": "x", "args": [[]]}, "a text was expected"),
    ({"command": "x", "env": []}, "env is no table"),
    ({"command": "x", "env": {"A=B": "c"}}, "not the name of an environment variable"),
    ({"url": "ftp://a.example"}, "expected an http:// or https:// URL"),
    ({"command": "\ud800"}, "no Unicode"),
    ("npx", "expected a table"),
]


@pytest.mark.parametrize(("entry", "why"), UNUSABLE)
def test_what_cannot_be_used_is_left_out_with_a_reason(entry: Any, why: str) -> None:
    result = imported({"it": entry, "good": {"command": "x"}})

    assert why in result.left_out["it"]
    assert list(tomli.loads(result.toml())["tooling"]) == ["good"]
    assert f'# Left out: "it": {result.left_out["it"]}\n' in result.toml()


def test_vs_codes_settings_and_claude_codes_projects_are_read_too() -> None:
    settings = {"mcp": {"servers": {"a": {"command": "x"}}}}
    code: Any = {"projects": {"/p": {"mcpServers": {"b": {"command": "x"}}}, "/q": {"mcpServers": {"c": {}}}}}

    first = import_servers(json.dumps(settings).encode(), label="x", environ={})
    second = import_servers(json.dumps(code).encode(), label="x", environ={}, project="/p")

    assert [each.name for each in first.servers] == ["a"]
    assert [each.name for each in second.servers] == ["b"]
    assert second.notes == ['Not imported: the servers of the project "/q"; import from there']


# -- names -----------------------------------------------------------------------------------------


def test_names_that_collide_or_are_no_table_names_are_changed_and_told() -> None:
    names = ["git hub", "git-hub", "GIT_HUB", "日本", "a__b", "plain"]

    result = imported({name: {"command": "x"} for name in names})

    assert {each.source: each.name for each in result.servers} == {
        "git hub": "git-hub-3",
        "git-hub": "git-hub",
        "GIT_HUB": "GIT_HUB-2",
        "日本": "server",
        "a__b": "a_b",
        "plain": "plain",
    }
    assert [each.source for each in result.servers if each.notes] == ["git hub", "GIT_HUB", "日本", "a__b"]


def test_a_name_that_stands_twice_is_told() -> None:
    content = b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}'

    result = import_servers(content, label="x", environ={})

    assert result.servers[0].table["command"] == "y"
    assert result.notes == ['"a" stands there twice; the last one counts']


def test_a_name_cannot_break_out_of_its_comment() -> None:
    result = imported({"x\n[tooling.evil]\nkind": {"command": "x"}, "y\n[agents": {}})

    assert list(tomli.loads(result.toml())) == ["tooling"]
    assert len(tomli.loads(result.toml())["tooling"]) == 1


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "key", "becomes"),
    [
        ({"command": "x", "env": {"API_KEY": "s3cr3t"}}, "env", {"API_KEY": "${API_KEY}"}),
        ({"command": "x", "env": {"n": 5, "EMPTY": ""}}, "env", {"n": "${N}", "EMPTY": ""}),
        ({"command": "x", "env": {"K": "${input:my-key}"}}, "env", {"K": "${MY_KEY}"}),
        ({"command": "x", "env": {"K": "${env:OTHER}"}}, "env", {"K": "${OTHER}"}),
        ({"command": "x", "env": {"K": "a-${env:OTHER}"}}, "env", {"K": "${K}"}),
        ({"command": "x", "env": {"K": "${OTHER:-s3cr3t}"}}, "env", {"K": "${K}"}),
        ({"url": "https://a.b", "headers": {"X-Key": "s3cr3t"}}, "headers", {"X-Key": "${IT_X_KEY}"}),
        ({"url": "https://a.b", "headers": {"Authorization": "Bearer s3cr3t"}}, "auth_token", "${IT_TOKEN}"),
        ({"url": "https://a.b", "headers": {"authorization": "bearer ${T}"}}, "auth_token", "${T}"),
        ({"url": "https://u:s3cr3t@a.b/m"}, "headers", {"Authorization": "${IT_AUTHORIZATION}"}),
        ({"url": "https://u:s3cr3t@a.b/m"}, "url", "https://a.b/m"),
        ({"url": "https://a.b/m?apiKey=s3cr3t&v=2"}, "url", "https://a.b/m?apiKey=${APIKEY}&v=2"),
        (
            {"url": "https://a.b/s/0123456789abcdef0123456789abcdef/mcp"},
            "url",
            "https://a.b/s/${IT_URL}/mcp",
        ),
        ({"command": "x", "args": ["--token", "s3cr3t"]}, "args", ["--token", "${TOKEN}"]),
        ({"command": "x", "args": ["--api-key=s3cr3t"]}, "args", ["--api-key=${API_KEY}"]),
        ({"command": "x", "args": ["-e", "MY_TOKEN=s3cr3t"]}, "args", ["-e", "MY_TOKEN=${MY_TOKEN}"]),
        (
            {"command": "x", "args": ["--header", "Authorization: Bearer s3cr3t"]},
            "args",
            ["--header", "Authorization: Bearer ${AUTHORIZATION}"],
        ),
        (
            {"command": "x", "args": ["postgresql://me:s3cr3t@db/x"]},
            "args",
            ["postgresql://me:${PASSWORD}@db/x"],
        ),
        ({"command": "x", "args": ["sk-s3cr3t0123456789"]}, "args", ["${IT_TOKEN}"]),
    ],
)
def test_a_secret_becomes_a_variable(entry: dict[str, Any], key: str, becomes: Any) -> None:
    result = imported({"it": entry})

    assert tomli.loads(result.toml())["tooling"]["it"][key] == becomes
    assert "s3cr3t" not in result.toml()
    assert "s3cr3t" not in repr(result)


def test_equal_secrets_share_a_variable_and_different_ones_do_not() -> None:
    result = imported(
        {
            "a": {"command": "x", "env": {"TOKEN": "1"}},
            "b": {"command": "x", "env": {"TOKEN": "1"}},
            "c": {"command": "x", "env": {"TOKEN": "2"}},
            "d": {"command": "x", "env": {"OTHER": "${env:C_TOKEN}"}},
        }
    )

    tables = tomli.loads(result.toml())["tooling"]
    assert [tables[name]["env"] for name in "abcd"] == [
        {"TOKEN": "${TOKEN}"},
        {"TOKEN": "${TOKEN}"},
        {"TOKEN": "${C_TOKEN_2}"},
        {"OTHER": "${C_TOKEN}"},
    ]


def test_a_variable_that_has_another_value_already_is_not_taken() -> None:
    environ = {"PATH": "/usr/bin", "SAME": "1"}

    env = tooling({"command": "x", "env": {"PATH": "/opt/bin", "SAME": "1"}}, environ=environ)["env"]

    assert env == {"PATH": "${IT_PATH}", "SAME": "${SAME}"}


def test_variables_are_listed_with_their_place_and_the_editors_question() -> None:
    document = {
        "inputs": [{"id": "key", "description": "Your key"}],
        "servers": {"it": {"command": "x", "env": {"K": "${input:key}", "L": "secret"}}},
    }

    result = import_servers(json.dumps(document).encode(), label="x", environ={})

    assert [(each.name, each.where, each.about) for each in result.variables] == [
        ("KEY", "tooling.it.env.K", "Your key"),
        ("L", "tooling.it.env.L", ""),
    ]


# -- editors' variables ----------------------------------------------------------------------------


def test_editors_variables_become_ours() -> None:
    args = ["${workspaceFolder}/a", "${userHome}", "a${/}b", "${LEVEL:-debug}", "${command:pick}", "$${x"]

    result = imported({"it": {"command": "x", "args": args}}, workspace="/srv")

    assert result.servers[0].table["args"] == [
        "/srv/a",
        "${HOME}",
        "a/b",
        "${LEVEL:-debug}",
        "${COMMAND_PICK}",
        "$$${x",
    ]
    assert only_variables(result) == ["HOME", "COMMAND_PICK"]


def test_without_a_project_its_folder_is_a_variable() -> None:
    assert tooling({"command": "${workspaceFolder}/run"})["command"] == "${WORKSPACE_FOLDER}/run"


# -- other keys ------------------------------------------------------------------------------------


def test_a_server_that_is_switched_off_is_a_comment_and_needs_no_variable() -> None:
    result = imported({"off": {"command": "x", "env": {"K": "v"}, "disabled": True}, "on": {"command": "x"}})

    assert list(tomli.loads(result.toml())["tooling"]) == ["on"]
    assert '# [tooling.off.env]\n# K = "${K}"\n' in result.toml()
    assert result.variables == []


def test_switched_off_tools_are_excluded_by_their_very_names() -> None:
    assert tooling({"command": "x", "disabledTools": ["a", "b*"]})["exclude_tools"] == ["a", "b[*]"]


def test_keys_without_a_counterpart_are_told() -> None:
    result = imported({"it": {"command": "x", "envFile": ".env", "description": "nice", "odd": 1}})

    assert sorted(result.servers[0].notes) == [
        'not carried over: "envFile" (toolpost reads no such file; set its variables)',
        'not carried over: "odd"',
    ]
    assert '# not carried over: "odd"\n' in result.toml()


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "x: is empty"),
        (b" \n", "x: is empty"),
        (b'{"mcpServers":\n {"a": s3cr3t}}', "x:2:8: not valid JSON: expecting value"),
        (b'"s3cr3t"', "expected a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe{}", "is UTF-16"),
        (b"{\n\xff", "x:2: not UTF-8"),
        (b'{"mcpServers": {}}', "no server is in it"),
        (b'{"mcpServers": [1]}', "expected a table of servers"),
        (b'{"s3cr3t": 1}', "neither `mcpServers` nor `servers`"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_line(content: bytes, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        import_servers(content, label="x", environ={})

    assert told in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__context__ is None


def test_comments_and_last_commas_are_read_over_and_strings_are_not() -> None:
    content = b"""\xef\xbb\xbf{ // one
      "servers": { /* "two": {}, */
        "it": {"command": "a//b", "args": ["/* c */", "d,]", "\\"//", ], },
      },
    }"""

    table = import_servers(content, label="x", environ={}).servers[0].table

    assert (table["command"], table["args"]) == ("a//b", ["/* c */", "d,]", '"//'])


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_each_editor_has_places_on_each_system_the_projects_first(editor: Any, system: str) -> None:
    found = places(editor, system=system, home=Path("/home"), folder=Path("/project"), environ={})

    assert found[0].is_relative_to("/project")
    assert len(found) > 1
    assert all(each.is_relative_to("/home") for each in found[1:])


def test_the_places_of_a_system_are_those_that_editors_document() -> None:
    def of(editor: Any, system: str, **environ: str) -> list[str]:
        found = places(editor, system=system, home=Path("/h"), folder=Path("/p"), environ=environ)
        return [str(each) for each in found]

    desktop = "Claude/claude_desktop_config.json"
    assert f"/h/Library/Application Support/{desktop}" in of("claude", "darwin")
    assert f"/h/.config/{desktop}" in of("claude", "linux")
    assert f"/roaming/{desktop}" in of("claude", "win32", APPDATA="/roaming")
    assert "/elsewhere/.claude.json" in of("claude", "linux", CLAUDE_CONFIG_DIR="/elsewhere")
    assert "/h/Library/Application Support/Code/User/mcp.json" in of("vscode", "darwin")
    assert of("cursor", "linux") == ["/p/.cursor/mcp.json", "/h/.cursor/mcp.json"]


def test_a_files_place_tells_its_workspace() -> None:
    assert workspace_of(Path("/p/.vscode/mcp.json")) == Path("/p")
    assert workspace_of(Path("/p/.mcp.json")) == Path("/p")
    assert workspace_of(Path("/h/.config/Code/User/mcp.json")) is None


# -- laws ------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["${env:A}", "${input:b c}", "${A:-x}", "https://u:p@h/?token=1", "--key", "A: b", "=", "${", "}", "\n"]
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "type": texts | st.sampled_from(["stdio", "http", "sse"]),
        "command": texts,
        "args": st.lists(texts, max_size=3),
        "env": st.dictionaries(texts, texts, max_size=3),
        "url": texts | st.just("https://h.example/mcp"),
        "headers": st.dictionaries(texts, texts, max_size=3),
        "cwd": texts,
        "disabled": st.booleans(),
    },
)


@given(st.dictionaries(texts, entries, min_size=1, max_size=4))
@example({"": {"command": "0\x85"}})  # a character that ends a line for Python and not for TOML
def test_whatever_is_imported_is_a_config_that_loads(servers: dict[str, Any]) -> None:
    result = imported(servers)

    read = tomli.loads(result.toml())
    on = [each for each in result.servers if not each.disabled]
    assert list(read.get("tooling", {})) == [each.name for each in on]
    assert len(result.servers) + len(result.left_out) == len(servers)
    if on:
        environ = {each.name: "http://x" for each in result.variables}
        assert list(load_config(read, environ=environ).tooling) == [each.name for each in on]


@given(st.from_regex(r"[a-z]{6,20}", fullmatch=True), texts, texts)
def test_no_value_of_env_or_headers_is_in_the_result(secret: str, before: str, key: str) -> None:
    value = f"{before}~{secret}~"

    result = imported(
        {
            "a": {"command": "x", "env": {key: value}},
            "b": {"url": "https://h.example", "headers": {key: value, "Authorization": f"Bearer {value}"}},
        }
    )

    assert f"~{secret}~" not in result.toml() + str(result.left_out) + str(result.variables)
