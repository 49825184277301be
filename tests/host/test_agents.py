"""Agents: how they are loaded, how they run, and how they end."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

import toolpost
from tests import memory
from tests.loop import settle
from tests.memory import Memory
from toolpost import ConfigError, Envelope, Host, Outcome, Shutdown, SyncHost
from toolpost.config import load_config
from toolpost.host import agents as agents_module
from toolpost.host.agents import Agent
from toolpost.host.core import Core
from toolpost.trace.events import AgentOutcome

pytestmark = pytest.mark.usefixtures("short_graces", "either_way")


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here ends within a grace unless it ends at once."""
    monkeypatch.setattr(agents_module, "SHUTDOWN_GRACE_SECS", 0.05)
    monkeypatch.setattr(agents_module, "STOP_GRACE_SECS", 0.05)


async def outcomes_of(*functions: Callable[[Any], Any], memo: Memory | None = None) -> list[Outcome]:
    """Runs functions as agents to their ends."""
    crew = {f"agent{number}": function for number, function in enumerate(functions)}
    with anyio.fail_after(5):
        report = await toolpost.run_async(memory.config(memo or Memory()), agents=crew)
    assert report.outcomes.keys() == crew.keys()
    return [report.outcomes[name] for name in crew]


async def stopped(
    function: Callable[[Any], Any], *, name: str = "agent", started: threading.Event | None = None
) -> Outcome:
    """Runs one agent, and has it shut down: before its first turn, or once it has `started`."""
    stop = asyncio.Event()
    core = Core(load_config(memory.config(Memory())), trace=True, extras={})
    await core.open()
    try:
        with anyio.fail_after(5):
            run = asyncio.create_task(core.run_agents([Agent(name, function)], stop))
            if started is not None:
                await anyio.to_thread.run_sync(started.wait, 5)
            stop.set()
            return (await run)[name]
    finally:
        await core.close()


# -- outcomes --------------------------------------------------------------------------------------


async def test_an_agent_that_returns_nothing_has_completed() -> None:
    async def agent(host: Host) -> None:
        await host.sleep(0)

    def sync_agent(host: SyncHost) -> None:
        host.sleep(0)

    assert await outcomes_of(agent, sync_agent) == [Outcome("completed"), Outcome("completed")]


async def test_an_agent_that_returns_a_string_has_exited_with_it() -> None:
    async def agent(host: Host) -> str:
        return "enough"

    def sync_agent(host: SyncHost) -> str:
        return ""

    assert await outcomes_of(agent, sync_agent) == [Outcome("exited", "enough"), Outcome("exited", "")]


async def test_an_agent_that_returns_anything_else_has_failed() -> None:
    async def agent(host: Host) -> int:
        return 42

    def sync_agent(host: SyncHost) -> bool:
        return False

    texts = [outcome.text for outcome in await outcomes_of(agent, sync_agent)]
    assert texts == [
        "it returned 42; an agent returns None or a string",
        "it returned False; an agent returns None or a string",
    ]


async def _raises(host: Host) -> None:
    raise LookupError("lost")


async def _exits(host: Host) -> None:
    raise SystemExit(3)


async def _cancels_itself(host: Host) -> None:
    raise asyncio.CancelledError


async def _awaits_what_was_cancelled(host: Host) -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


async def _cancels_its_task(host: Host) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await host.sleep(60)


class _Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def _raises_what_has_no_text(host: Host) -> None:
    raise _Mute


def _raises_what_has_no_text_in_its_thread(host: SyncHost) -> None:
    raise _Mute


def _returns_what_has_no_text(host: SyncHost) -> object:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no text")

    return Mute()


async def _raises_a_group(host: Host) -> None:
    nested = BaseExceptionGroup("deeper", [SystemExit(3), toolpost.AgentStopped("mine")])
    raise BaseExceptionGroup("several", [LookupError("lost"), nested])


def _raises_in_its_thread(host: SyncHost) -> None:
    raise LookupError("lost")


def _exits_in_its_thread(host: SyncHost) -> None:
    raise SystemExit(3)


def _interrupts_itself(host: SyncHost) -> None:
    raise KeyboardInterrupt


def _cancels_itself_in_its_thread(host: SyncHost) -> None:
    raise asyncio.CancelledError


def _takes_no_host() -> None: ...


FAILING: dict[Callable[..., Any], str] = {
    _raises: "LookupError: lost",
    _exits: "SystemExit: 3",
    _cancels_itself: "CancelledError",
    _awaits_what_was_cancelled: "CancelledError",
    _cancels_its_task: "CancelledError",
    _raises_what_has_no_text: "_Mute: (str() of it raised RuntimeError)",
    _raises_what_has_no_text_in_its_thread: "_Mute: (str() of it raised RuntimeError)",
    _raises_a_group: (
        "BaseExceptionGroup: several (2 sub-exceptions): LookupError: lost; SystemExit: 3; AgentStopped: mine"
    ),
    _raises_in_its_thread: "LookupError: lost",
    _exits_in_its_thread: "SystemExit: 3",
    _interrupts_itself: "KeyboardInterrupt",
    _cancels_itself_in_its_thread: "CancelledError",
    _takes_no_host: "TypeError: _takes_no_host() takes 0 positional arguments but 1 was given",
}


@pytest.mark.parametrize(("agent", "text"), FAILING.items(), ids=[each.__name__[1:] for each in FAILING])
async def test_an_agent_that_raises_has_failed_and_hurts_no_other(
    agent: Callable[..., Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def other(host: Host) -> str:
        await settle()
        tooling = host.tooling.get("memo")
        await tooling.call_tool("echo", {"message": "still here"})
        event = (await host.recv()).event
        return event.value if isinstance(event, toolpost.ToolResult) else event.kind

    failed, still = await outcomes_of(agent, other)

    assert failed == Outcome("failed", text)
    assert still == Outcome("exited", "still here")
    assert any(record.exc_info for record in caplog.records)


async def test_an_agent_that_returns_what_has_no_text_has_failed() -> None:
    (outcome,) = await outcomes_of(_returns_what_has_no_text)

    text = "it returned (repr() of it raised RuntimeError); an agent returns None or a string"
    assert outcome == Outcome("failed", text)


async def test_an_agent_that_cancels_its_task_and_returns_all_the_same_has_returned() -> None:
    async def agent(host: Host) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    assert await outcomes_of(agent) == [Outcome("exited", "done")]


async def test_a_plain_function_that_returns_a_coroutine_is_told_to_be_async() -> None:
    async def inner(host: Host) -> None: ...

    (outcome,) = await outcomes_of(lambda host: inner(host))

    assert outcome == Outcome("failed", "it returned a coroutine; declare it with `async def`")


async def test_everything_that_is_declared_async_is_awaited() -> None:
    async def with_more(word: str, host: Host) -> str:
        return word

    class Agent:
        async def __call__(self, host: Host) -> str:
            return "called"

        async def run(self, host: Host) -> str:
            return "method"

    outcomes = await outcomes_of(functools.partial(with_more, "partial"), Agent(), Agent().run)

    assert [outcome.text for outcome in outcomes] == ["partial", "called", "method"]


async def test_an_async_agent_runs_on_the_loop_and_a_sync_one_in_a_thread_of_its_own() -> None:
    async def agent(host: Host) -> str:
        return threading.current_thread().name

    def sync_agent(host: SyncHost) -> str:
        return threading.current_thread().name

    outcomes = await outcomes_of(agent, sync_agent)

    assert [outcome.text for outcome in outcomes] == [threading.current_thread().name, "agent agent1"]


async def test_a_sync_agent_that_blocks_stops_no_other() -> None:
    released = threading.Event()

    def blocks(host: SyncHost) -> str:
        return "released" if released.wait(5) else "timed out"

    async def releases(host: Host) -> None:
        await host.tooling.get("memo").call_tool_blocking("echo")
        released.set()

    blocked, _ = await outcomes_of(blocks, releases)
    assert blocked.text == "released"


async def test_outcomes_are_masked_and_traced() -> None:
    secret = toolpost.Secret("hunter2-hunter2", allow_unlocked=True)

    async def agent(host: Host) -> str:
        return f"the token is {secret.expose()}"

    with anyio.fail_after(5):
        report = await toolpost.run_async(memory.config(Memory()), agents={"ada": agent})

    assert report.outcomes == {"ada": Outcome("exited", "the token is ***")}
    assert report.trace[-1] == AgentOutcome(agent="ada", outcome={"exited": "the token is ***"})
    assert not report.interrupted


async def test_an_agents_end_cancels_its_sources_on_the_wire_too() -> None:
    memo = Memory()

    async def leaves(host: Host) -> None:
        tooling = host.tooling.get("memo")
        await tooling.call_tool("hold")
        await tooling.subscribe_resource("memo:a")
        await memo.wait_subscribed()

    async def stays(host: Host) -> None:
        while "cancelled hold" not in memo.log or "unsubscribed memo:a" not in memo.log:
            await host.sleep(0)

    assert await outcomes_of(leaves, stays, memo=memo) == [Outcome("completed")] * 2


async def test_agents_share_a_tooling_and_no_uuid() -> None:
    memo = Memory()
    given: list[str] = []

    async def owner(host: Host) -> str:
        given.append(await host.tooling.get("memo").call_tool("hold"))
        event = (await host.recv()).event
        return event.kind

    async def stranger(host: Host) -> str:
        while not given:
            await host.sleep(0)
        tooling = host.tooling.get("memo")
        await tooling.cancel(given[0])
        await settle()
        seen = tooling.is_open(given[0])
        memo.held[0].answer()
        return str(seen)

    outcomes = await outcomes_of(owner, stranger, memo=memo)
    assert [outcome.text for outcome in outcomes] == ["tool-result", "False"]
    assert memo.built == 1


# -- shutdown --------------------------------------------------------------------------------------


async def test_an_agent_that_heeds_shutdown_ends_in_its_own_way() -> None:
    async def agent(host: Host) -> str:
        envelope = await host.recv()
        return "told" if envelope == Envelope("", Shutdown()) else "?"

    assert await stopped(agent) == Outcome("exited", "told")


async def test_an_agent_told_to_stop_before_its_first_turn_is_told() -> None:
    def agent(host: SyncHost) -> str:
        return host.recv().event.kind

    assert await stopped(agent) == Outcome("exited", "shutdown")


async def test_calls_in_place_work_between_shutdown_and_the_end() -> None:
    async def agent(host: Host) -> str:
        await host.recv()
        return (await host.tooling.get("memo").call_tool_blocking("echo", {"message": "last"})).value

    assert await stopped(agent) == Outcome("exited", "last")


async def test_nothing_new_is_queued_after_shutdown() -> None:
    async def agent(host: Host) -> str:
        await host.recv()
        try:
            await host.tooling.get("memo").call_tool("echo")
        except toolpost.HostClosed as error:
            return str(error)
        return "queued"

    outcome = await stopped(agent)
    assert outcome.text == "the host is shutting down: agent 'agent' can open nothing new"


STOPPED = "AgentStopped: agent 'agent' did not end in time after Shutdown"


async def test_an_async_agent_that_ignores_shutdown_is_stopped_in_its_next_call() -> None:
    async def agent(host: Host) -> None:
        while True:
            await asyncio.sleep(0)
            try:
                host.try_recv()
            except Exception:
                pass

    assert await stopped(agent) == Outcome("failed", STOPPED)


async def test_an_async_agent_that_waits_in_a_call_is_stopped_there() -> None:
    async def agent(host: Host) -> None:
        await host.tooling.get("memo").call_tool_blocking("hold")

    assert await stopped(agent) == Outcome("failed", STOPPED)


async def test_a_sync_agent_that_ignores_shutdown_is_stopped_in_its_next_call() -> None:
    def agent(host: SyncHost) -> None:
        while True:
            try:
                host.try_recv()
            except Exception:
                pass

    assert await stopped(agent) == Outcome("failed", STOPPED)


async def test_a_sync_agent_that_waits_in_a_call_is_stopped_there() -> None:
    def agent(host: SyncHost) -> None:
        host.tooling.get("memo").call_tool_blocking("hold")

    assert await stopped(agent) == Outcome("failed", STOPPED)


async def test_an_agent_that_happens_to_be_called_main_is_stopped_like_any_other() -> None:
    async def agent(host: Host) -> None:
        while True:
            try:
                await host.sleep(60)
            except Exception:
                pass

    outcome = await stopped(agent, name="main")
    assert outcome == Outcome("failed", "AgentStopped: agent 'main' did not end in time after Shutdown")


async def test_an_async_agent_that_waits_for_something_of_its_own_is_cancelled() -> None:
    async def agent(host: Host) -> None:
        await asyncio.Event().wait()

    assert await stopped(agent) == Outcome("failed", "it was cancelled: it did not end after Shutdown")


async def test_an_agent_whose_task_group_was_stopped_was_stopped() -> None:
    async def agent(host: Host) -> None:
        async with asyncio.TaskGroup() as tasks, anyio.create_task_group() as more:
            tasks.create_task(host.sleep(60))
            more.start_soon(host.sleep, 60)

    assert await stopped(agent) == Outcome("failed", STOPPED)


LEFT = Outcome("failed", "it was left behind: it did not even end when it was cancelled")


async def test_an_async_agent_that_swallows_its_cancellation_is_left_behind_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = asyncio.Event()
    goes_on: list[str] = []

    async def deaf(host: Host) -> None:
        while not released.is_set():
            try:
                await released.wait()
            except BaseException:
                pass
        goes_on.append("on the loop")

    assert await stopped(deaf) == LEFT
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "agent agent"]
    released.set()
    await settle()

    assert goes_on == ["on the loop"]
    reports = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(reports) == 2
    assert all("await released.wait()" in report for report in reports)
    assert "it swallows its cancellation and is left behind" in reports[1]


@pytest.mark.parametrize("operation", ["recv", "sleep", "call"])
async def test_an_async_agent_that_tries_again_whatever_happens_stops_nobody(operation: str) -> None:
    released = False

    async def deaf(host: Host) -> None:
        tooling = host.tooling.get("memo")
        while not released:
            try:
                if operation == "recv":
                    await host.recv()
                elif operation == "sleep":
                    await host.sleep(60)
                else:
                    await tooling.call_tool_blocking("hold")
            except BaseException:
                pass

    assert await stopped(deaf) == LEFT
    released = True
    await settle()


async def test_what_an_agent_leaves_running_is_told_that_the_agent_has_ended() -> None:
    left: list[asyncio.Task[None]] = []
    hosts: list[Host] = []

    async def agent(host: Host) -> None:
        hosts.append(host)
        left.append(asyncio.create_task(host.sleep(60)))
        await asyncio.sleep(0)

    assert await outcomes_of(agent) == [Outcome("completed")]
    for late in (left[0], hosts[0].recv()):
        with pytest.raises(toolpost.AgentStopped, match="agent 'agent0' has ended; its host cannot be used"):
            await late


async def test_a_thread_that_makes_no_host_call_is_left_behind_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = threading.Event()
    started = threading.Event()
    afterwards: list[BaseException] = []
    done = threading.Event()

    def standing_still(host: SyncHost) -> None:
        started.set()
        released.wait(5)
        try:
            host.now()
        except BaseException as error:
            afterwards.append(error)
        done.set()

    outcome = await stopped(standing_still, started=started)
    released.set()
    assert await anyio.to_thread.run_sync(done.wait, 5)

    assert outcome == Outcome("failed", "its thread was left behind: it made no host call after Shutdown")
    (report,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "released.wait(5)" in report
    assert [type(error) for error in afterwards] == [toolpost.AgentStopped]


async def test_an_agent_whose_run_is_cancelled_is_shut_down_first() -> None:
    told: list[str] = []
    waiting = threading.Event()

    async def agent(host: Host) -> None:
        told.append((await host.recv()).event.kind)

    def sync_agent(host: SyncHost) -> None:
        waiting.set()
        told.append(host.recv().event.kind)

    crew = {"ada": agent, "bob": sync_agent}
    with anyio.fail_after(5):
        run = asyncio.create_task(toolpost.run_async(memory.config(Memory()), agents=crew))
        await anyio.to_thread.run_sync(waiting.wait, 5)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    assert told == ["shutdown", "shutdown"]


# -- loading ---------------------------------------------------------------------------------------


def scripts(folder: Path, **sources: str) -> dict[str, Any]:
    """A configuration with one agent for each script."""
    tables: dict[str, Any] = {}
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
        tables[name] = {"script": str(folder / f"{name}.py")}
    return memory.config(Memory(), agents=tables)


async def run_config(config: Mapping[str, Any]) -> dict[str, Outcome]:
    with anyio.fail_after(5):
        return (await toolpost.run_async(config)).outcomes


async def test_scripts_run_side_by_side(tmp_path: Path) -> None:
    config = scripts(
        tmp_path,
        ada="async def run(host):\n    return f'async {host.name}'",
        bob="def run(host):\n    return f'sync {host.name}'",
    )

    assert await run_config(config) == {
        "ada": Outcome("exited", "async ada"),
        "bob": Outcome("exited", "sync bob"),
    }


async def test_every_agent_that_cannot_be_found_is_named_at_once(tmp_path: Path) -> None:
    config = scripts(tmp_path, ada="", bob="run = 42", eve="def run(host): pass")
    with pytest.raises(ConfigError) as caught:
        await run_config(config)

    label = load_config(config).label
    assert [problem.partition(" has no function")[0] for problem in caught.value.problems] == [
        f"{label}: agents.ada: {tmp_path / 'ada.py'}",
        f"{label}: agents.bob: {tmp_path / 'bob.py'}",
    ]


@pytest.mark.parametrize("source", ["", "run = 42"], ids=["no run", "run is no function"])
async def test_a_script_without_run_is_a_config_error(tmp_path: Path, source: str) -> None:
    with pytest.raises(ConfigError, match=r"agents\.ada: .*ada\.py has no function 'run'"):
        await run_config(scripts(tmp_path, ada=source))


async def test_a_script_that_is_no_python_file_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "brain.txt").write_text("")
    config = memory.config(Memory(), agents={"ada": {"script": str(tmp_path / "brain.txt")}})
    with pytest.raises(ConfigError, match=r"agents\.ada\.script: .*brain\.txt is no Python file"):
        await run_config(config)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("raise LookupError('lost')", "LookupError: lost"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def run(host:", "SyntaxError"),
    ],
    ids=["raises", "exits", "imports what is not there", "is no Python"],
)
async def test_a_script_that_cannot_be_imported_fails_and_hurts_no_other(
    tmp_path: Path, source: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes = await run_config(scripts(tmp_path, ada=source, bob="def run(host): pass"))

    assert outcomes["ada"].kind == "failed"
    assert (outcomes["ada"].text or "").startswith(text)
    assert outcomes["bob"] == Outcome("completed")


async def test_two_agents_that_share_a_script_share_no_module(tmp_path: Path) -> None:
    script = tmp_path / "both.py"
    script.write_text("seen = []\ndef run(host):\n    seen.append(host.name)\n    return ' '.join(seen)")
    table = {"script": str(script)}
    outcomes = await run_config(memory.config(Memory(), agents={"ada": table, "bob": table}))

    assert [outcomes[name].text for name in ("ada", "bob")] == ["ada", "bob"]


async def test_params_reach_the_agent(tmp_path: Path) -> None:
    config = scripts(tmp_path, ada="def run(host):\n    return host.params['goal']")
    config["agents"]["ada"]["params"] = {"goal": "win"}

    assert await run_config(config) == {"ada": Outcome("exited", "win")}


async def test_without_params_there_is_an_empty_table() -> None:
    async def agent(host: Host) -> str:
        return str(host.params)

    assert (await outcomes_of(agent))[0].text == "{}"


async def test_a_tooling_that_was_not_granted_is_unknown_and_the_others_are_named(tmp_path: Path) -> None:
    config = memory.config(Memory(), Memory(), Memory())
    script = tmp_path / "ada.py"
    script.write_text("def run(host):\n    host.tooling.get('memo2')\n    host.tooling.get('memo')")
    config["agents"] = {"ada": {"script": str(script), "toolings": ["memo3", "memo2"]}}

    assert await run_config(config) == {
        "ada": Outcome(
            "failed", "UnknownTooling: unknown tooling 'memo'; this agent can use: 'memo2', 'memo3'"
        )
    }


async def test_agents_from_code_have_the_params_and_toolings_of_their_table(tmp_path: Path) -> None:
    config = scripts(tmp_path, ada="def run(host):\n    return 'the script'")
    config["agents"]["ada"] |= {"params": {"goal": "win"}, "toolings": []}

    async def agent(host: Host) -> str:
        with pytest.raises(toolpost.UnknownTooling, match="can use: none"):
            host.tooling.get("memo")
        return host.params["goal"]

    with anyio.fail_after(5):
        report = await toolpost.run_async(config, agents={"ada": agent})
    assert report.outcomes == {"ada": Outcome("exited", "win")}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `brains` on the import path."""
    (tmp_path / "brains").mkdir()
    (tmp_path / "brains" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "brains"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "brains"


async def test_an_entry_names_a_function_of_a_module(package: Path) -> None:
    (package / "good.py").write_text("class Brain:\n    @staticmethod\n    def run(host): return 'entered'")
    config = memory.config(Memory(), agents={"ada": {"entry": "brains.good:Brain.run"}})

    assert await run_config(config) == {"ada": Outcome("exited", "entered")}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("brains.none:run", "there is no module 'brains.none'"),
        ("no_brains:run", "there is no module 'no_brains'"),
        ("brains.empty:run", "has no function 'run'"),
    ],
)
async def test_an_entry_that_is_not_there_is_a_config_error(package: Path, entry: str, problem: str) -> None:
    (package / "empty.py").write_text("")
    config = memory.config(Memory(), agents={"ada": {"entry": entry}})
    with pytest.raises(ConfigError, match=problem):
        await run_config(config)


async def test_an_entry_whose_module_misses_another_fails(package: Path) -> None:
    (package / "poor.py").write_text("import brain\ndef run(host): pass")
    config = memory.config(Memory(), agents={"ada": {"entry": "brains.poor:run"}})

    assert await run_config(config) == {
        "ada": Outcome("failed", "ModuleNotFoundError: No module named 'brain'")
    }


async def test_without_agents_there_is_nothing_to_run() -> None:
    none: dict[str, Callable[[SyncHost], None]] = {}
    for given in (None, none):
        with pytest.raises(toolpost.UsageError, match="has no agents to run"):
            await toolpost.run_async(memory.config(Memory()), agents=given)


async def test_agents_are_functions_by_name() -> None:
    config = memory.config(Memory())
    with pytest.raises(toolpost.UsageError, match="agent 'ada' must be a function"):
        await toolpost.run_async(config, agents={"ada": 3})  # pyright: ignore[reportArgumentType]: the test
    with pytest.raises(toolpost.UsageError, match="agents must be a mapping"):
        await toolpost.run_async(config, agents=[_raises])  # pyright: ignore[reportArgumentType]: the test


async def test_the_trace_is_told_before_the_first_agent_starts() -> None:
    order: list[str] = []

    async def agent(host: Host) -> None:
        order.append("agent")

    with anyio.fail_after(5):
        await toolpost.run_async(
            memory.config(Memory()), agents={"ada": agent}, on_trace=lambda _: order.append("trace")
        )
    assert order == ["trace", "agent"]


async def test_an_async_generator_is_no_agent() -> None:
    async def agent(host: Host) -> AsyncGenerator[None]:
        yield

    (outcome,) = await outcomes_of(agent)
    assert (outcome.text or "").startswith("it returned <async_generator")
