"""`toolpost test`: verdicts, exit statuses, every option, and what is left when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Inside
from tests.cli.support import (
    BOUND_SECS,
    TOOLPOST,
    assert_none_left,
    at_terminal,
    environment,
    is_alive,
    odd,
    open_terminal,
    read_terminal_until,
    received,
    started,
    started_on_terminal,
    toml,
    toolpost,
    until,
)

GOOD = """
def run(host):
    print("hello")
    return host.tooling.get("it").call_tool_blocking("echo").value
"""
BAD = GOOD.replace(".value", ".value.upper()")
BLOCKED = """
import os, pathlib, threading

def run(host):
    pathlib.Path(__file__).with_name("pid").write_text(f"{os.getpid()}\\n")
    threading.Event().wait()
"""


def is_at_work() -> bool:
    """Whether the agent of BLOCKED has told its process, in whole."""
    return Path("pid").exists() and Path("pid").read_text().endswith("\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def put(name: str, code: str = GOOD, *, steps: int = 1, test: str = "", extra: str = "") -> None:
    """A case at that path, which passes where its agent says what the mock has said to it."""
    file = Path(f"{name}.test.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_name(f"{file.name.removesuffix('.test.toml')}.py").write_text(code)
    file.write_text(f"""
[tooling.it]
kind = "mock"
tools = [{{ name = "echo", input_schema = {{}} }}]
tool_calls = [{", ".join(['{ name = "echo", result = "hi" }'] * steps)}]
[agents.one]
script = {json.dumps(f"{Path(name).name}.py", ensure_ascii=False)}
[assertions.one]
outcome = {{ exited = "hi" }}
[test]
{test}
{extra}
""")


def verdicts(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("PASS ", "FAIL ", "ERROR "))]


def tally(out: str) -> str:
    """The last line, without the real time."""
    return out.splitlines()[-1].rpartition(" in ")[0]


# -- time and seeds --------------------------------------------------------------------------------

RACES = """
def run(host):
    it = host.tooling.get("it")
    first, second = it.call_tool("echo"), it.call_tool("echo")
    return "hi" if host.recv().id == first else "not in this order"
"""


def test_the_tally_tells_how_much_time_was_simulated(inside: Inside, folder: Path) -> None:
    put("a", "def run(host):\n    host.sleep(3600)\n    return 'hi'")
    put("b", test='clock = "real"')

    ended = inside("test")

    assert verdicts(ended.out) == ["PASS a.test.toml", "PASS b.test.toml (real time)"]
    assert tally(ended.out) == "2 passed, 3600.0 s simulated"


def test_seeds_find_the_order_that_an_agent_does_not_expect(inside: Inside, folder: Path) -> None:
    put("race", RACES, steps=2)

    assert inside("test").status == 0
    found = inside("test", "--seeds", "200", "--json")

    (case,) = found.document["cases"]
    assert found.status == 1
    assert case["seeds"] == case["seed"] + 1
    assert inside("test", "--seed", str(case["seed"])).status == 1
    assert inside("test", "--seeds", str(case["seed"])).status == 0


def test_under_many_seeds_a_case_that_passes_says_so(inside: Inside, folder: Path) -> None:
    put("a")

    assert verdicts(inside("test", "--seeds", "30").out) == ["PASS a.test.toml (30 seeds)"]


@pytest.mark.parametrize("words", [["--seed", "1", "--seeds", "2"], ["--seeds", "0"], ["--seed", "-1"]])
def test_seeds_that_make_no_sense_are_refused(words: list[str], folder: Path) -> None:
    put("a")

    assert toolpost("test", *words).status == 2


# -- verdicts --------------------------------------------------------------------------------------


def test_all_that_pass_is_status_0(inside: Inside, folder: Path) -> None:
    put("b")
    put("deep/a")

    ended = inside("test")

    assert (ended.status, ended.err) == (0, "")
    assert verdicts(ended.out) == ["PASS b.test.toml", "PASS deep/a.test.toml"]
    assert tally(ended.out) == "2 passed"


def test_a_failure_is_status_1_and_shows_its_report_and_what_was_printed(
    inside: Inside, folder: Path
) -> None:
    put("bad", BAD)
    put("good")

    ended = inside("test")

    assert (ended.status, ended.err) == (1, "")
    assert ended.out.startswith("FAIL bad.test.toml\nagent 'one': assertions.one.outcome\n")
    assert "\nagain: toolpost test bad.test.toml\n\nprinted\n  hello\n\nPASS good" in ended.out
    assert tally(ended.out) == "1 passed, 1 failed"


def test_a_case_that_cannot_be_run_is_status_2_even_beside_failures(inside: Inside, folder: Path) -> None:
    put("bad", BAD)
    Path("odd.test.toml").write_text("[tooling.it]\nkind = 'moc'\n[assertions.one]\n")

    ended = inside("test")

    assert ended.status == 2
    assert verdicts(ended.out) == ["FAIL bad.test.toml", "ERROR odd.test.toml"]
    assert "odd.test.toml: tooling.it.kind: unknown kind 'moc'" in ended.out
    assert tally(ended.out) == "1 failed, 1 error"


def test_steps_that_were_not_used_are_told_of_a_case_that_passes(inside: Inside, folder: Path) -> None:
    put("long", steps=2)

    ended = inside("test")

    assert ended.status == 0
    [unused] = [line for line in ended.out.splitlines() if line.startswith("  ")]
    assert unused.startswith("  not used: ")
    assert "tool_calls[1]" in unused


def test_a_slow_case_says_how_long_it_took(inside: Inside, folder: Path) -> None:
    put("slow", "import threading\ndef run(host): threading.Event().wait()", test="timeout_secs = 0.1")

    assert inside("test").out.startswith("FAIL slow.test.toml (")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no test files (*.test.toml) in '.'"),
        (["nowhere"], "cannot search 'nowhere' for tests: No such file or directory"),
        ([""], "a PATH is empty"),
        (["--watch"], "no test files"),
        (["--watch", "--json"], "--watch and --json exclude each other"),
    ],
)
def test_nothing_to_run_is_status_2_and_no_pass(
    words: list[str], said: str, inside: Inside, folder: Path
) -> None:
    ended = inside("test", *words)

    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err


# -- which -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["-k", "a"], ["a", "sub/a"]),
        (["-k", "sub/*", "-k", "b"], ["b", "sub/a"]),
        (["--exclude", "sub/*", "--exclude", "b.test.toml"], ["a"]),
        (["-k", "*a*", "--exclude", "sub/a"], ["a"]),
        (["sub", "b.test.toml"], ["sub/a", "b"]),
    ],
)
def test_cases_are_chosen_by_paths_and_globs(
    words: list[str], chosen: list[str], inside: Inside, folder: Path
) -> None:
    for name in ("a", "b", "sub/a"):
        put(name)

    ended = inside("test", *words)

    assert ended.status == 0
    assert verdicts(ended.out) == [f"PASS {name}.test.toml" for name in chosen]


def test_globs_that_leave_nothing_are_status_2(inside: Inside, folder: Path) -> None:
    put("a")

    ended = inside("test", "-k", "b")

    assert (ended.status, ended.out) == (2, "")
    assert "-k 'b' leaves none of 1 test files: a.test.toml" in ended.err


@pytest.mark.parametrize("option", ["-x", "--fail-fast"])
def test_fail_fast_stops_at_the_first_that_does_not_pass(option: str, inside: Inside, folder: Path) -> None:
    put("a")
    put("b", BAD)
    put("c")

    ended = inside("test", option)

    assert ended.status == 1
    assert verdicts(ended.out) == ["PASS a.test.toml", "FAIL b.test.toml"]
    assert tally(ended.out) == "1 passed, 1 failed, 1 not run"


# -- for programs ----------------------------------------------------------------------------------


def test_json_is_one_document(inside: Inside, folder: Path) -> None:
    put("bad", BAD)
    put("good", steps=2)
    put("late")

    ended = inside("test", "--json", "-k", "*")
    fast = inside("test", "--json", "-x")

    document = ended.document
    assert (ended.status, ended.err) == (1, "")
    assert [(each["case"], each["status"]) for each in document["cases"]] == [
        ("bad.test.toml", "failed"),
        ("good.test.toml", "passed"),
        ("late.test.toml", "passed"),
    ]
    bad, good, _ = document["cases"]
    assert bad["failures"] == ['agent \'one\': outcome: wanted { exited = "hi" }, found { exited = "HI" }']
    assert bad["output"] == "hello\n"
    assert "again: toolpost test bad.test.toml" in bad["report"]
    assert len(good["unused"]) == 1
    assert document["interrupted"] is False
    assert {key: document["tally"][key] for key in ("passed", "failed", "errors", "not_run")} == {
        "passed": 2,
        "failed": 1,
        "errors": 0,
        "not_run": 0,
    }
    assert fast.document["not_run"] == ["good.test.toml", "late.test.toml"]


def test_junit_is_written_beside_the_verdicts(inside: Inside, folder: Path) -> None:
    put("bad", BAD)
    put("good")

    ended = inside("test", "--junit", "out/report.xml")

    suite = ElementTree.parse("out/report.xml").getroot().find("testsuite")
    assert ended.status == 1
    assert tally(ended.out) == "1 passed, 1 failed"
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")


def test_each_case_leaves_its_trace(inside: Inside, folder: Path) -> None:
    put("a")
    put("sub/a", BAD)
    Path("traces").mkdir()
    Path("traces/odd.jsonl").write_text("of an earlier run")
    Path("odd.test.toml").write_text("nonsense")

    ended = inside("test", "--trace-dir", "traces")

    assert ended.status == 2
    assert sorted(each.name for each in Path("traces").iterdir()) == ["a.jsonl", "sub-a.jsonl"]
    kinds = [json.loads(line)["kind"] for line in Path("traces/sub-a.jsonl").read_text().splitlines()]
    assert kinds == ["call", "outcome"]


@pytest.mark.parametrize("option", ["--junit", "--trace-dir"])
@pytest.mark.parametrize("place", ["a.py/x", "."])
def test_a_place_that_cannot_be_written_is_told_before_anything_runs(
    option: str, place: str, inside: Inside, folder: Path
) -> None:
    if (option, place) == ("--trace-dir", "."):
        place = "a.py"
    put("a")

    ended = inside("test", option, place)

    assert (ended.status, ended.out) == (2, "")
    assert f"error: {option}: cannot write " in ended.err


def test_a_place_that_is_lost_later_is_told_and_is_no_pass(inside: Inside, folder: Path) -> None:
    put("a", "import shutil\n" + GOOD.replace("print", "shutil.rmtree('traces') or print"))

    ended = inside("test", "--trace-dir", "traces")

    assert ended.status == 1
    assert verdicts(ended.out) == ["PASS a.test.toml"]
    assert "error: cannot write the trace" in ended.err


# -- what cases do ---------------------------------------------------------------------------------


def test_what_cases_print_does_not_mix_with_the_verdicts(inside: Inside, folder: Path) -> None:
    put("a", GOOD.replace("hello", "PASS everything"))

    assert verdicts(inside("test").out) == ["PASS a.test.toml"]


def test_show_output_sends_it_to_standard_error_at_once(inside: Inside, folder: Path) -> None:
    put("a", BAD)

    ended = inside("test", "-s")

    assert ended.status == 1
    assert ended.err == "hello\n"
    assert "printed" not in ended.out


def test_a_megabyte_of_output_is_shown_by_its_last_lines(inside: Inside, folder: Path) -> None:
    put("a", BAD.replace('print("hello")', "[print(number, 'x' * 1000) for number in range(1000)]"))

    out = inside("test").out

    assert "\nprinted (the last 100 of 1000 lines)\n  900 x" in out
    assert "\n  999 x" in out


def test_control_characters_in_output_do_not_reach_the_terminal(inside: Inside, folder: Path) -> None:
    put("a", BAD.replace('"hello"', r'"\x1b[31mred\x1b[0m \x1b]0;title\x07 \x08 bell\x07"'))

    out = inside("test").out

    assert "\n  red �]0;title� � bell�\n" in out
    assert "\x1b" not in out


def test_names_of_all_alphabets_and_odd_bytes_are_shown(folder: Path) -> None:
    put("mañana 🦊")
    put("bytes")
    Path("bytes.test.toml").rename("bytes-\udcff.test.toml")

    ended = toolpost("test", "--junit", "r.xml", "--trace-dir", "tr", cwd=folder)

    assert ended.status == 0
    assert verdicts(ended.out) == ["PASS bytes-�.test.toml", "PASS mañana 🦊.test.toml"]
    assert toolpost("test", "--json", cwd=folder).document["cases"][0]["case"] == "bytes-\udcff.test.toml"
    assert Path("tr/mañana 🦊.jsonl").exists()


def test_an_agent_that_ends_the_process_is_one_failure(inside: Inside, folder: Path) -> None:
    put("a", "import os\ndef run(host): os._exit(3)")
    put("b")

    ended = inside("test")

    assert ended.status == 1
    assert verdicts(ended.out) == ["FAIL a.test.toml", "PASS b.test.toml"]
    assert "its process exited with status 3" in ended.out


@pytest.mark.parametrize(("words", "shown"), [([], False), (["-v"], True), (["--log-level", "info"], True)])
def test_the_log_level_is_that_of_the_cases_too(
    words: list[str], shown: bool, inside: Inside, folder: Path
) -> None:
    put("a", BAD.replace('print("hello")', "import logging; logging.getLogger('mine').info('a detail')"))

    assert ("  info: a detail (mine)\n" in inside("test", *words).out) is shown


def test_neither_process_imports_what_mocks_do_not_need(folder: Path) -> None:
    heavy = ["mcp", "mcp_types", "aiohttp", "starlette", "pydantic"]
    put("a", f"import sys\ndef run(host): return ' '.join({{*{heavy}}} & set(sys.modules)) or 'hi'")
    code = """
import sys
sys.argv = ["toolpost", "test"]
from toolpost.cli.main import main
try:
    main()
except SystemExit as ended:
    print(ended.code, *{name.partition(".")[0] for name in sys.modules})
"""
    done = subprocess.run(
        [Path(TOOLPOST).with_name("python"), "-c", code],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    status, *imported = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stdout
    assert set(imported) & {*heavy, "asyncio", "anyio", "tomli", "rich.console", "ssl"} == set()


# -- the end, before it is done --------------------------------------------------------------------


def line_of(stream: IO[str] | None, start: str) -> str:
    """Read until a line begins so."""
    assert stream is not None
    for line in stream:
        if line.startswith(start):
            return line
    raise AssertionError(f"{start!r} did not come")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_tells_what_was_done_and_leaves_nothing(number: signal.Signals, folder: Path) -> None:
    put("a")
    put(
        "b",
        BLOCKED.replace(
            "threading.Event", "__import__('subprocess').Popen(['sleep', '99']); threading.Event"
        ),
    )
    put("c")

    with started("test", "--junit", "r.xml", cwd=folder) as running:
        until(is_at_work)
        running.signal(number)
        ended = running.end()

    assert ended.status == 130
    assert verdicts(ended.out) == ["PASS a.test.toml"]
    assert tally(ended.out) == "1 passed, 2 not run"
    assert ended.said == "interrupted: the command was ended before it was done"
    assert until(lambda: not is_alive(int(Path("pid").read_text())))
    suite = ElementTree.parse("r.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("skipped")) == ("3", "2")


def test_an_interrupted_run_is_a_whole_document_too(folder: Path) -> None:
    put("a", BLOCKED)

    with started("test", "--json", cwd=folder) as running:
        until(is_at_work)
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert (ended.document["interrupted"], ended.document["not_run"]) == (True, ["a.test.toml"])


def test_an_interrupt_ends_the_servers_of_a_case(folder: Path) -> None:
    log = folder / "log.jsonl"
    put("a", "def run(host): host.tooling.get('real').call_tool_blocking('hold')")
    server = toml({"tooling": {"real": odd("ignore_eof_and_term", log=log)}})
    Path("a.test.toml").write_text(Path("a.test.toml").read_text() + server)

    with started("test", cwd=folder) as running:
        until(lambda: received(log, "tools/call"))
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert_none_left(log)


def test_nothing_is_left_of_a_run_that_is_killed(folder: Path) -> None:
    put("a", BLOCKED)

    with started("test", cwd=folder) as running:
        until(is_at_work)
        running.process.kill()

    assert until(lambda: not is_alive(int(Path("pid").read_text())))


def test_a_reader_that_leaves_ends_the_run_quietly(folder: Path) -> None:
    put("a")
    put(
        "b",
        "import os, pathlib, threading\ndef run(host):\n    while not pathlib.Path('go').exists(): pass\n",
    )
    put("c", BLOCKED)

    with started("test", cwd=folder) as running:
        process = running.process
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "PASS a.test.toml\n"
        process.stdout.close()
        Path("go").touch()
        assert process.wait(BOUND_SECS) == 1
        assert process.stderr.read() == ""

    assert not Path("pid").exists()


# -- on a terminal ---------------------------------------------------------------------------------


def test_a_terminal_shows_colours_and_what_runs(folder: Path) -> None:
    put("a", BAD)
    put(
        "b",
        "import pathlib\ndef run(host):\n    while not pathlib.Path('go').exists(): pass\n    return 'hi'",
    )

    with started_on_terminal("test", str(folder)) as (process, screen):
        shown = read_terminal_until(screen, "[2/2]  1 failed  ")
        Path("go").touch()
        shown += read_terminal_until(screen, " in ")
        assert process.wait(BOUND_SECS) == 1

    assert f"\x1b[31mFAIL\x1b[0m {folder}/a.test.toml" in shown
    assert f"\x1b[32mPASS\x1b[0m {folder}/b.test.toml" in shown
    assert "\x1b[31m1 passed, 1 failed in " in shown


def test_no_colour_is_no_colour(folder: Path) -> None:
    put("a")

    status, screen = at_terminal("test", str(folder), NO_COLOR="1")

    assert status == 0
    assert f"PASS {folder}/a.test.toml\n1 passed" in screen.replace("\r\x1b[2K", "")


def test_a_debugger_works_where_output_is_shown(folder: Path) -> None:
    put(
        "a",
        "def run(host):\n    secret = 'hi'\n    breakpoint()\n    return secret\n",
        test="timeout_secs = 0.01",
    )
    ours, theirs = open_terminal(100)
    process = subprocess.Popen(
        [TOOLPOST, "test", "-s"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="dumb")
    )
    os.close(theirs)
    try:
        read_terminal_until(ours, "(Pdb) ")
        os.write(ours, b"p secret * 2\n")
        read_terminal_until(ours, "'hihi'")
        os.write(ours, b"continue\n")
        read_terminal_until(ours, "1 passed")
        assert process.wait(BOUND_SECS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


# -- watching --------------------------------------------------------------------------------------


def test_watch_runs_again_what_a_change_touches(folder: Path) -> None:
    put("a")
    put("b", BAD)

    with started("test", "--watch", "--junit", "r.xml", cwd=folder) as running:
        out, err = running.process.stdout, running.process.stderr
        assert line_of(err, "watching") == "watching 2 test files: 1 passed, 1 failed; Ctrl-C ends it\n"

        Path("b.py").write_text(GOOD.replace("hello", "hallo"))
        assert line_of(err, "changed") == "changed: b.py\n"
        assert line_of(err, "watching") == "watching 2 test files: 2 passed; Ctrl-C ends it\n"

        put("c", "import missing")
        assert line_of(err, "watching") == "watching 3 test files: 2 passed, 1 failed; Ctrl-C ends it\n"

        Path("missing.py").write_text("def run(host): return 'hi'\nrun = run")
        Path("c.py").write_text("from missing import run")
        line_of(err, "watching 3 test files: 3 passed")

        Path("c.test.toml").unlink()
        assert line_of(err, "changed") == "changed: c.test.toml\n"
        assert line_of(err, "watching") == "watching 2 test files: 2 passed; Ctrl-C ends it\n"
        running.signal(signal.SIGINT)
        ended = running.end()

    assert out is not None
    assert ended.status == 0
    assert "Traceback" not in ended.err
    assert verdicts(ended.out)[:3] == ["PASS a.test.toml", "FAIL b.test.toml", "PASS b.test.toml"]
    suite = ElementTree.parse("r.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")


def test_watch_ends_with_the_status_of_the_latest_results(folder: Path) -> None:
    put("a", BAD)

    with started("test", "--watch", cwd=folder) as running:
        line_of(running.process.stderr, "watching")
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 1


def test_watch_that_is_interrupted_at_work_is_interrupted(folder: Path) -> None:
    put("a", BLOCKED)

    with started("test", "--watch", cwd=folder) as running:
        until(is_at_work)
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert until(lambda: not is_alive(int(Path("pid").read_text())))
