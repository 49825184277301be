"""`tools`, `call` and `check --connect`: one question to a server, and its answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import real
from tests.cli.support import (
    TOOLPOST,
    Ended,
    assert_none_left,
    environment,
    odd,
    pids,
    started,
    toolpost,
    until,
    write_config,
)
from toolpost.cli.arguments import typed_value
from toolpost.cli.input_schema import InputSchema


def failed(ended: Ended) -> str:
    """What was said, once it is clear that a server was at fault."""
    assert ended.status == 1
    assert "Traceback" not in ended.err
    return ended.said


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def config(tmp_path: Path, log: Path) -> Path:
    """The one tooling `it`, an honest server."""
    return write_config(tmp_path, {"tooling": {"it": odd(log=log)}})


# -- tools -----------------------------------------------------------------------------------------


def test_tools_lists_names_and_leaves_no_process(config: Path, log: Path) -> None:
    assert toolpost("tools", "it", "-c", config) == Ended(0, "echo\npid\n", "")
    assert_none_left(log)


@pytest.mark.needs_node
def test_tools_gives_every_tool_of_a_real_server_as_json(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"everything": real.everything().table()}})

    tools = toolpost("tools", "everything", "-c", config, "--json").document

    by_name = {each["name"]: each for each in tools}
    assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= set(by_name)
    assert by_name["get-sum"]["input_schema"]["required"] == ["a", "b"]


# -- call ------------------------------------------------------------------------------------------


@pytest.mark.needs_node
def test_call_prints_what_a_real_server_answers(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"everything": real.everything().table()}})

    echo = toolpost("call", "everything", "echo", "message=hi", "-c", config)
    number = toolpost("call", "everything", "echo", "message=12", "-c", config)
    total = toolpost("-c", config, "call", "everything", "get-sum", "a=2", "b=3")

    assert echo == Ended(0, "Echo: hi\n", "")
    assert number.out == "Echo: 12\n"
    assert total == Ended(0, "The sum of 2 and 3 is 5.\n", "")


@pytest.mark.needs_node
def test_call_tells_of_blocks_that_are_no_text(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"everything": real.everything().table()}})

    shown = toolpost("call", "everything", "get-tiny-image", "-c", config)
    whole = toolpost("call", "everything", "get-tiny-image", "-c", config, "--json")

    said = "not shown: a block that is no text (image); -o saves, --json shows everything\n"
    assert shown.err == said
    assert [block["type"] for block in whole.document["content"]] == ["text", "image", "text"]


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["text=[red]no markup[/red] $HOME"], ""),
        (['{"text": "[red]no markup[/red] $HOME"}'], ""),
        (["-"], '{"text": "[red]no markup[/red] $HOME"}'),
    ],
)
def test_call_takes_arguments_in_three_forms_and_prints_verbatim(
    words: list[str], stdin: str, config: Path
) -> None:
    ended = toolpost("call", "it", "echo", *words, "-c", config, stdin=stdin)

    assert ended == Ended(0, "[red]no markup[/red] $HOME\n", "")


def test_call_gives_the_whole_result_as_json(config: Path) -> None:
    result = toolpost("call", "it", "echo", '{"text":  "hi"}', "-c", config, "--json").document

    assert result == {
        "name": "echo",
        "arguments": '{"text":  "hi"}',
        "value": "hi",
        "content": [{"type": "text", "text": "hi"}],
        "is_error": False,
    }


def test_a_result_that_reports_a_failure_is_printed_and_status_1(config: Path) -> None:
    ended = toolpost("call", "it", "fail", "-c", config)
    as_json = toolpost("call", "it", "fail", "-c", config, "--json")

    hint = "  (the server lists no such tool; nearest first: echo, pid)\n"
    assert ended == Ended(1, "no\n", f"error: tool 'fail' reported a failure\n{hint}")
    assert as_json.status == 1
    assert as_json.document["is_error"] is True


def test_an_unknown_tool_is_an_error_of_the_server(config: Path, log: Path) -> None:
    said = failed(toolpost("call", "it", "nonsense", "-c", config))

    assert "tooling 'it'" in said
    assert "Unknown tool: nonsense" in said
    assert "the server lists no such tool; nearest first: echo, pid" in said
    assert_none_left(log)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["text"], "'text' is not key=value"),
        (["=x"], "'=x' is not key=value"),
        (["a:=1,"], "'a': what stands after := is no JSON"),
        (["a=@no-such-file"], "file 'no-such-file' cannot be read: No such file"),
        (["{"], "arguments are no JSON"),
        (["-"], "arguments must be a JSON object, not list"),
        (["--timeout", "0"], "timeout must be a positive number"),
    ],
)
def test_wrong_arguments_are_status_2_before_anything_is_started(
    words: list[str], named: str, config: Path, log: Path
) -> None:
    ended = toolpost("call", "it", "echo", *words, "-c", config, stdin="[1]")

    assert ended.status == 2
    assert named in ended.err
    assert pids(log) == []


def test_config_and_arguments_cannot_both_be_standard_input(config: Path) -> None:
    ended = toolpost("call", "it", "echo", "-", "-c", "-", stdin=config.read_text())

    assert ended.status == 2
    assert "standard input" in ended.err


def test_a_call_that_takes_too_long_is_given_up(config: Path, log: Path) -> None:
    said = failed(toolpost("call", "it", "hold", "--timeout", "0.2", "-c", config))

    assert "0.2 s" in said
    assert_none_left(log)


STRING: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("hi", None, "hi"),
        ("2", None, 2),
        ("2.5", {"type": "number"}, 2.5),
        ("true", None, True),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": null}', None, {"a": None}),
        ("NaN", None, "NaN"),
        ("", None, ""),
        ("2", STRING, "2"),
        ('"2"', STRING, '"2"'),
        ('"2"', None, "2"),
        ("null", {"anyOf": [STRING, {"type": "null"}]}, None),
        ("2", {"anyOf": [STRING, {"type": "null"}]}, "2"),
        ("2", {"type": ["string", "integer"]}, 2),
        ("2", True, 2),
        ("[" * 100_000, None, "[" * 100_000),
    ],
)
def test_a_value_is_json_unless_the_schema_wants_a_string(text: str, schema: Any, value: Any) -> None:
    assert typed_value(text, InputSchema(schema)) == value


# -- check -----------------------------------------------------------------------------------------


def test_check_shows_what_is_in_a_config_and_starts_nothing(tmp_path: Path, log: Path) -> None:
    config = write_config(
        tmp_path,
        {
            "tooling": {"it": odd(log=log)},
            "agents": {"one": {"script": "one.py", "toolings": ["it"]}, "two": {"entry": "json:dumps"}},
        },
        one="raise RuntimeError('this is not run')",
    )

    ended = toolpost("check", "-c", config)

    assert ended.status == 0
    assert [line.split() for line in ended.out.splitlines() if line] == [
        [f"{config}:", "good"],
        ["toolings"],
        ["it", "mcp", "(stdio)"],
        ["agents"],
        ["one", "one.py", "may", "use:", "it"],
        ["two", "json:dumps"],
    ]
    assert pids(log) == []


def test_check_connect_tells_what_each_server_is(config: Path, log: Path) -> None:
    ended = toolpost("check", "--connect", "-c", config)

    assert ended.status == 0
    told = (
        "it  mcp (stdio)  odd 1, protocol 2025-11-25, 2 tools, 1 resource, can: logging, resources+subscribe"
    )
    assert told in ended.out
    assert_none_left(log)


def test_check_connect_is_status_1_where_one_server_fails(tmp_path: Path, log: Path) -> None:
    tables = {"tooling": {"good": odd(log=log), "bad": odd("exit_on_start")}}
    config = write_config(tmp_path, tables)

    ended = toolpost("check", "--connect", "-c", config)
    document = toolpost("check", "--connect", "--json", "-c", config).document

    assert "1 of 2 toolings cannot be used" in failed(ended)
    assert "2 tools" in ended.out
    assert "FAILED: tooling 'bad'" in ended.out
    assert document["toolings"]["good"]["tools"] == 2
    assert "status 3" in document["toolings"]["bad"]["error"]
    assert_none_left(log)


# -- servers that do not come up -------------------------------------------------------------------


def test_a_command_that_is_not_found_is_status_1(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(command="no-such-program")}})

    said = failed(toolpost("tools", "it", "-c", config))

    assert said.startswith("error: tooling 'it': cannot connect: command 'no-such-program' was not found")
    assert "try" not in said


def test_a_command_that_is_not_executable_is_status_1(tmp_path: Path) -> None:
    (tmp_path / "server").write_text("#!/bin/sh\n")
    config = write_config(tmp_path, {"tooling": {"it": odd(command=str(tmp_path / "server"))}})

    assert "is not executable" in failed(toolpost("tools", "it", "-c", config))


def test_a_server_that_exits_at_once_is_tried_twice_and_explained(tmp_path: Path, log: Path) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd("exit_on_start", log=log)}})

    said = failed(toolpost("tools", "it", "-c", config))

    assert "given up after 2 attempts" in said
    assert "exited with status 3" in said
    assert "no licence found" in said
    assert "a one-shot command tries twice at most" in said
    assert_none_left(log)


@pytest.mark.parametrize(("cap", "attempts"), [(0, 1), (0.05, 1), (30, 2)])
def test_a_config_that_wants_fewer_dials_gets_fewer(cap: float, attempts: int, tmp_path: Path) -> None:
    tables = {
        "tooling": {"it": odd("exit_on_start")},
        "tunables": {"tooling_connect_backoff_cap_secs": cap},
    }
    config = write_config(tmp_path, tables)

    assert f"given up after {attempts} attempts" in failed(toolpost("tools", "it", "-c", config))


def test_a_server_that_never_answers_is_given_up_and_ended(tmp_path: Path, log: Path) -> None:
    tables = {
        "tooling": {"it": odd("silent", log=log)},
        "tunables": {"tooling_connect_timeout_secs": 0.5},
    }
    config = write_config(tmp_path, tables)

    assert "within 0.5 s" in failed(toolpost("tools", "it", "-c", config))
    assert_none_left(log)


def test_a_server_that_dies_during_the_call_is_told_with_its_last_words(config: Path, log: Path) -> None:
    said = failed(toolpost("call", "it", "exit", "status=7", "-c", config))

    assert "status 7" in said
    assert "leaving as asked" in said
    assert_none_left(log)


# -- standard output that closes -------------------------------------------------------------------


def test_a_reader_that_leaves_ends_the_command_without_a_traceback(config: Path, log: Path) -> None:
    with started("call", "it", "big", "size=3000000", "-c", config) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.read(10) == "x" * 10
        running.process.stdout.close()
        assert running.process.stderr is not None
        said = running.process.stderr.read()
        until(lambda: running.process.poll() is not None)

    assert said == ""
    assert running.process.returncode == 1
    assert_none_left(log)


def test_a_full_disk_is_told(config: Path, log: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [TOOLPOST, "tools", "it", "-c", str(config)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: No space left on device\n"
    assert_none_left(log)


# -- locales and terminals -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["call", "it", "echo", "text=häuser €"], ["-h"], ["check"]])
def test_it_works_where_the_locale_knows_ascii_only(words: list[str], config: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

    ended = toolpost(*words, cwd=config.parent, env=ascii_only)

    assert ended.status == 0
    assert ended.err == ""
    assert ended.out.isascii()


def test_json_is_still_json_where_the_locale_knows_ascii_only(config: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    arguments = json.dumps({"text": "häuser € 🎉"})

    ended = toolpost("call", "it", "echo", arguments, "--json", "-c", config, env=ascii_only)

    assert ended.out.isascii()
    assert ended.document["value"] == "häuser € 🎉"


def test_toolpost_python_is_the_python_that_runs_toolpost_unless_the_environment_says_otherwise(
    tmp_path: Path,
) -> None:
    config = write_config(tmp_path, {"tooling": {"it": odd(command="${TOOLPOST_PYTHON}")}})

    own = toolpost("tools", "it", "-c", config)
    another = toolpost("tools", "it", "-c", config, env={"TOOLPOST_PYTHON": "no-such-python"})

    assert own.status == 0
    assert "command 'no-such-python' was not found" in failed(another)
