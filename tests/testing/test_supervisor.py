"""Cases in a process of their own, that do to it whatever they can. Real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.support import is_alive, until
from toolpost.errors import ToolpostError
from toolpost.testing.protocol import Order, Reply
from toolpost.testing.result import Result
from toolpost.testing.supervisor import Options, Supervisor

GOOD = "def run(host): return 'fine'"


@pytest.fixture
def supervisor() -> Generator[Supervisor]:
    """A supervisor at work."""
    with Supervisor() as running:
        yield running


def write_case(folder: Path, code: str, *, name: str = "case", seconds: float = 30) -> Path:
    """A test file whose one agent runs `code`, and must say that it is fine."""
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    file = folder / f"{name}.test.toml"
    text = f"""
        [agents.one]
        script = {json.dumps(f"{name}.py", ensure_ascii=False)}
        [assertions.one]
        outcome = {{ exited = "fine" }}
        [test]
        timeout_secs = {seconds}
    """
    file.write_text(text, encoding="utf-8")
    return file


def run(supervisor: Supervisor, case: Path) -> Result:
    return supervisor.run(Order(case=str(case))).result


def pid_of_worker(supervisor: Supervisor, folder: Path) -> int:
    """The process that runs cases now."""
    code = "import os\ndef run(host):\n    print(os.getpid())\n    return 'fine'"
    return int(run(supervisor, write_case(folder, code, name="who")).output)


def test_a_secret_that_a_case_prints_is_masked_also_where_its_process_dies(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import os\ndef run(host):\n    print('the token is very-secret-token')\n    os._exit(3)"
    case = write_case(tmp_path, code)
    secret = (
        '[tooling.web]\nkind = "mcp"\ntransport = "stdio"\ncommand = "x"\nenv = { T = "very-secret-token" }\n'
    )
    case.write_text(secret + case.read_text())

    result = run(supervisor, case)

    assert "exited with status 3" in result.report
    assert result.output == "the token is ***\n"


def test_an_agent_that_meddles_with_how_results_are_told_fails_alone(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import json\njson.dumps = lambda *_, **__: 'nonsense'\ndef run(host):\n    return 'fine'"

    assert run(supervisor, write_case(tmp_path, code)).status == "passed"
    assert run(supervisor, write_case(tmp_path, "def run(host):\n    return 'fine'")).status == "passed"


def test_a_case_comes_back_with_its_result_and_what_it_printed(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = """
import logging, os, subprocess, sys

def run(host):
    print("by print")
    print("no end of line", end="", file=sys.stderr)
    os.write(1, b"\\nby the descriptor\\n")
    subprocess.run(["echo", "by a child"])
    host.log("by the agent")
    logging.getLogger("other").warning("by a logger")
    return "fine"
"""
    result = run(supervisor, write_case(tmp_path, code))

    assert (result.status, result.failures) == ("passed", [])
    assert result.output.splitlines() == [
        "by print",
        "no end of line",
        "by the descriptor",
        "by a child",
        "one: by the agent",
        "warning: by a logger (other)",
    ]


def test_cases_share_a_process_and_find_it_as_the_first_one_did(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    rude = """
import os, sys

def run(host):
    print("rude")
    os.chdir("/")
    os.environ["TOOLPOST_RUDE"] = "yes"
    os.environ.pop("HOME", None)
    sys.stdout.close()
    sys.stderr = None
    return "fine"
"""
    polite = """
import os

def run(host):
    print(os.getcwd(), "TOOLPOST_RUDE" in os.environ, "HOME" in os.environ)
    return "fine"
"""
    first = pid_of_worker(supervisor, tmp_path)
    assert run(supervisor, write_case(tmp_path, rude, name="rude")).status == "passed"
    after = run(supervisor, write_case(tmp_path, polite, name="polite"))

    assert after.output == f"{Path.cwd()} False {'HOME' in os.environ}\n"
    assert pid_of_worker(supervisor, tmp_path) == first


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (
            "import os\ndef run(host):\n    print('last words', end='')\n    os._exit(3)",
            "exited with status 3",
        ),
        (
            "import os\ndef run(host):\n    print('last words')\n    os.kill(os.getpid(), 9)",
            "was killed by SIGKILL",
        ),
        (
            "import os\nasync def run(host):\n    print('last words')\n    os.kill(os.getpid(), 15)",
            "was killed by SIGTERM",
        ),
        ("import os\nprint('last words')\nos._exit(0)", "exited with status 0"),
    ],
    ids=["exit", "kill", "terminate", "exit while it is loaded"],
)
def test_a_case_that_ends_its_process_fails_and_the_others_go_on(
    code: str, how: str, supervisor: Supervisor, tmp_path: Path
) -> None:
    result = run(supervisor, write_case(tmp_path, code))

    assert result.status == "failed"
    assert result.failures == [f"its process {how}"]
    assert result.output.strip() == "last words"
    assert result.report.endswith(f"again: toolpost test {result.case}")
    assert run(supervisor, write_case(tmp_path, GOOD, name="next")).status == "passed"


def test_a_crash_of_the_interpreter_shows_where_it_was(supervisor: Supervisor, tmp_path: Path) -> None:
    code = "import ctypes\ndef run(host):\n    ctypes.string_at(0)  # here\n"

    result = run(supervisor, write_case(tmp_path, code))

    assert result.failures == ["its process was killed by SIGSEGV"]
    assert f'File "{tmp_path / "case.py"}", line 3 in run' in result.report


@pytest.mark.parametrize("how", ["def", "async def"])
def test_code_that_lets_nothing_else_run_is_ended_and_shown(how: str, tmp_path: Path) -> None:
    code = f"import re\n\n{how} run(host):\n    print('begun')\n    re.match('(a+)+$', 'a' * 64 + 'b')\n"

    with Supervisor(Options(silence_secs=0.5)) as supervisor:
        result = run(supervisor, write_case(tmp_path, code, seconds=0.5))
        after = run(supervisor, write_case(tmp_path, GOOD, name="next"))

    assert result.failures == ["timed out, in code that lets nothing else run"]
    assert f'File "{tmp_path / "case.py"}", line 5 in run' in result.report
    assert "toolpost/" not in result.report.partition("again: ")[0]
    assert result.output == "begun\n"
    assert after.status == "passed"


def test_what_cannot_be_stopped_is_told_and_left_behind_with_its_process(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = "import os, threading\ndef run(host):\n    print(os.getpid())\n    threading.Event().wait()\n"

    result = run(supervisor, write_case(tmp_path, code, seconds=0.2))

    assert result.is_stuck
    assert result.failures == ["timed out after 0.2 s: 'one'"]
    assert "threading.Event().wait()" in result.report
    assert until(lambda: not is_alive(int(result.output.splitlines()[0])))
    assert run(supervisor, write_case(tmp_path, GOOD, name="next")).status == "passed"


def test_an_interrupt_that_an_agent_raises_is_its_failure(supervisor: Supervisor, tmp_path: Path) -> None:
    result = run(supervisor, write_case(tmp_path, "async def run(host): raise KeyboardInterrupt('me')"))

    assert (result.status, result.failures) == ("failed", ["it raised KeyboardInterrupt: me"])
    assert run(supervisor, write_case(tmp_path, GOOD, name="next")).status == "passed"


def test_the_child_of_a_fork_that_comes_back_tells_nothing(supervisor: Supervisor, tmp_path: Path) -> None:
    code = "import os\ndef run(host):\n    return 'fine' if os.fork() else 'the child'"

    assert run(supervisor, write_case(tmp_path, code)).status == "passed"
    assert run(supervisor, write_case(tmp_path, GOOD, name="next")).status == "passed"


def test_a_child_that_holds_everything_open_does_not_hide_the_end(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    code = """
import os, threading

def run(host):
    child = os.fork()
    if child == 0:
        threading.Event().wait()
    print(child, flush=True)
    os._exit(3)
"""
    result = run(supervisor, write_case(tmp_path, code))

    assert result.failures == ["its process exited with status 3"]
    assert until(lambda: not is_alive(int(result.output)))


def test_what_a_case_has_started_goes_with_the_process(tmp_path: Path) -> None:
    code = """
import subprocess

def run(host):
    print(subprocess.Popen(["sleep", "1000"]).pid)
    return "fine"
"""
    with Supervisor() as supervisor:
        child = int(run(supervisor, write_case(tmp_path, code)).output)
        assert is_alive(child)

    assert until(lambda: not is_alive(child))


def test_agents_have_no_terminal_and_no_standard_input(supervisor: Supervisor, tmp_path: Path) -> None:
    code = """
import os, sys

def run(host):
    assert os.getsid(0) == os.getpid()
    return sys.stdin.read() or "fine"
"""
    assert run(supervisor, write_case(tmp_path, code)).failures == []


def test_much_that_is_printed_is_cut_at_its_beginning(supervisor: Supervisor, tmp_path: Path) -> None:
    code = """
def run(host):
    for number in range(20):
        print(f"{number} " + "é" * 50_000)
    return "fine"
"""
    output = run(supervisor, write_case(tmp_path, code)).output

    assert output.startswith("(")
    assert "bytes before this are left out)\n" in output
    assert output.splitlines()[1][:3] == "10 "
    assert output.splitlines()[-1] == f"19 {'é' * 50_000}"


def test_what_is_printed_is_text_whatever_bytes_it_was(supervisor: Supervisor, tmp_path: Path) -> None:
    code = r"""
import os

def run(host):
    os.write(1, b"\xff\x00\x1b[31m\n")
    print("\ud800 🦊")
    return "fine"
"""
    assert run(supervisor, write_case(tmp_path, code)).output == "�\x00\x1b[31m\n\\ud800 🦊\n"


def test_a_secret_of_the_config_is_masked_in_what_is_printed(supervisor: Supervisor, tmp_path: Path) -> None:
    case = write_case(tmp_path, "def run(host):\n    print('it is hunter2-hunter2')\n    return 'fine'")
    tooling = """
        [tooling.it]
        kind = "mcp"
        transport = "http"
        url = "http://127.0.0.1:1/"
        auth_token = "hunter2-hunter2"
        [tunables]
        allow_unlocked_secrets = true
    """
    case.write_text(case.read_text() + tooling)

    assert run(supervisor, case).output == "it is ***\n"


def test_names_of_all_alphabets_and_odd_bytes_are_names(supervisor: Supervisor, tmp_path: Path) -> None:
    for name in ("mañana 🦊", "neu\nzeile", "bytes-\udcff"):
        case = write_case(tmp_path, GOOD)
        renamed = case.rename(tmp_path / f"{name}.test.toml")

        result = run(supervisor, renamed)

        assert (result.case, result.status) == (str(renamed), "passed")


def test_the_words_of_an_agent_may_be_no_unicode(supervisor: Supervisor, tmp_path: Path) -> None:
    result = run(supervisor, write_case(tmp_path, "def run(host): return '\\ud800'"))

    assert result.status == "failed"


def test_a_file_that_cannot_be_used_is_an_error_and_no_failure(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    case = tmp_path / "odd.test.toml"
    case.write_text("nonsense")

    result = run(supervisor, case)

    assert result.status == "error"
    assert result.files == [str(case)]
    assert "not valid TOML" in result.report


def told(supervisor: Supervisor, case: Path, trace: Path) -> Reply:
    return supervisor.run(Order(case=str(case), trace=str(trace)))


def test_the_trace_is_written_also_of_a_case_that_is_stuck(supervisor: Supervisor, tmp_path: Path) -> None:
    blocked = "import threading\nasync def run(host):\n    await host.sleep(0)\n    threading.Event().wait()"
    good, stuck = tmp_path / "good.jsonl", tmp_path / "stuck.jsonl"

    assert told(supervisor, write_case(tmp_path, GOOD), good).problem == ""
    reply = told(supervisor, write_case(tmp_path, blocked, name="stuck", seconds=0.2), stuck)

    assert reply.result.is_stuck
    assert json.loads(good.read_text()) == {"kind": "outcome", "agent": "one", "outcome": {"exited": "fine"}}
    assert stuck.exists()


def test_a_trace_that_cannot_be_written_is_told_of_beside_the_result(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    reply = told(supervisor, write_case(tmp_path, GOOD), tmp_path)

    assert reply.result.status == "passed"
    assert reply.problem == f"cannot write the trace {str(tmp_path)!r}: Is a directory"


def test_whoever_waits_is_called_meanwhile(supervisor: Supervisor, tmp_path: Path) -> None:
    code = """
import pathlib

async def run(host):
    while not pathlib.Path(host.params["go"]).exists():
        await host.sleep(0.01)
    return "fine"
"""
    go = tmp_path / "go"
    case = write_case(tmp_path, code)
    case.write_text(case.read_text().replace("[assertions", f"params = {{ go = {str(go)!r} }}\n[assertions"))

    reply = supervisor.run(Order(case=str(case)), tick=go.touch)

    assert reply.result.status == "passed"


def test_a_process_that_cannot_start_is_an_error_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.write(2, b'no way'); os._exit(7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    with (
        Supervisor() as supervisor,
        pytest.raises(ToolpostError, match="tests exited with status 7 at its start\nno way"),
    ):
        run(supervisor, write_case(tmp_path, GOOD))


def test_a_module_of_the_current_folder_does_not_stand_for_one_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "socket.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()

    with Supervisor() as supervisor:
        assert run(supervisor, write_case(tmp_path / "sub", GOOD)).status == "passed"


def test_a_supervisor_that_is_not_used_leaves_nothing(tmp_path: Path) -> None:
    with Supervisor():
        pass


SUPERVISED = """
import os, sys
from toolpost.testing.protocol import Order
from toolpost.testing.supervisor import Supervisor

with Supervisor() as supervisor:
    supervisor.run(Order(case=sys.argv[1]))
"""
HOLDS = """
import os, pathlib, subprocess, time

def run(host):
    child = subprocess.Popen(["sleep", "1000"])
    pathlib.Path(__file__).with_name("pids").write_text(f"{os.getpid()} {child.pid}\\n")
    while True:
        time.sleep(1000)
"""


def test_nothing_is_left_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    case, pids = write_case(tmp_path, HOLDS), tmp_path / "pids"
    process = subprocess.Popen([sys.executable, "-c", SUPERVISED, str(case)])
    try:
        until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    for pid in map(int, pids.read_text().split()):
        assert until(lambda pid=pid: not is_alive(pid))
