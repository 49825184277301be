"""A case runs to its result, whatever its agents do."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing import hands
from toolpost.host import agents as agents_module
from toolpost.testing import watchdog, watched
from toolpost.testing.case import load_case
from toolpost.testing.result import Result
from toolpost.testing.run import run_case
from toolpost.trace.log import Trace

MOCK = """
[tooling.mcp]
kind = "mock"
delay_ms = 0
tools = [{ name = "echo" }]
tool_calls = [
  { name = "echo", result = "one" },
  { name = "echo", result = "two" },
]
"""


def case(folder: Path, agent: str, assertions: str, *, test: str = "", mock: str = MOCK) -> Path:
    """A case of one agent, `ada`, whose script this is."""
    (folder / "ada.py").write_text(textwrap.dedent(agent))
    path = folder / "first.test.toml"
    text = f'{mock}\n[agents.ada]\nscript = "ada.py"\n[assertions.ada]\n{assertions}\n[test]\n{test}\n'
    path.write_text(text)
    return path


def run(path: Path) -> Result:
    return run_case(load_case(path))[0]


CALLS_TWICE = """
def run(host):
    mcp = host.tooling.get("mcp")
    for _ in range(2):
        mcp.call_tool_blocking("echo")
"""


# -- the judgement ---------------------------------------------------------------------------------


def test_a_case_passes_when_all_that_is_expected_has_happened(tmp_path: Path) -> None:
    assertions = 'outcome = "completed"\nevents = [{ kind = "call", op = "call_tool_blocking" }]'

    result, trace = run_case(load_case(case(tmp_path, CALLS_TWICE, assertions)))

    assert (result.status, result.failures, result.report, result.unused) == ("passed", [], "", [])
    assert [record.kind for record in trace] == ["call", "call", "outcome"]
    assert result.case == str(tmp_path / "first.test.toml")


def test_a_missing_event_fails_it_with_the_place_and_the_nearest_miss(tmp_path: Path) -> None:
    assertions = 'events = [{ kind = "call", op = "call_tool_blocking", detail = { name = "add" } }]'

    result = run(case(tmp_path, CALLS_TWICE, assertions))

    assert result.status == "failed"
    (line,) = result.failures
    assert line.startswith("agent 'ada': events[0]: nothing matches { kind = \"call\"")
    assert "assertions.ada.events[0]" in result.report
    assert 'nearest  record 0: detail.name: wanted a text with "add", found "echo"' in result.report
    assert "mock 'mcp': 2 of 2 tool_calls taken" in result.report
    assert result.report.endswith(f"again: toolpost test {result.case}")


def test_an_agent_that_fails_fails_its_case_unless_that_is_expected(tmp_path: Path) -> None:
    agent = "def run(host):\n    raise ValueError('no luck')\n"

    assert run(case(tmp_path, agent, "")).failures == [
        "agent 'ada': outcome: wanted any but a failure, found { failed = \"ValueError: no luck\" }"
    ]
    assert run(case(tmp_path, agent, 'outcome = { failed = "no l.ck" }')).status == "passed"


def test_an_agent_of_whom_nothing_is_said_must_not_fail_either(tmp_path: Path) -> None:
    (tmp_path / "bob.py").write_text("def run(host):\n    raise ValueError('no luck')\n")
    path = case(tmp_path, "def run(host): ...\n", "", mock='[agents.bob]\nscript = "bob.py"\n')

    assert run(path).failures == [
        "agent 'bob': outcome: wanted any but a failure, found { failed = \"ValueError: no luck\" }"
    ]


def test_what_is_expected_to_exit_must_say_exactly_that(tmp_path: Path) -> None:
    agent = "def run(host):\n    return 'bye'\n"

    assert run(case(tmp_path, agent, 'outcome = { exited = "bye" }')).status == "passed"
    assert run(case(tmp_path, agent, 'outcome = { exited = "b.e" }')).status == "failed"


def test_steps_that_were_never_used_are_listed_and_fail_a_strict_case(tmp_path: Path) -> None:
    agent = "def run(host):\n    host.tooling.get('mcp').call_tool_blocking('echo')\n"
    unused = ['tooling \'mcp\': tool_calls[1] { name = "echo", result = "two" }']

    lenient = run(case(tmp_path, agent, ""))
    strict = run(case(tmp_path, agent, "", test="strict = true"))

    assert (lenient.status, lenient.unused) == ("passed", unused)
    assert (strict.status, strict.unused) == ("failed", unused)
    assert strict.failures == ["strict: 1 step was never used"]


def test_a_case_that_cannot_be_run_is_an_error_and_no_failure(tmp_path: Path) -> None:
    path = case(tmp_path, "", "")

    result = run(path)

    assert result.status == "error"
    (problem,) = result.failures
    assert "agents.ada" in problem
    assert "has no function 'run'" in problem


def test_a_script_that_raises_when_it_is_loaded_is_an_agent_that_fails(tmp_path: Path) -> None:
    (line,) = run(case(tmp_path, "1 / 0", "")).failures

    assert "ZeroDivisionError" in line


# -- agents that are asserted ----------------------------------------------------------------------

ENDLESS = {
    "a sync agent": """
        def run(host):
            mcp = host.tooling.get("mcp")
            while True:
                mcp.list_tools()
    """,
    "an async agent": """
        async def run(host):
            mcp = host.tooling.get("mcp")
            while True:
                await mcp.list_tools()
    """,
    "an async agent that waits elsewhere": """
        import asyncio

        async def run(host):
            await host.tooling.get("mcp").list_tools()
            await asyncio.Event().wait()
    """,
    "an agent that catches what it can": """
        def run(host):
            while True:
                try:
                    host.tooling.get("mcp").list_tools()
                except Exception:
                    pass
    """,
    "an agent that ends by itself then": """
        def run(host):
            host.tooling.get("mcp").list_tools()
    """,
}


@pytest.mark.parametrize("agent", ENDLESS)
def test_an_agent_is_stopped_once_its_list_is_settled(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_module, "STOP_GRACE_SECS", 0.05)
    assertions = 'outcome = "asserted"\nevents = [{ kind = "call", op = "list_tools" }]'

    result, trace = run_case(load_case(case(tmp_path, ENDLESS[agent], assertions)))

    assert result.status == "passed", result.report
    assert [record.kind for record in trace] == ["call", "outcome"]


CRASHES = {
    "def": """
        def run(host):
            host.tooling.get("mcp").call_tool("echo")
            host.recv()
            raise ValueError("no luck")
    """,
    "async def": """
        async def run(host):
            await host.tooling.get("mcp").call_tool("echo")
            await host.recv()
            raise ValueError("no luck")
    """,
}


@pytest.mark.parametrize("keyword", CRASHES)
def test_an_agent_that_crashes_on_the_event_that_settles_its_list_fails(keyword: str, tmp_path: Path) -> None:
    assertions = 'outcome = "asserted"\nevents = [{ kind = "inbound", event = "tool-result" }]'

    (line,) = run(case(tmp_path, CRASHES[keyword], assertions)).failures

    assert 'wanted "asserted", found { failed = "ValueError: no luck" }' in line


def test_an_agent_that_ends_before_its_list_is_settled_is_not_asserted(tmp_path: Path) -> None:
    assertions = 'outcome = "asserted"\nevents = [{ kind = "call", op = "list_tools" }]'

    result = run(case(tmp_path, "def run(host): ...\n", assertions))

    assert result.failures == [
        'agent \'ada\': outcome: wanted "asserted", found "completed"',
        'agent \'ada\': events[0]: nothing matches { kind = "call", op = "list_tools" }',
    ]


# -- time that is up -------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_module, "STOP_GRACE_SECS", 0.05)
    monkeypatch.setattr(watchdog, "ASKING_SECS", 0.3)
    monkeypatch.setattr(watchdog, "BREAKING_SECS", 0.3)
    monkeypatch.setattr(watched, "BREAKING_SECS", 5)


@pytest.fixture
def released() -> Iterator[None]:
    hands.release.clear()
    yield
    hands.release.set()


HANGS = {
    "a sync agent that never calls the host": (
        """
        def run(host):
            while True:
                pass
        """,
        "in run\n",
    ),
    "an async agent that never awaits": (
        """
        async def run(host):
            work()

        def work():
            while True:
                pass
        """,
        "line 6, in work\n      while True:",
    ),
    "an async agent that swallows what it can": (
        """
        async def run(host):
            while True:
                try:
                    x = 1
                except Exception:
                    pass
        """,
        "in run\n",
    ),
    "a sync agent that waits for an envelope": (
        "def run(host):\n    host.recv()\n",
        "line 2, in run\n      host.recv()",
    ),
    "an async agent that waits for an envelope": (
        "async def run(host):\n    await host.recv()\n",
        "line 2, in run\n      await host.recv()",
    ),
    "an async agent that swallows its cancellation": (
        """
        import asyncio

        async def run(host):
            while True:
                try:
                    await asyncio.Event().wait()
                except BaseException:
                    pass
        """,
        "line 7, in run\n      await asyncio.Event().wait()",
    ),
    "a script that never ends": ("while True:\n    pass\n", "in <module>"),
}


@pytest.mark.parametrize(
    ("agent", "clock"),
    [(agent, "real") for agent in HANGS]
    # what waits for an event takes no real time in a simulated run
    + [
        (agent, "virtual")
        for agent, (script, _) in HANGS.items()
        if "recv" not in script and "Event" not in script
    ],
)
@pytest.mark.usefixtures("impatient")
def test_a_case_that_takes_too_long_is_ended_and_told_with_where_it_stands(
    agent: str, clock: str, tmp_path: Path
) -> None:
    script, standing = HANGS[agent]

    result = run(case(tmp_path, script, "", test=f'timeout_secs = 0.2\nclock = "{clock}"'))

    assert result.status == "failed"
    assert result.failures[0].startswith("timed out after 0.2 s: ")
    assert f'File "{tmp_path / "ada.py"}", line' in result.report
    assert standing in result.report
    assert "/toolpost/" not in result.report, "the agent's lines alone"
    assert not result.is_stuck


@pytest.mark.usefixtures("impatient", "released")
def test_a_thread_that_cannot_be_ended_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "BREAKING_SECS", 0.05)
    agent = "from tests.testing.hands import release\ndef run(host):\n    release.wait()\n"

    result = run(case(tmp_path, agent, "", test='timeout_secs = 0.2\nclock = "real"'))

    assert result.is_stuck
    assert "line 3, in run" in result.report


@pytest.mark.parametrize("keyword", ["def", "async def"])
@pytest.mark.usefixtures("impatient", "released")
def test_what_holds_up_the_loop_and_cannot_be_broken_is_told_of_from_outside(
    keyword: str, tmp_path: Path
) -> None:
    agent = f"from tests.testing.hands import release\n{keyword} run(host):\n    release.wait()\n"
    told: list[tuple[Result, Trace]] = []

    def on_stuck(result: Result, trace: Trace) -> None:
        told.append((result, trace))
        hands.release.set()

    run_case(load_case(case(tmp_path, agent, "", test="timeout_secs = 0.2")), on_stuck=on_stuck)

    ((result, _),) = told
    assert result.is_stuck
    assert result.failures == ["timed out after 0.2 s: 'ada'"]
    assert "line 3, in run" in result.report


# -- each case for itself --------------------------------------------------------------------------

COUNTS = """
import counter

def run(host):
    counter.count += 1
    return str(counter.count)
"""


def test_no_case_sees_what_another_left_in_its_modules(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text("count = 0\n")
    path = case(tmp_path, COUNTS, 'outcome = { exited = "1" }')
    import_path = list(sys.path)

    results = [run(path) for _ in range(3)]

    assert [each.status for each in results] == ["passed"] * 3
    assert "counter" not in sys.modules
    assert sys.path == import_path


def test_what_is_imported_from_elsewhere_is_forgotten_too(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "counter.py").write_text("count = 0\n")
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    path = case(tmp_path, COUNTS, 'outcome = { exited = "1" }')

    assert [run(path).status for _ in range(2)] == ["passed"] * 2


def test_a_module_of_another_folder_does_not_stand_in_the_way_of_ones_own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "counter.py").write_text("count = 100\n")
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    theirs = importlib.import_module("counter")
    (tmp_path / "counter.py").write_text("count = 0\n")

    assert run(case(tmp_path, COUNTS, 'outcome = { exited = "1" }')).status == "passed"
    assert sys.modules.pop("counter") is theirs


def test_a_result_names_every_file_that_the_case_depends_on(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text("count = 0\n")
    (tmp_path / "base.toml").write_text("[tunables]\ninbox_bound = 3\n")

    result = run(case(tmp_path, COUNTS, 'outcome = { exited = "1" }', test='extends = "base.toml"'))

    names = {Path(each).name for each in result.files}
    assert names == {"first.test.toml", "base.toml", "ada.py", "counter.py"}
