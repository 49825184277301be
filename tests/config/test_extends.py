"""A test file that stands on another config."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolpost.config import CaseConfig, Config, load_case_config
from toolpost.errors import ConfigError
from toolpost.mcp.params import McpParams
from toolpost.mock.params import MockParams

BASE = """
[tunables]
inbox_bound = 5
open_calls_bound = 6

[tooling.web]
kind = "mcp"
transport = "stdio"
command = "serve"
args = ["a", "b"]
cwd = "data"

[agents.brain]
script = "brain.py"
toolings = ["web"]
"""

ASSERTIONS = "[assertions.brain]\n"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "brain.py").write_text("def run(host): ...\n")
    (folder / "toolpost.toml").write_text(BASE)
    (tmp_path / "cases").mkdir()
    return folder


def case(tmp_path: Path, text: str, extends: str = "../app/toolpost.toml") -> Path:
    path = tmp_path / "cases" / "first.test.toml"
    path.write_text(f'[test]\nextends = "{extends}"\ntimeout_secs = 7\n{ASSERTIONS}{text}')
    return path


def load(path: Path) -> Config:
    return load_case(path).config


def load_case(path: Path) -> CaseConfig:
    return load_case_config(path, check_assertions=lambda _: iter(()), environ={})


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path)
    return list(caught.value.problems)


def test_tables_merge_and_lists_replace(base: Path, tmp_path: Path) -> None:
    loaded = load_case(case(tmp_path, '[tunables]\ninbox_bound = 1\n[tooling.web]\nargs = ["c"]\n'))

    config = loaded.config
    assert (config.tunables.inbox_bound, config.tunables.open_calls_bound) == (1, 6)
    params = config.tooling["web"].params
    assert isinstance(params, McpParams)
    assert (params.command, params.args) == ("serve", ["c"])
    assert loaded.settings.timeout_secs == 7


def test_a_real_server_becomes_a_mock_by_its_kind(base: Path, tmp_path: Path) -> None:
    config = load(case(tmp_path, '[tooling.web]\nkind = "mock"\ntools = [{ name = "echo" }]\n'))

    web = config.tooling["web"]
    assert web.kind.name == "mock"
    assert isinstance(web.params, MockParams)
    assert [tool.name for tool in web.params.tools] == ["echo"]


def test_relative_paths_start_where_they_are_written(base: Path, tmp_path: Path) -> None:
    (tmp_path / "cases" / "other.py").write_text("def run(host): ...\n")

    config = load(case(tmp_path, '[agents.other]\nscript = "other.py"\n'))

    assert config.agents["brain"].script == base / "brain.py"
    assert config.agents["other"].script == tmp_path / "cases" / "other.py"
    assert config.tooling["web"].params.cwd == str(base / "data")


def test_a_base_may_stand_on_another(base: Path, tmp_path: Path) -> None:
    (base / "middle.toml").write_text('[test]\nextends = "toolpost.toml"\n[tunables]\ninbox_bound = 2\n')

    config = load(case(tmp_path, "", extends="../app/middle.toml"))

    assert (config.tunables.inbox_bound, config.tunables.open_calls_bound) == (2, 6)


def test_agents_find_their_modules_beside_every_file(base: Path, tmp_path: Path) -> None:
    (base / "middle.toml").write_text('[test]\nextends = "toolpost.toml"\n')
    path = case(tmp_path, "", extends="../app/middle.toml")

    loaded = load_case(path)

    assert [each.resolve() for each in loaded.files] == [path, base / "middle.toml", base / "toolpost.toml"]
    assert [each.resolve() for each in loaded.config.import_path] == [tmp_path / "cases", base, base]


def test_a_circle_is_named(base: Path, tmp_path: Path) -> None:
    (base / "toolpost.toml").write_text('[test]\nextends = "../cases/first.test.toml"\n')

    (problem,) = problems(case(tmp_path, ""))

    assert problem.endswith(
        "the files extend each other in a circle: toolpost.toml -> first.test.toml -> toolpost.toml"
    )


def test_a_file_that_extends_itself_is_a_circle(tmp_path: Path, base: Path) -> None:
    (problem,) = problems(case(tmp_path, "", extends="first.test.toml"))

    assert problem.endswith("the files extend each other in a circle: first.test.toml")


@pytest.mark.parametrize(
    ("extends", "problem"),
    [("none.toml", "no such file"), ("", "expected the path of a config, found ''")],
)
def test_what_cannot_be_extended_is_told_with_the_file_that_names_it(
    tmp_path: Path, base: Path, extends: str, problem: str
) -> None:
    path = case(tmp_path, "", extends=extends)

    (line,) = problems(path)

    assert line.startswith(f"{path}: test.extends: ")
    assert problem in line


def test_the_environments_layer_reaches_real_toolings_and_no_double(base: Path, tmp_path: Path) -> None:
    path = case(tmp_path, '[tooling.double]\nkind = "mock"\n')
    environ = {
        "TOOLPOST__TOOLING__WEB__ENV__TOKEN": "secret of web",
        "TOOLPOST__TOOLING__DOUBLE__ENV__TOKEN": "meant for the server that it stands for",
        "TOOLPOST__TOOLING__DOUBLE__DELAY_MS": "99",
        "TOOLPOST__TOOLING__ELSEWHERE__CWD": "of another config",
        "TOOLPOST__TUNABLES__INBOX_BOUND": "1",
        "TOOLPOST__AGENTS__OTHER__SCRIPT": "x.py",
    }

    config = load_case_config(path, check_assertions=lambda _: iter(()), environ=environ).config

    assert config.tooling["web"].params.env["TOKEN"].expose() == "secret of web"
    assert config.tooling["double"].params == MockParams()
    assert config.tunables.inbox_bound == 5


def test_an_agent_gets_another_start_and_another_outcome(base: Path, tmp_path: Path) -> None:
    (base / "toolpost.toml").write_text(f'{BASE}[test]\n[assertions.brain]\noutcome = {{ exited = "a" }}\n')
    path = tmp_path / "cases" / "first.test.toml"
    path.write_text(
        '[test]\nextends = "../app/toolpost.toml"\n[agents.brain]\nentry = "brain:other"\n'
        '[assertions.brain]\noutcome = { failed = "b" }\n'
    )

    loaded = load_case(path)

    agent = loaded.config.agents["brain"]
    assert (agent.script, agent.entry) == (None, "brain:other")
    assert loaded.assertions["brain"]["outcome"] == {"failed": "b"}
