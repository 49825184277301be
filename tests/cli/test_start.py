"""Starting: what `--help` and `import toolpost` cost, the version, and wrong usage."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import TOOLPOST, Ended, environment, odd, toolpost, write_config
from toolpost.cli.app import app

BARE = """
import typer

app = typer.Typer()

@app.command()
def one() -> None: ...

@app.command()
def two() -> None: ...

app()
"""


def cost_ratio(command: Sequence[str], measure: Sequence[str]) -> float:
    """How many times the CPU time of `measure` `command` takes: the least of runs taken in turn."""
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(9):
        for each, times in zip((command, measure), costs, strict=True):
            times.append(cpu_secs_of(each))
    return min(costs[0]) / min(costs[1])


def cpu_secs_of(command: Sequence[str]) -> float:
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment())
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    assert running.returncode == 0
    return usage.ru_utime + usage.ru_stime


def imported_by(code: str) -> set[str]:
    """The top-level packages that are imported once `code` has run."""
    code += (
        "\nimport sys; print('\\n'.join({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    return set(done.stderr.split())


def test_help_costs_at_most_1_7_times_a_bare_typer_program(tmp_path: Path) -> None:
    bare = tmp_path / "bare.py"
    bare.write_text(BARE)

    assert cost_ratio([TOOLPOST, "--help"], [sys.executable, str(bare), "--help"]) <= 1.7


def test_importing_toolpost_costs_at_most_1_5_times_its_foundations() -> None:
    foundations = [sys.executable, "-c", "import asyncio, anyio, msgspec"]

    assert cost_ratio([sys.executable, "-c", "import toolpost"], foundations) <= 1.5


def test_help_imports_nothing_heavy() -> None:
    code = """
import sys
sys.argv = ["toolpost", "--help"]
from toolpost.cli.main import main
try:
    main()
except SystemExit:
    pass
"""

    heavy = {
        "mcp",
        "mcp_types",
        "pydantic",
        "asyncio",
        "anyio",
        "msgspec",
        "tomli",
        "httpx2",
        "aiohttp",
        "ssl",
    }
    assert imported_by(code) & heavy == set()


def test_importing_toolpost_imports_neither_the_sdk_nor_an_event_loop() -> None:
    heavy = {"mcp", "mcp_types", "pydantic", "asyncio", "anyio", "typer", "rich", "aiohttp", "wasmtime"}
    assert imported_by("import toolpost") & heavy == set()


def test_version() -> None:
    assert toolpost("--version") == Ended(0, f"toolpost {version('toolpost')}\n", "")


def test_every_command_explains_itself_with_an_example(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [[str(each.name)] for each in app.registered_commands]
    commands += [["wasm"], ["wasm", "build"], ["wasm", "inspect"]]

    for columns in ("100", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        for command in ([], *commands):
            ended = inside(*command, "-h")
            assert (ended.status, ended.err) == (0, "")
            assert " ".join(["Usage: toolpost", *command]) in " ".join(ended.out.split())
            assert " ".join(["toolpost", *command]) in " ".join(ended.out.rpartition("Example")[2].split())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "nonsense"),
        (["tools"], "NAME"),
        (["tools", "it", "--what"], "--what"),
        (["call", "it", "echo", "--timeout", "soon"], "--timeout"),
        (["--log-level", "loud", "check"], "loud"),
    ],
)
def test_wrong_usage_is_status_2_and_named(arguments: list[str], named: str) -> None:
    ended = toolpost(*arguments)

    assert ended.status == 2
    assert ended.out == ""
    assert named in ended.err
    assert "Traceback" not in ended.err


def test_shared_options_stand_before_the_command_or_after_it(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd()}})

    before = toolpost("-c", config, "--log-level", "debug", "check", "--json")
    after = toolpost("check", "--json", "-c", config, "--log-level", "debug")

    assert before.status == after.status == 0
    assert before.document == after.document
    assert before.document["toolings"] == {"it": {"kind": "mcp", "transport": "stdio"}}


def test_what_stands_after_the_command_wins(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd()}})

    assert toolpost("-c", "missing.toml", "check", "--config", config).status == 0


def test_each_v_counts_wherever_it_stands(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd()}})

    quiet = toolpost("-c", config, "tools", "it")
    told = toolpost("-v", "-c", config, "tools", "it")
    everything = toolpost("-v", "-c", config, "tools", "it", "-v")

    assert quiet.logged == []
    assert {each["level"] for each in told.logged} == {"INFO"}
    assert {each["level"] for each in everything.logged} >= {"INFO", "DEBUG"}


def test_the_log_level_wins_over_v(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd()}})

    assert toolpost("-vv", "--log-level", "error", "-c", config, "tools", "it").err == ""


def test_the_config_comes_from_standard_input(tmp_path: Path) -> None:
    text = write_config(tmp_path, {"tooling": {"it": odd()}}).read_text()

    ended = toolpost("tools", "it", "-c", "-", stdin=text)

    assert ended.status == 0
    assert ended.out.split() == ["echo", "pid"]
