"""`toolpost run`: outcomes, the live trace, and what agents print."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

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


# -- the trace in a file ---------------------------------------------------------------------------


def records(file: Path) -> list[dict[str, Any]]:
    """What has been written so far; a line that is being written is left out."""
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


SCRIPTED = """
[tooling.it]
kind = "mock"
tool_calls = [{ name = "echo", result = "hi" }]

[agents.one]
script = "one.py"
"""


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    """A config with one agent, which makes a call on a mock and prints what comes."""
    return write_config(tmp_path, SCRIPTED, one=ECHO)


def test_the_trace_is_written_to_a_file(scripted: Path, tmp_path: Path) -> None:
    ended = toolpost("run", "--trace", tmp_path / "run.jsonl", "-c", scripted)

    assert (ended.status, ended.out) == (0, "one got hi\n")
    assert [each["kind"] for each in records(tmp_path / "run.jsonl")] == ["call", "outcome"]


def test_the_trace_is_written_and_printed(scripted: Path, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("what was there before\n" * 100)

    ended = toolpost("run", "--json", "--trace", tmp_path / "run.jsonl", "-c", scripted)

    assert ended.status == 0
    assert ended.out == (tmp_path / "run.jsonl").read_text()
    assert [json.loads(line)["kind"] for line in ended.out.splitlines()] == ["call", "outcome"]


def test_an_interrupted_run_leaves_what_happened(tmp_path: Path, log: Path) -> None:
    code = "def run(host): host.tooling.get('it').call_tool_blocking('hold')"
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)
    file = tmp_path / "run.jsonl"

    with started("run", "--trace", file, "-c", config) as running:
        until(lambda: [each for each in records(file) if each["kind"] == "call"])  # under way
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert [each["kind"] for each in records(file) if each["kind"] != "state"] == ["call", "outcome"]


def test_a_killed_run_leaves_what_happened(tmp_path: Path, log: Path) -> None:
    code = "def run(host): host.tooling.get('it').call_tool_blocking('hold')"
    tables = {"tooling": {"it": odd(log=log)}, "agents": {"one": {"script": "one.py"}}}
    config = write_config(tmp_path, tables, one=code)
    file = tmp_path / "run.jsonl"

    with started("run", "--trace", file, "-c", config) as running:
        until(lambda: [each for each in records(file) if each["kind"] == "call"])
        running.process.kill()
        running.end()

    assert toolpost("trace", file, "--agent", "one").status == 0


@pytest.mark.parametrize("file", ["missing/run.jsonl", ".", "-", ""])
def test_a_file_that_cannot_be_written_is_status_2_and_nothing_starts(
    file: str, scripted: Path, tmp_path: Path
) -> None:
    ended = toolpost("run", "--json", "--trace", file, "-c", scripted, cwd=tmp_path)

    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"error: --trace {file!r} ")
    assert len(ended.err.splitlines()) == 1


def test_a_wrong_config_leaves_the_trace_of_before(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text("what was there before\n")

    ended = toolpost("run", "--trace", tmp_path / "run.jsonl", "-c", write_config(tmp_path, "[nonsense]"))

    assert ended.status == 2
    assert (tmp_path / "run.jsonl").read_text() == "what was there before\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it is a device of Linux")
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_full_disk_is_told_and_the_run_goes_on(words: list[str], scripted: Path) -> None:
    ended = toolpost("run", *words, "--trace", "/dev/full", "-c", scripted)

    assert ended.status == 1
    assert "error: the trace in '/dev/full' is not whole: No space left on device" in ended.said
    assert "agent 'one' exited: hi" in ended.said
    assert len(ended.out.splitlines()) == (2 if words else 1)


def test_a_reader_of_the_file_that_leaves_is_told_of_and_the_run_goes_on(tmp_path: Path) -> None:
    code = "def run(host):\n    with open('go'):\n        return 'gone'"
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one=code)
    for name in ("run.jsonl", "go"):
        os.mkfifo(tmp_path / name)

    with started("run", "--trace", "run.jsonl", "-c", config, cwd=tmp_path) as running:
        os.close(os.open(tmp_path / "run.jsonl", os.O_RDONLY))  # both sides wait for each other in `open`
        os.close(os.open(tmp_path / "go", os.O_WRONLY))
        ended = running.end()

    assert ended.status == 1
    assert "error: the trace in 'run.jsonl' is not whole: Broken pipe" in ended.said
    assert "agent 'one' exited: gone" in ended.said


# -- simulated -------------------------------------------------------------------------------------

RACE = """
[tooling.shop]
kind = "mock"
delay_ms = 3600000
tool_calls = [{ name = "price", result = "apples" }, { name = "price", result = "pears" }]
[agents.one]
script = "one.py"
"""
RACER = """
def run(host):
    shop = host.tooling.get("shop")
    shop.call_tool("price")
    shop.call_tool("price")
    return f"{host.recv(timeout=1e5).event.value}, {host.recv().event.value}"
"""


def test_a_simulated_run_waits_for_nothing_and_repeats_itself(tmp_path: Path) -> None:
    config = write_config(tmp_path, RACE, one=RACER)

    runs = [toolpost("run", "--simulate", "--json", "-c", config) for _ in range(2)]

    assert [each.status for each in runs] == [0, 0]
    assert runs[0].out == runs[1].out, "with its UUIDs"
    assert "agent 'one' exited: apples, pears" in runs[0].err


def test_a_seed_chooses_another_order(tmp_path: Path) -> None:
    config = write_config(tmp_path, RACE, one=RACER)

    said = {toolpost("run", "--simulate", "--seed", str(seed), "-c", config).err for seed in range(1, 6)}

    assert "agent 'one' exited: pears, apples\n" in said


def test_a_deadlock_ends_a_simulated_run_with_what_is_waited_for(tmp_path: Path) -> None:
    tables = '[tooling.it]\nkind = "mock"\ntool_calls = [{ name = "echo", pending = true }]\n'
    code = "def run(host):\n    host.tooling.get('it').call_tool_blocking('echo')"
    config = write_config(tmp_path, f'{tables}[agents.one]\nscript = "one.py"\n', one=code)

    ended = toolpost("run", "--simulate", "-c", config)

    assert ended.status == 1
    assert "deadlock at 0.01 s of simulated time: it waits in call_tool_blocking('it', 'echo')" in ended.err


def test_real_toolings_cannot_be_simulated(tmp_path: Path) -> None:
    config = write_config(
        tmp_path, {"tooling": {"it": odd()}, "agents": {"one": {"script": "one.py"}}}, one=ECHO
    )

    ended = toolpost("run", "--simulate", "-c", config)

    assert ended.status == 2
    assert "cannot be simulated: these toolings are real: 'it'" in ended.err


def test_a_seed_needs_a_simulated_run(tmp_path: Path) -> None:
    ended = toolpost("run", "--seed", "1", "-c", write_config(tmp_path, RACE, one=RACER))

    assert (ended.status, ended.err) == (2, "error: --seed is for a simulated run; add --simulate\n")


def test_ctrl_c_ends_a_simulated_run_whose_agent_never_calls_the_host(tmp_path: Path) -> None:
    code = "from pathlib import Path\ndef run(host):\n    Path('here').touch()\n    while True: pass"
    config = write_config(tmp_path, '[agents.one]\nscript = "one.py"\n', one=code)

    with started("run", "--simulate", "-c", config, cwd=tmp_path) as running:
        until((tmp_path / "here").exists)
        running.signal(signal.SIGINT)
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
