"""`toolpost run`: outcomes, the live trace, and what agents print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import (
    assert_none_left,
    odd,
    received,
    started,
    toolpost,
    until,
    write_config,
)

ECHO = """
async def run(host):
    result = await host.tooling.get("it").call_tool_blocking("echo", {"text": "hi"})
    print(f"{host.name} got {result.value}")
    return result.value
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_agents_run_to_their_ends(tmp_path: Path, log: Path) -> None:
    tables = {
        "tooling": {"it": odd(log=log)},
        "agents": {"one": {"script": "one.py"}, "two": {"script": "two.py"}},
    }
    config = write_config(tmp_path, tables, one=ECHO, two="def run(host): print(host.params)")

    ended = toolpost("run", "-c", config)

    assert ended.status == 0
    assert sorted(ended.out.splitlines()) == ["one got hi", "{}"]
    assert sorted(ended.err.splitlines()) == ["agent 'one' exited: hi", "agent 'two' completed"]
    assert_none_left(log)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def run(host): raise ValueError('no luck')", "failed: ValueError: no luck"),
        ("async def run(host): return 42", "failed: it returned 42; an agent returns None or a string"),
        ("raise ValueError('at import')", "failed: ValueError: at import"),
        ("def run(host): raise SystemExit(3)", "failed: SystemExit: 3"),
        ("def run(host): host.tooling.get('ti')", "failed: UnknownTooling: unknown tooling 'ti'"),
    ],
)
def test_an_agent_that_fails_is_status_1_and_the_others_go_on(code: str, said: str, tmp_path: Path) -> None:
    tables = {"agents": {"bad": {"script": "bad.py"}, "good": {"script": "good.py"}}}
    config = write_config(tmp_path, tables, bad=code, good="def run(host): return 'fine'")

    ended = toolpost("run", "-c", config)

    assert ended.status == 1
    assert f"agent 'bad' {said}" in ended.said
    assert "agent 'good' exited: fine" in ended.said


def test_the_traceback_of_an_agent_is_in_the_log(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, {"agents": {"bad": {"script": "bad.py"}}}, bad="def run(host):\n    1 / 0\n"
    )

    [record] = toolpost("run", "-c", config).logged

    assert record["level"] == "ERROR"
    assert record["logger"] == "toolpost.agent.bad"
    assert "bad.py" in record["exception"]
    assert "ZeroDivisionError" in record["exception"]


def test_a_script_without_run_is_status_2(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one="x = 1")

    ended = toolpost("run", "-c", config)

    assert ended.status == 2
    assert "has no function 'run'" in ended.err


def test_a_config_without_agents_is_status_2(tmp_path: Path) -> None:
    ended = toolpost("run", "-c", write_config(tmp_path, {"tooling": {"it": odd()}}))

    assert ended.status == 2
    assert "has no agents to run" in ended.err


def test_what_agents_log_is_shown_and_other_talk_is_not(tmp_path: Path) -> None:
    code = """
import logging

def run(host):
    host.log("hello")
    host.log("too much", level="debug")
    logging.getLogger("somebody").info("unasked")
    logging.getLogger("somebody").warning("mind this")
"""
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one=code)

    logged = toolpost("run", "-c", config).logged

    assert [(each["level"], each["logger"], each["message"]) for each in logged] == [
        ("INFO", "toolpost.agent.one", "hello"),
        ("WARNING", "somebody", "mind this"),
    ]
    assert all(each["time"].endswith("+00:00") for each in logged)


def test_json_prints_the_trace_and_nothing_else(tmp_path: Path, log: Path) -> None:
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=ECHO)

    ended = toolpost("run", "--json", "-c", config)

    events = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.status == 0
    assert [each["kind"] for each in events if each["kind"] != "state"] == ["call", "outcome"]
    assert [each["state"] for each in events if each["kind"] == "state"] == ["dialing", "ready", "closed"]
    assert ended.said.splitlines() == ["one got hi", "agent 'one' exited: hi"]
    assert_none_left(log)


def test_a_child_of_an_agent_does_not_print_into_the_trace(tmp_path: Path) -> None:
    code = "import subprocess\ndef run(host): subprocess.run(['echo', 'from a child'])"
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one=code)

    ended = toolpost("run", "--json", "-c", config)

    assert [json.loads(line)["kind"] for line in ended.out.splitlines()] == ["outcome"]
    assert "from a child" in ended.err


def test_the_trace_is_live(tmp_path: Path, log: Path) -> None:
    code = "def run(host): host.tooling.get('it').call_tool_blocking('hold')"
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)

    with started("run", "--json", "-c", config) as running:
        assert running.process.stdout is not None
        first = json.loads(running.process.stdout.readline())  # while the call is still under way
        assert running.process.poll() is None

    assert (first["kind"], first["op"]) == ("call", "call_tool_blocking")


def test_a_reader_of_the_trace_that_leaves_ends_the_run(tmp_path: Path, log: Path) -> None:
    code = """
from toolpost import Shutdown

async def run(host):
    tooling = host.tooling.get("it")
    while not isinstance(host.try_recv(), Shutdown):
        await tooling.call_tool_blocking("echo", {"text": "hi"})
"""
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(
        tmp_path, tables, one=code.replace("host.try_recv()", "getattr(host.try_recv(), 'event', None)")
    )

    with started("run", "--json", "-c", config) as running:
        until(lambda: received(log, "tools/call"))
        assert running.process.stdout is not None
        running.process.stdout.readline()
        running.process.stdout.close()
        assert running.process.stderr is not None
        said = running.process.stderr.read()
        until(lambda: running.process.poll() is not None)

    assert running.process.returncode == 1
    assert "Traceback" not in said
    assert_none_left(log)
