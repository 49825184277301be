"""The plugin in a run of pytest: pytest inside pytest."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.testing import hands
from tests.tracing import breaks_what_sleeps
from toolpost.testing import watchdog
from toolpost.testing.aside import run_case_aside

# Loaded above: pytest inside pytest forgets what it was the first to import.
pytest_plugins = ["pytester"]

BRAIN = """
import logging

def run(host):
    print("asking")
    logging.getLogger("brain").warning("about to ask")
    return host.tooling.get("mcp").call_tool_blocking("echo").value
"""

CASE = """
[tooling.mcp]
kind = "mock"
tool_calls = [{ name = "echo", result = "hi" }]

[agents.brain]
script = "brain.py"

[assertions.brain]
outcome = { exited = "hi" }
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a case that passes, and the option that collects it."""
    pytester.makeini("[pytest]\ntoolpost_collect = true\nfilterwarnings = error\n")
    write(pytester, "cases/brain.py", BRAIN)
    write(pytester, "cases/echo.test.toml", CASE)
    return pytester


def write(pytester: pytest.Pytester, name: str, text: str) -> None:
    path = pytester.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Beside pytest-asyncio is a matter of other tests; here its note on its options would be an error."""
    return pytester.runpytest_inprocess("-p", "no:asyncio", *args)


# -- test files ------------------------------------------------------------------------------------


def test_test_files_are_not_collected_unless_that_is_asked_for(folder: pytest.Pytester) -> None:
    (folder.path / "tox.ini").unlink()
    folder.makepyfile("def test_of_python(): pass")

    run(folder).assert_outcomes(passed=1)


def test_a_test_file_is_one_test(folder: pytest.Pytester) -> None:
    run(folder).assert_outcomes(passed=1)
    run(folder, "cases").assert_outcomes(passed=1)
    run(folder, "cases/echo.test.toml::echo").assert_outcomes(passed=1)


def test_it_is_named_for_its_file_and_can_be_picked(folder: pytest.Pytester) -> None:
    write(folder, "cases/add.test.toml", CASE.replace("echo", "add"))

    listed = run(folder, "--collect-only", "-q")
    picked = run(folder, "--collect-only", "-q", "-k", "add")

    listed.stdout.fnmatch_lines(["cases/add.test.toml::add", "cases/echo.test.toml::echo", "", "2 tests *"])
    picked.stdout.fnmatch_lines(["cases/add.test.toml::add", "", "1/2 tests *"])


def test_a_case_that_fails_shows_its_own_report_and_what_its_agents_printed(folder: pytest.Pytester) -> None:
    write(folder, "cases/echo.test.toml", CASE.replace('exited = "hi"', 'exited = "ho"'))

    result = run(folder)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*___ cases/echo.test.toml ___*",
            "agent 'brain': assertions.brain.outcome",
            '  wanted   { exited = "ho" }',
            '  found    { exited = "hi" }',
            "trace",
            '   0  brain  call * call_tool_blocking  { tooling = "mcp", name = "echo"*',
            "again: toolpost test cases/echo.test.toml",
            "*--- Captured stdout call ---*",
            "asking",
            "*--- Captured log call ---*",
            "WARNING*about to ask",
            "FAILED cases/echo.test.toml::echo - agent 'brain': assertions.brain.outcome",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_file_that_is_no_case_fails_alone_with_every_problem(folder: pytest.Pytester) -> None:
    write(folder, "cases/broken.test.toml", 'agnets = 3\n[tooling.mcp]\nkind = "mok"\n')

    result = run(folder)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*___ cases/broken.test.toml ___*",
            "cases/broken.test.toml: agnets: unknown table; known tables: agents, *",
            "cases/broken.test.toml: tooling.mcp.kind: unknown kind 'mok'; known kinds: mock, *",
            "cases/broken.test.toml: assertions: missing: *",
        ]
    )


def test_steps_that_were_not_used_are_shown_beside_what_was_captured(folder: pytest.Pytester) -> None:
    more = '{ name = "echo", result = "hi" }, { name = "add", result = "3" }'
    write(folder, "cases/echo.test.toml", CASE.replace('{ name = "echo", result = "hi" }', more))

    result = run(folder, "-rA")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*--- Captured unused steps call ---*", '*tool_calls[[]1] { name = "add", *']
    )


def test_a_conftest_can_mark_cases(folder: pytest.Pytester) -> None:
    write(folder, "cases/other.test.toml", CASE.replace('"hi" }]', '"ho" }]'))
    folder.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            marks = {"echo": pytest.mark.skip(reason="not now"), "other": pytest.mark.xfail(strict=True)}
            for item in items:
                item.add_marker(marks[item.name])
        """
    )

    run(folder).assert_outcomes(skipped=1, xfailed=1)


def test_where_toolpost_is_to_blame_its_traceback_is_shown(
    folder: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("toolpost.testing.aside.run_case", breaks)

    result = run(folder)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["E * ZeroDivisionError: a fault of ours", "*test_plugin.py*ZeroDivisionError"]
    )


@breaks_what_sleeps
def test_a_case_that_cannot_be_ended_fails_and_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "ASKING_SECS", 0.05)
    monkeypatch.setattr(watchdog, "BREAKING_SECS", 0.05)
    monkeypatch.setattr(hands, "release", threading.Event())
    path = tmp_path / "stuck.test.toml"
    path.write_text(CASE.replace('script = "brain.py"', 'entry = "brain:run"') + "[test]\ntimeout_secs = 1\n")
    (tmp_path / "brain.py").write_text(
        "from tests.testing import hands\n\nasync def run(host):\n    hands.release.wait()\n"
    )

    result = run_case_aside(path)
    left = next(each for each in threading.enumerate() if each.name == "toolpost case")
    hands.release.set()
    left.join(60)

    assert (result.status, result.is_stuck) == ("failed", True)
    assert "hands.release.wait()" in result.report
    assert not left.is_alive()


# -- fixtures --------------------------------------------------------------------------------------

AGENT = """
import pytest
from toolpost.testing import call, inbound

async def agent(host):
    await host.tooling.get("mcp").call_tool("echo")
    return (await host.recv()).event.value
"""

SYNC_TEST = """
def test_sync(toolpost_mock, toolpost_host, toolpost_trace):
    toolpost_mock("mcp").tool("echo").returns("hi")
    assert toolpost_host().run(agent).text == "hi"
    with toolpost_host() as host:
        assert host.tooling.get("mcp").call_tool_blocking("echo").value == "hi"
"""

ASYNC_TESTS = """
@pytest.fixture
async def opened(toolpost_mock, toolpost_host):
    toolpost_mock("mcp").tool("echo").returns("hi")
    async with toolpost_host() as host:
        yield host

async def test_agent(toolpost_mock, toolpost_host, toolpost_trace):
    toolpost_mock("mcp").tool("echo").returns("hi")
    assert (await toolpost_host().run_async(agent)).text == "hi"
    toolpost_trace.expect([call("call_tool"), inbound("tool-result")])

async def test_itself(opened, toolpost_trace):
    assert await agent(opened) == "hi"
    assert len(toolpost_trace.calls("call_tool")) == 1

async def test_that_leaves_its_host_open(toolpost_host):
    await toolpost_host({}).__aenter__()
"""

ASYNCIO = "[pytest]\nfilterwarnings = error\nasyncio_default_fixture_loop_scope = function\n"
ASYNCIO_SESSION = ASYNCIO.replace("function", "session") + "asyncio_default_test_loop_scope = session\n"


def run_aside(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """In a process of its own, as the plugins for loops are, and without those that have no part in it."""
    others = ("cov", "hypothesispytest", "timeout")
    return pytester.runpytest_subprocess(*(f"-pno:{each}" for each in others), *args)


def test_the_fixtures_need_no_plugin_for_async_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(AGENT + SYNC_TEST)

    run(pytester, "-p", "no:anyio").assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [ASYNCIO, ASYNCIO_SESSION], ids=["function", "session"])
def test_they_work_beside_pytest_asyncio(pytester: pytest.Pytester, options: str) -> None:
    pytester.makeini(f"{options}asyncio_mode = auto\n")
    pytester.makepyfile(AGENT + SYNC_TEST + ASYNC_TESTS)

    run_aside(pytester).assert_outcomes(passed=4)


def test_they_work_beside_pytest_asyncio_that_is_strict(pytester: pytest.Pytester) -> None:
    pytester.makeini(ASYNCIO)
    strict = ASYNC_TESTS.replace("@pytest.fixture", "@pytest_asyncio.fixture")
    strict = strict.replace("async def test", "@pytest.mark.asyncio\nasync def test")
    pytester.makepyfile("import pytest_asyncio\n" + AGENT + SYNC_TEST + strict)

    run_aside(pytester).assert_outcomes(passed=4)


def test_they_work_beside_the_plugin_of_anyio(pytester: pytest.Pytester) -> None:
    pytester.makeini(ASYNCIO)
    backend = '@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
    marked = ASYNC_TESTS.replace("async def test", "@pytest.mark.anyio\nasync def test")
    pytester.makepyfile(AGENT + SYNC_TEST + backend + marked)

    run_aside(pytester).assert_outcomes(passed=4)


def test_cases_run_between_async_tests_of_one_loop(folder: pytest.Pytester) -> None:
    folder.makeini(f"{ASYNCIO_SESSION}asyncio_mode = auto\ntoolpost_collect = true\n")
    for name in ("a", "d"):
        write(folder, f"cases/test_{name}.py", AGENT + ASYNC_TESTS)
    write(folder, "cases/test_b.test.toml", CASE)

    run_aside(folder).assert_outcomes(passed=8)


def test_a_failed_expectation_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        AGENT
        + """
def test_it(toolpost_mock, toolpost_host, toolpost_trace):
    toolpost_mock("mcp").tool("echo").returns("hi")
    toolpost_host().run(agent)
    toolpost_trace.expect([inbound("error")])
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            '>       toolpost_trace.expect([[]inbound("error")])',
            "E       AssertionError: the trace does not show events[[]0] of 1",
            'E         wanted   { kind = "inbound", event = "error" }',
            "E         nearest  record 3: event: wanted 'error', found 'tool-result'",
            "E       trace",
            "E         at  agent  kind     id  what         detail",
        ]
    )
    result.stdout.no_fnmatch_line("*trace_view.py*")


def test_an_agent_that_hangs_is_shown_at_the_line_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import math

async def hangs(host):
    await host.recv(math.inf)

def test_it(toolpost_host):
    toolpost_host({}).run(hangs)
"""
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       toolpost_host({}).run(hangs)",
            "E       AssertionError: deadlock at 0 s of simulated time: nothing is ready and *",
            "E         agent 'agent', waiting in recv(), standing at",
            "E * await host.recv(math.inf)",
        ]
    )
    result.stdout.no_fnmatch_line("*timed.py*")


def test_pytest_tells_what_the_fixtures_are(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--fixtures")

    result.stdout.fnmatch_lines(
        ["toolpost_mock -- *", "*Scripts mocks: *", "toolpost_host -- *", "toolpost_trace -- *"]
    )


# -- what it costs others --------------------------------------------------------------------------


def test_pytest_finds_the_plugin_wherever_toolpost_is_installed() -> None:
    (found,) = entry_points(group="pytest11", name="toolpost")

    assert found.value == "toolpost.pytest_plugin"


def test_a_run_of_pytest_that_does_not_use_it_imports_nothing_for_it() -> None:
    program = """
import sys, pytest
before = set(sys.modules)
import toolpost.pytest_plugin
print(*sorted(set(sys.modules) - before - sys.stdlib_module_names))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "toolpost toolpost.pytest_plugin\n"
