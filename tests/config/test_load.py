"""What a configuration may say, and what every mistake in it is answered with."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import pytest
from msgspec import Meta

from toolpost.config import AgentConfig, Config, Tunables, load_config
from toolpost.config.model import Preopen
from toolpost.errors import ConfigError
from toolpost.secret import Secret
from toolpost.tooling.registry import Kind


class Step(msgspec.Struct, kw_only=True):
    name: str
    delay_ms: Annotated[int, Meta(ge=0)] = 0


class Params(msgspec.Struct, kw_only=True):
    """A user's own kind: secrets by type, tables in tables, a constraint of its own."""

    key: Secret | None = None
    keys: list[Secret] = []
    steps: list[Step] = []
    size: Annotated[int, Meta(ge=1, le=9)] = 1
    mode: str | int = ""
    words: Annotated[list[str], Meta(max_length=2)] = []
    template: str = ""

    def __post_init__(self) -> None:
        if self.mode == "broken":
            raise ValueError("no mode to be in")


def no_backend(*_: Any) -> Any:
    raise AssertionError("a config builds nothing")


KINDS = {
    "own": Kind(name="own", factory=no_backend, params=Params),
    "free": Kind(name="free", factory=no_backend),
}


def load(source: Any, environ: dict[str, str] | None = None, **options: Any) -> Config:
    return load_config(source, environ=environ or {}, **options)


def problems(source: Any, environ: dict[str, str] | None = None, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(source, environ, **options)
    assert caught.value.__context__ is None, "a parser's error holds the whole text"
    return list(caught.value.problems)


def own(**keys: Any) -> dict[str, Any]:
    return {"tooling": {"x": {"kind": "own", **keys}}}


def own_problems(**keys: Any) -> list[str]:
    return problems(own(**keys), kinds=KINDS)


class TestSources:
    def test_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "some.toml"
        path.write_text('[tooling.web]\nkind = "free"\nany = [1, { thing = true }]\n')

        config = load(path, kinds=KINDS)

        assert config.tooling["web"].params == {"any": [1, {"thing": True}]}
        assert config.tooling["web"].kind is KINDS["free"]
        assert config.folder == tmp_path
        assert config.label == str(path)

    def test_none_is_toolpost_toml_in_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("toolpost.toml").write_text("[tunables]\ninbox_bound = 3\n")

        config = load(None)

        assert config.tunables.inbox_bound == 3
        assert config.label == "toolpost.toml"
        assert config.folder == tmp_path

    def test_a_dash_is_standard_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        stdin = io.TextIOWrapper(io.BytesIO(b"[tunables]\ninbox_bound = 3\n"))
        monkeypatch.setattr(sys, "stdin", stdin)

        config = load("-")

        assert config.tunables.inbox_bound == 3
        assert config.label == "<stdin>"
        assert config.folder == tmp_path

    def test_standard_input_without_bytes_below_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("[tunables]\ninbox_bound = 3\n"))

        assert load("-").tunables.inbox_bound == 3

    def test_no_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)

        assert problems("-") == ["<stdin>: there is no standard input to read"]

    def test_a_mapping_is_not_changed(self) -> None:
        source = own(words=["a", "b"])

        config = load(source, {"TOOLPOST__TOOLING__X__SIZE": "2"}, kinds=KINDS)

        assert config.tooling["x"].params.size == 2
        assert source == own(words=["a", "b"])
        assert config.label == "config"
        assert config.folder == Path.cwd()

    def test_standard_input_that_breaks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        closed = io.BytesIO()
        closed.close()
        monkeypatch.setattr(sys, "stdin", closed)

        assert problems("-") == ["<stdin>: cannot be read: I/O operation on closed file."]

    def test_an_empty_mapping_is_a_configuration_of_nothing(self) -> None:
        config = load({})

        assert (config.tooling, config.agents, config.tunables) == ({}, {}, Tunables())

    def test_a_byte_order_mark_says_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text("[tunables]\ninbox_bound = 7\n", encoding="utf-8-sig")

        assert load(path).tunables.inbox_bound == 7

    def test_toml_1_1_with_newlines_inside_inline_tables(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text(
            '[tooling.mcp]\nkind = "free"\n'
            "resource_list_updates = [\n"
            "  {\n"
            "    resources = [\n"
            '      { uri = "mem://notes", name = "notes" },\n'
            "    ],\n"
            '    after = { kind = "call", op = "subscribe_resource_list" },\n'
            "  },\n"
            "]\n"
        )

        (update,) = load(path, kinds=KINDS).tooling["mcp"].params["resource_list_updates"]

        assert update["after"] == {"kind": "call", "op": "subscribe_resource_list"}


class TestUnreadable:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        path = tmp_path / "none.toml"

        assert problems(path) == [f"{path}: no such file; create it, or name another one with -c/--config"]

    def test_a_missing_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

        assert problems(None) == [
            f"toolpost.toml: no such file in {tmp_path}; create it, or name another one with -c/--config"
        ]

    def test_a_folder(self, tmp_path: Path) -> None:
        assert problems(tmp_path) == [
            f"{tmp_path}: is a folder; name the file in it, such as {tmp_path}/toolpost.toml"
        ]

    @pytest.mark.skipif(
        sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything; see the next test"
    )
    def test_a_file_that_may_not_be_read(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.touch(mode=0)

        assert problems(path) == [f"{path}: cannot be read: Permission denied"]

    def test_a_file_that_cannot_be_read(self, tmp_path: Path) -> None:
        path = tmp_path / "loop.toml"
        path.symlink_to(path)

        (problem,) = problems(path)

        assert problem.startswith(f"{path}: cannot be read: ")

    def test_a_path_that_can_be_none(self) -> None:
        (problem,) = problems("a\0b")

        assert "cannot be read" in problem

    @pytest.mark.parametrize("content", ["", "\n\n", "# nothing but words\n"])
    def test_an_empty_file(self, tmp_path: Path, content: str) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text(content)

        assert problems(path) == [
            f'{path}: is empty; it needs at least a table such as [tooling.web] with kind = "mcp"'
        ]

    def test_utf_16(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text("[tunables]\n", encoding="utf-16")

        assert problems(path) == [f"{path}: is UTF-16; save it as UTF-8"]

    def test_latin_1(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_bytes('[tunables]\n# für später, token = "hunter2"\n'.encode("latin-1"))

        assert problems(path) == [f"{path}:2: byte 0xfc is not UTF-8; save the file as UTF-8"]

    def test_broken_toml_is_located_and_not_shown(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text('[tooling.web]\nauth_token = "hunter2\n')

        assert problems(path) == [f"{path}:2:22: not valid TOML: illegal character '\\n'"]

    def test_a_key_that_is_given_twice(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text("[tunables]\ninbox_bound = 1\ninbox_bound = 2\n")

        assert problems(path) == [f"{path}:3:16: not valid TOML: cannot overwrite a value"]

    def test_a_number_of_thousands_of_digits(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text(f"[tunables]\ninbox_bound = {'1' * 5000}\n")

        assert problems(path) == [f"{path}: not valid TOML: a number has too many digits"]

    def test_toml_that_is_nested_too_deeply(self, tmp_path: Path) -> None:
        path = tmp_path / "toolpost.toml"
        path.write_text(f"a = {'[' * 5000}{']' * 5000}\n")

        assert problems(path) == [f"{path}: nested too deeply"]

    def test_a_mapping_that_holds_itself(self) -> None:
        source: dict[str, Any] = {}
        source["tooling"] = source

        assert problems(source) == ["config: nested too deeply"]

    def test_a_mapping_with_keys_that_are_no_strings(self) -> None:
        assert problems({"tooling": {1: {}}}) == ["config: keys are strings; found the key 1"]


class TestTables:
    def test_unknown_tables_list_the_known_ones_nearest_first(self) -> None:
        assert problems({"toolings": {}, "agent": {}}) == [
            "config: toolings: unknown table; known tables: tooling, agents, tunables",
            "config: agent: unknown table; known tables: agents, tooling, tunables",
        ]

    @pytest.mark.parametrize("table", ["tooling", "agents", "tunables"])
    def test_a_table_of_the_wrong_type(self, table: str) -> None:
        assert problems({table: 5}) == [f"config: {table}: expected a table, found the integer 5"]
        assert problems({table: [{}]}) == [f"config: {table}: expected a table, found a list"]

    def test_a_tooling_that_is_no_table(self) -> None:
        assert problems({"tooling": {"web": True}, "agents": {"a": 1.5}}) == [
            "config: tooling.web: expected a table, found the boolean true",
            "config: agents.a: expected a table, found the number 1.5",
        ]

    def test_test_tables_belong_in_test_files(self) -> None:
        assert problems({"test": {}, "assertions": {}}) == [
            "config: test: belongs in a test file; run that with `toolpost test`",
            "config: assertions: belongs in a test file; run that with `toolpost test`",
        ]


class TestTunables:
    def test_the_defaults(self) -> None:
        assert load({}).tunables == Tunables(
            inbox_bound=1024,
            open_calls_bound=1024,
            recv_timeout_secs=60,
            tooling_connect_backoff_start_ms=100,
            tooling_connect_backoff_cap_secs=30,
            tooling_connect_timeout_secs=30,
            tooling_request_timeout_secs=300,
            allow_unlocked_secrets=False,
        )

    def test_fractions_and_zeros_where_they_mean_something(self) -> None:
        tunables = load(
            {
                "tunables": {
                    "recv_timeout_secs": float("inf"),
                    "tooling_connect_backoff_cap_secs": 0,
                    "tooling_connect_timeout_secs": 0.25,
                    "tooling_request_timeout_secs": 0,
                }
            }
        ).tunables

        assert tunables.recv_timeout_secs == float("inf")
        assert tunables.tooling_connect_backoff_cap_secs == 0
        assert tunables.tooling_connect_timeout_secs == 0.25
        assert tunables.tooling_request_timeout_secs == 0

    def test_every_problem_is_told(self) -> None:
        nan, inf = float("nan"), float("inf")

        assert problems(
            {
                "tunables": {
                    "inbox_bound": 0,
                    "open_calls_bound": 1.5,
                    "recv_timeout_secs": 0,
                    "tooling_connect_backoff_start_ms": True,
                    "tooling_connect_backoff_cap_secs": inf,
                    "tooling_connect_timeout_secs": "30",
                    "tooling_request_timeout_secs": nan,
                    "allow_unlocked_secrets": "yes",
                    "inbox-bound": 5,
                }
            }
        ) == [
            "config: tunables.inbox_bound: expected an integer of at least 1, found the integer 0",
            "config: tunables.open_calls_bound: expected an integer of at least 1, found the number 1.5",
            "config: tunables.recv_timeout_secs: expected a number above 0, found the integer 0",
            (
                "config: tunables.tooling_connect_backoff_start_ms: expected an integer of at least 1, "
                "found the boolean true"
            ),
            (
                "config: tunables.tooling_connect_backoff_cap_secs: expected a number of at least 0, "
                "found the number inf"
            ),
            "config: tunables.tooling_connect_timeout_secs: expected a number above 0, found the string '30'",
            (
                "config: tunables.tooling_request_timeout_secs: expected a number of at least 0, "
                "found the number nan"
            ),
            "config: tunables.allow_unlocked_secrets: expected true or false, found the string 'yes'",
            (
                "config: tunables.inbox-bound: unknown key; known keys: inbox_bound, allow_unlocked_secrets, "
                "open_calls_bound, recv_timeout_secs, tooling_connect_backoff_cap_secs, "
                "tooling_connect_backoff_start_ms, tooling_connect_timeout_secs, tooling_request_timeout_secs"
            ),
        ]

    def test_huge_numbers(self) -> None:
        (first, second) = problems({"tunables": {"recv_timeout_secs": 10**400, "inbox_bound": -(10**400)}})

        assert first == "config: tunables.recv_timeout_secs: expected a number above 0, found a huge integer"
        assert (
            second == "config: tunables.inbox_bound: expected an integer of at least 1, found a huge integer"
        )


class TestKinds:
    def test_a_missing_one(self) -> None:
        assert problems({"tooling": {"x": {}}}, kinds=KINDS) == [
            "config: tooling.x.kind: missing; known kinds: free, own"
        ]

    def test_an_unknown_one(self) -> None:
        assert problems({"tooling": {"x": {"kind": "won"}}}, kinds=KINDS) == [
            "config: tooling.x.kind: unknown kind 'won'; known kinds: own, free"
        ]

    def test_one_of_the_wrong_type(self) -> None:
        assert problems({"tooling": {"x": {"kind": ["own"]}}}, kinds=KINDS) == [
            "config: tooling.x.kind: expected a string, found a list"
        ]

    def test_without_a_table_of_kinds_it_is_the_registry(self) -> None:
        (problem,) = problems({"tooling": {"x": {"kind": "mcpp"}}})

        assert problem.startswith("config: tooling.x.kind: unknown kind 'mcpp'; known kinds: mcp")

    def test_one_that_cannot_be_loaded_is_a_problem_of_its_tooling(self) -> None:
        class Broken(dict[str, Kind]):
            def get(self, key: str, default: Any = None) -> Any:
                raise ImportError(f"no module for {key}")

        found = problems({"tooling": {"x": {"kind": "y"}}}, {"TOOLPOST__TOOLING__X__A": "1"}, kinds=Broken())

        assert found == ["config: tooling.x.kind: kind 'y' cannot be loaded: ImportError('no module for y')"]

    @pytest.mark.parametrize("name", ["", " "])
    def test_a_tooling_needs_a_name(self, name: str) -> None:
        (problem,) = problems({"tooling": {name: {"kind": "free"}}}, kinds=KINDS)

        assert problem == f'config: tooling."{name}": expected a name, found an empty one'

    def test_names_that_toml_quotes_are_quoted(self) -> None:
        assert problems({"tooling": {'a."b"': {}}}, kinds={}) == [
            'config: tooling."a.\\"b\\"".kind: missing; known kinds: none'
        ]

    def test_problems_between_keys_come_from_the_kind(self) -> None:
        def check(table: Any) -> Any:
            yield "steps[0].name", f"taken {len(table['steps'])} times"
            yield "", "it is all wrong"

        kinds = {"own": Kind(name="own", factory=no_backend, params=Params, check=check)}

        assert problems(own(steps=[{"name": "a"}]), kinds=kinds) == [
            "config: tooling.x.steps[0].name: taken 1 times",
            "config: tooling.x: it is all wrong",
        ]

    def test_a_check_may_stumble_over_what_is_told_already_and_over_nothing_else(self) -> None:
        def check(table: Any) -> Any:
            return [("size", "too large")] if table["size"] + 0 > 8 else []

        kinds = {"own": Kind(name="own", factory=no_backend, params=Params, check=check)}

        assert problems(own(size="9"), kinds=kinds) == [
            "config: tooling.x.size: expected an integer of at least 1 and of at most 9, found the string '9'"
        ]
        with pytest.raises(KeyError):
            load(own(), kinds=kinds)


class TestOwnParams:
    def test_secrets_are_made_where_the_type_says_so(self) -> None:
        config = load(own(key="first-secret", keys=["second-secret", Secret("third-secret")]), kinds=KINDS)

        params = config.tooling["x"].params
        assert params.key.expose() == "first-secret"
        assert [each.expose() for each in params.keys] == ["second-secret", "third-secret"]
        assert "-secret" not in repr(config)

    def test_a_secret_of_the_wrong_type_is_not_shown(self) -> None:
        assert own_problems(key=12345678, keys="12345678") == [
            "config: tooling.x.key: expected a string, found an integer; put it in quotes",
            "config: tooling.x.keys: expected a list of strings, found a string",
        ]

    def test_a_secret_that_was_wiped(self) -> None:
        secret = Secret("wiped")
        secret.wipe()

        assert own_problems(key=secret) == ["config: tooling.x.key: this Secret was wiped"]

    def test_a_secret_where_none_belongs(self) -> None:
        assert own_problems(template=Secret("hunter2")) == [
            "config: tooling.x.template: expected a string, found a Secret"
        ]

    def test_a_secret_is_masked_where_another_problem_shows_it(self) -> None:
        assert own_problems(size="second-secret", key="second-secret") == [
            (
                "config: tooling.x.size: expected an integer of at least 1 and of at most 9, "
                "found the string '***'"
            )
        ]

    def test_a_long_string_is_not_shown_in_part(self) -> None:
        assert own_problems(size="second-secret" * 9) == [
            (
                "config: tooling.x.size: expected an integer of at least 1 and of at most 9, "
                "found a string of 117 characters"
            )
        ]

    def test_problems_inside_lists_of_tables_are_all_told(self) -> None:
        assert own_problems(steps=[{"name": 1}, {"nam": "a"}, 7, {"name": "b", "delay_ms": -1}]) == [
            "config: tooling.x.steps[0].name: expected a string, found the integer 1",
            "config: tooling.x.steps[1].nam: unknown key; known keys: name, delay_ms",
            "config: tooling.x.steps[1].name: missing; expected a string",
            "config: tooling.x.steps[2]: expected a table, found the integer 7",
            "config: tooling.x.steps[3].delay_ms: expected an integer of at least 0, found the integer -1",
        ]

    def test_each_wrong_item_of_a_list_is_told(self) -> None:
        assert own_problems(words=["a", 1, True]) == [
            "config: tooling.x.words[1]: expected a string, found the integer 1",
            "config: tooling.x.words[2]: expected a string, found the boolean true",
        ]

    def test_constraints_of_a_whole_list_hold(self) -> None:
        assert own_problems(words=["a", "b", "c"]) == [
            "config: tooling.x.words: expected a list of strings of length 2 or less, found a list"
        ]

    def test_a_union(self) -> None:
        assert load(own(mode=1), kinds=KINDS).tooling["x"].params.mode == 1
        assert load(own(mode="a"), kinds=KINDS).tooling["x"].params.mode == "a"
        assert own_problems(mode=[]) == [
            "config: tooling.x.mode: expected a string or an integer, found a list"
        ]

    def test_what_the_type_itself_refuses(self) -> None:
        assert own_problems(mode="broken") == ["config: tooling.x: no mode to be in"]

    def test_dollars_stay_as_they_are(self) -> None:
        config = load(own(template="${HOME} $${", key="${TOKEN}"), {"TOKEN": "t"}, kinds=KINDS)

        assert config.tooling["x"].params.template == "${HOME} $${"
        assert config.tooling["x"].params.key.expose() == "${TOKEN}"

    def test_none_in_a_mapping_is_absence(self) -> None:
        assert load(own(key=None, size=None), kinds=KINDS).tooling["x"].params == Params()


class TestAgents:
    def agent(self, folder: Path, **keys: Any) -> Any:
        path = folder / "toolpost.toml"
        path.write_bytes(b"[tooling.web]\nkind = 'free'\n[agents.a]\n" + _toml(keys))
        return path

    def test_a_script_beside_the_config(self, tmp_path: Path) -> None:
        (tmp_path / "brain.py").touch()

        config = load(self.agent(tmp_path, script="brain.py", toolings=["web"]), kinds=KINDS)

        assert config.agents == {"a": AgentConfig(name="a", script=tmp_path / "brain.py", toolings=["web"])}

    def test_an_entry_with_params(self) -> None:
        config = load({"agents": {"a": {"entry": "pack.age:run.it", "params": {"deep": [1, {"x": None}]}}}})

        assert config.agents["a"].entry == "pack.age:run.it"
        assert config.agents["a"].params == {"deep": [1, {"x": None}]}
        assert config.agents["a"].toolings is None

    def test_a_guest_with_a_sandbox(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "brain.wasm").touch()
        (tmp_path / "notes").mkdir()
        granted = {"preopens": {"/notes": {"path": "notes", "writable": True}}, "env": {"Mode": "${MODE}"}}
        script = str(tmp_path / "brain.wasm")
        source = {"agents": {"a": {"script": script, "sandbox": {"memory_mb": 1, **granted}}}}

        sandbox = load(source, {"MODE": "careful"}, kinds=KINDS).agents["a"].sandbox

        assert sandbox is not None
        assert (sandbox.memory_mb, sandbox.timeout_secs, sandbox.stdout) == (1, 60.0, "log")
        assert sandbox.preopens == {"/notes": Preopen(path=str(tmp_path / "notes"), writable=True)}
        assert {name: value.expose() for name, value in sandbox.env.items()} == {"Mode": "careful"}

    def test_a_sandbox_with_problems(self, tmp_path: Path) -> None:
        (tmp_path / "brain.wasm").touch()
        sandbox = {
            "memory": 1,
            "memory_mb": 0,
            "timeout_secs": 0,
            "preopens": {"b": {"path": "."}, "/c": "."},
            "env": {"A=B": "x"},
            "stdout": "screen",
        }
        source = {"agents": {"a": {"script": str(tmp_path / "brain.wasm"), "sandbox": sandbox}}}

        assert [each.removeprefix("config: agents.a.sandbox.") for each in problems(source, kinds=KINDS)] == [
            "memory: unknown key; known keys: memory_mb, env, preopens, stdout, timeout_secs",
            "memory_mb: expected an integer of at least 1 and of at most 4096, found the integer 0",
            "timeout_secs: expected a number above 0, found the integer 0",
            "preopens.b: expected a path that begins with /",
            "preopens.\"/c\": expected a table, found the string '.'",
            'env."A=…": not the name of an environment variable',
            'stdout: expected "log" or "inherit" or "discard", found the string \'screen\'',
        ]

    def test_a_folder_for_a_guest_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "brain.wasm").touch()
        sandbox = {"preopens": {"/a": {"path": str(tmp_path / "absent")}, "/b": {"path": str(tmp_path)}}}
        source = {"agents": {"a": {"script": str(tmp_path / "brain.wasm"), "sandbox": sandbox}}}

        (problem,) = problems(source, kinds=KINDS)
        assert problem == (
            'config: agents.a.sandbox.preopens."/a".path: no such folder;'
            f" relative paths start in {Path.cwd()}"
        )

    def test_a_script_from_the_environment(self, tmp_path: Path) -> None:
        (tmp_path / "brain.py").touch()
        path = self.agent(tmp_path, script="${WHICH:-brain}.py")

        assert load(path, kinds=KINDS).agents["a"].script == tmp_path / "brain.py"
        assert problems(path, {"WHICH": "other"}, kinds=KINDS) == [
            (
                f"{path}: agents.a.script: no such file '${{WHICH:-brain}}.py'; "
                f"relative paths start in {tmp_path}"
            )
        ]

    def test_a_missing_script_and_a_folder(self, tmp_path: Path) -> None:
        path = self.agent(tmp_path, script="none.py")
        assert problems(path, kinds=KINDS) == [
            f"{path}: agents.a.script: no such file 'none.py'; relative paths start in {tmp_path}"
        ]
        path = self.agent(tmp_path, script=".")
        assert problems(path, kinds=KINDS) == [f"{path}: agents.a.script: expected a file, found a folder"]

    def test_a_script_that_cannot_be_looked_at(self) -> None:
        (problem,) = problems({"agents": {"a": {"script": "x" * 5000}}})

        assert problem.startswith("config: agents.a.script: ")

    @pytest.mark.parametrize(
        "entry", ["", "module", "module:", ":run", "a b:run", "module:run:it", "a.b:c-d"]
    )
    def test_an_entry_is_module_and_function(self, entry: str) -> None:
        assert problems({"agents": {"a": {"entry": entry}}}) == [
            "config: agents.a.entry: expected package.module:function"
        ]

    def test_every_other_problem_at_once(self) -> None:
        assert problems(
            {
                "tooling": {"web": {"kind": "free"}, "files": {"kind": "free"}},
                "agents": {
                    "a": {},
                    "b": {"script": "x\0.py", "entry": "a:b"},
                    "c": {"entry": "a:b", "sandbox": {}, "toolings": ["wbe", 5], "params": []},
                    "": {"entry": "a:b", "tooling": []},
                },
            },
            kinds=KINDS,
        ) == [
            "config: agents.a: missing; expected script or entry",
            "config: agents.b.script: expected the path of a file",
            "config: agents.b: script and entry exclude each other; keep one",
            "config: agents.c.toolings[1]: expected a string, found the integer 5",
            "config: agents.c.params: expected a table, found a list",
            "config: agents.c.sandbox: only a guest (a .wasm script) can be confined",
            "config: agents.c.toolings[0]: unknown tooling 'wbe'; known toolings: web, files",
            'config: agents."": expected a name, found an empty one',
            'config: agents."".tooling: unknown key; known keys: toolings, entry, params, sandbox, script',
        ]


def _toml(keys: dict[str, Any]) -> bytes:
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in keys.items()).encode()


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return "{" + ", ".join(f"{key} = {each!r}" for key, each in table.items()) + "}"
    return repr(value)


class TestSecretsThatCannotBeLocked:
    @pytest.fixture(autouse=True)
    def no_locks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> str:
            return "mlock: Cannot allocate memory"

        monkeypatch.setattr("toolpost.secret._lock", refuse)

    def test_it_is_one_problem_among_the_others(self) -> None:
        found = own_problems(key="x" * 40_000, keys=["y" * 40_000], size=0)

        assert len(found) == 2
        assert found[0].startswith(
            "config: tooling.x.key: secrets cannot be locked in memory (mlock: Cannot allocate memory; "
            "RLIMIT_MEMLOCK, `ulimit -l`, is "
        )
        assert found[0].endswith("set allow_unlocked_secrets = true in [tunables]")

    def test_allowed_it_is_one_warning(self) -> None:
        source = {**own(key="x" * 40_000, keys=["y" * 40_000]), "tunables": {"allow_unlocked_secrets": True}}

        config = load(source, kinds=KINDS)

        assert config.warnings == [
            (
                "config: tunables.allow_unlocked_secrets: secrets are not locked in memory, "
                "and may be swapped to disk"
            )
        ]
        assert not config.tooling["x"].params.key.locked


def test_problems_of_all_tables_and_of_the_environment_come_at_once() -> None:
    found = problems(
        {"tunables": {"inbox_bound": "x"}, "tooling": {"t": {"kind": "nope"}}, "agents": {"a": {}}, "x": 1},
        {"TOOLPOST__NOTHING": "1"},
        kinds=KINDS,
    )

    assert len(found) == 5
    assert str(ConfigError(found)) == "\n".join(found)


def test_of_a_variable_written_with_its_value_only_the_name_is_shown() -> None:
    table = {"kind": "mcp", "transport": "stdio", "command": "x", "env": {"KEY=sk-live-0123456789": "1"}}

    (problem,) = problems({"tooling": {"x": table}})

    assert problem == 'config: tooling.x.env."KEY=…": not the name of an environment variable'


def test_no_repr_shows_what_a_kind_without_declared_keys_was_given() -> None:
    kinds = {"own": Kind(name="own", factory=lambda params, site: params)}

    assert "hunter2" not in repr(load({"tooling": {"x": {"kind": "own", "token": "hunter2"}}}, kinds=kinds))
