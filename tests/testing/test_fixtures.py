"""What the fixtures of the pytest plugin give, used as a user's test uses them."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

import toolpost
from tests import memory
from tests.memory import Memory
from tests.tracing import breaks_what_sleeps
from toolpost import ConfigError, Host, Outcome, SyncHost, UsageError
from toolpost.testing import HostFactory, MockFactory, TraceView, call, inbound, watchdog
from toolpost.testing.fixtures import ConfigUnderTest
from toolpost.testing.host_under_test import Clock

pytest_plugins = ["toolpost.pytest_plugin"]

REAL = """
[tooling.mcp]
kind = "mcp"
transport = "stdio"
command = "${NO_SUCH_VARIABLE}"

[agents.ada]
entry = "tests.testing.test_fixtures:asks"
params = { text = "from the config" }
"""


async def asks(host: Host) -> str:
    """An async agent: queues a call and takes the answer."""
    await host.tooling.get("mcp").call_tool("echo", host.params)
    event = (await host.recv()).event
    assert isinstance(event, toolpost.ToolResult)
    return event.value


def asks_sync(host: SyncHost) -> str:
    """A sync one."""
    host.tooling.get("mcp").call_tool("echo")
    event = host.recv().event
    assert isinstance(event, toolpost.ToolResult)
    return event.value


# -- agents ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [asks, asks_sync])
def test_an_agent_is_a_function_and_gives_its_outcome(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, agent: Callable[[Any], Any]
) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")

    assert toolpost_host().run(agent) == Outcome("exited", "hi")


def test_several_agents_run_side_by_side_under_their_names(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    mock = toolpost_mock("mcp")
    mock.tool("echo").returns("first").after(call("call_tool", agent="bob"))
    mock.tool("echo").returns("second").after(inbound(agent="ada"))

    outcomes = toolpost_host().run(ada=asks, bob=asks_sync)

    assert {outcome.text for outcome in outcomes.values()} == {"first", "second"}
    assert {each.agent for each in toolpost_trace.calls()} == {"ada", "bob"}


def test_without_a_function_the_agents_of_the_config_run(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")

    assert toolpost_host(REAL).run() == {"ada": Outcome("exited", "hi")}
    assert toolpost_trace.calls("call_tool", arguments={"text": "^from the config$"})


def test_a_function_under_the_name_of_an_agent_gets_what_the_config_says_of_it(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    toolpost_mock("mcp")

    async def tells(host: Host) -> str:
        return host.params["text"]

    assert toolpost_host(REAL).run(ada=tells)["ada"].text == "from the config"


async def test_in_a_test_with_a_loop_agents_are_awaited(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")
    host = toolpost_host()

    assert await host.run_async(asks) == Outcome("exited", "hi")
    assert await host.run_async(ada=asks_sync) == {"ada": Outcome("exited", "hi")}
    with pytest.raises(UsageError, match="await run_async instead"):
        host.run(asks)


def test_run_async_says_that_it_needs_asyncio(toolpost_host: HostFactory) -> None:
    running = toolpost_host({}).run_async(asks)

    with pytest.raises(UsageError, match="toolpost runs on asyncio"):
        running.send(None)


def test_each_run_has_a_script_of_its_own(toolpost_mock: MockFactory, toolpost_host: HostFactory) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")
    host = toolpost_host()

    assert host.run(asks) == host.run(asks) == Outcome("exited", "hi")


def test_what_an_agent_raises_is_its_outcome(toolpost_host: HostFactory) -> None:
    def breaks(host: SyncHost) -> None:
        raise LookupError("nothing there")

    assert toolpost_host({}).run(breaks) == Outcome("failed", "LookupError: nothing there")


def test_agents_are_given_in_one_way(toolpost_host: HostFactory) -> None:
    host, not_callable = toolpost_host({}), {"ada": 3}

    with pytest.raises(UsageError, match=r"give one agent, or several by name"):
        host.run(asks, ada=asks)  # pyright: ignore[reportCallIssue]: that is the point
    with pytest.raises(UsageError, match="agent 'ada' must be a function"):
        host.run(**not_callable)  # pyright: ignore[reportArgumentType]: so is this
    with pytest.raises(UsageError, match="config has no agents to run: give a function"):
        host.run()


# -- time ------------------------------------------------------------------------------------------

LIMIT = 1.5
"""Long enough for each agent here to come to where it hangs; and not just when a loop looks, each second,
whether it is to wait any longer for a thread."""


async def waits(host: Host) -> None:
    await host.recv(math.inf)


def waits_sync(host: SyncHost) -> None:
    host.recv(math.inf)


async def blocks(host: Host) -> None:
    while True:
        pass


def test_with_mocks_alone_time_is_simulated(toolpost_host: HostFactory) -> None:
    async def sleeps(host: Host) -> str:
        before = host.now()
        await host.sleep(3600)
        return f"{host.now() - before:g}"

    assert toolpost_host({}).run(sleeps).text == "3600"


def test_simulated_runs_are_equal_and_a_seed_chooses_among_them(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    toolpost_mock("mcp").tool("echo").returns("first")
    toolpost_mock("mcp").tool("echo").returns("second")

    def run(seed: int) -> tuple[toolpost.TraceEvent, ...]:
        host = toolpost_host(seed=seed)
        host.run(ada=asks, bob=asks_sync)
        return tuple(host.trace)

    assert run(0) == run(0)
    assert len({tuple(map(str, run(seed))) for seed in range(10)}) > 1


def test_agents_that_can_never_go_on_are_ended_at_once_with_where_they_stand(
    toolpost_host: HostFactory,
) -> None:
    with pytest.raises(AssertionError) as raised:
        toolpost_host({}).run(ada=waits, bob=waits_sync)

    said = str(raised.value)
    assert said.startswith("deadlock at 0 s of simulated time: nothing is ready and no timer is due")
    assert "agent 'ada', waiting in recv(), standing at" in said
    assert "await host.recv(math.inf)" in said
    assert "agent 'bob', waiting in recv(), standing at" in said


def test_in_real_time_agents_that_hang_are_ended_when_it_is_up(toolpost_host: HostFactory) -> None:
    with pytest.raises(AssertionError) as raised:
        toolpost_host({}, timeout=LIMIT, clock="real").run(waits)

    said = str(raised.value)
    assert said.startswith("timed out after 1.5 s (timeout of toolpost_host)\n  agent 'agent', ")
    assert "await host.recv(math.inf)" in said


def test_time_is_not_simulated_for_a_real_server(toolpost_host: HostFactory) -> None:
    config = REAL.replace("${NO_SUCH_VARIABLE}", "server")

    async def knows_the_year(host: Host) -> str:
        return "now" if abs(host.now() - time.time()) < 1e6 else "simulated"

    assert toolpost_host(config).run(knows_the_year).text == "now"
    with pytest.raises(UsageError, match="clock=\"virtual\" cannot be: these toolings are real: 'mcp'"):
        toolpost_host(config, clock="virtual").run(knows_the_year)


async def test_agents_that_hang_on_the_tests_own_loop_end_too(toolpost_host: HostFactory) -> None:
    with pytest.raises(AssertionError, match=r"timed out after 1\.5 s(.|\n)*await host\.recv\(math\.inf\)"):
        await toolpost_host({}, timeout=LIMIT, clock="real").run_async(waits)


async def test_a_run_inside_a_running_loop_is_simulated_while_that_loop_goes_on(
    toolpost_host: HostFactory,
) -> None:
    loop, heard = asyncio.get_running_loop(), threading.Event()

    async def sleeps(host: Host) -> str:
        loop.call_soon_threadsafe(heard.set)
        assert heard.wait(5), "the loop of the test stands still"
        await host.sleep(10**6)
        return "slept"

    assert (await toolpost_host({}).run_async(sleeps)).text == "slept"


async def test_a_simulated_run_ends_with_the_test_that_awaits_it(toolpost_host: HostFactory) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def goes_on(host: Host) -> None:
        loop.call_soon_threadsafe(started.set)
        while True:
            await host.sleep(1)

    running = asyncio.create_task(toolpost_host({}).run_async(goes_on))
    await started.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    for thread in [each for each in threading.enumerate() if each.name == "toolpost agents"]:
        await anyio.to_thread.run_sync(thread.join, 5)
        assert not thread.is_alive()


def test_an_agent_that_blocks_its_loop_is_ended(
    toolpost_host: HostFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "ASKING_SECS", 0.05)

    for clock in ("virtual", "real"):
        with pytest.raises(AssertionError, match=r"agent 'agent', standing at(.|\n)*in blocks"):
            toolpost_host({}, timeout=LIMIT, clock=clock).run(blocks)


@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_a_sync_agent_that_loops_for_ever_is_ended(
    toolpost_host: HostFactory, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(watchdog, "ASKING_SECS", 0.05)
    threads: list[threading.Thread] = []

    def loops(host: SyncHost) -> None:
        threads.append(threading.current_thread())
        while True:
            pass

    with pytest.raises(AssertionError, match=r"agent 'agent', standing at(.|\n)*in loops"):
        toolpost_host({}, timeout=LIMIT, clock=clock).run(loops)

    threads[0].join(60)
    assert not threads[0].is_alive()


@breaks_what_sleeps
def test_an_agent_that_waits_outside_python_is_left_behind(
    toolpost_host: HostFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "ASKING_SECS", 0.05)
    monkeypatch.setattr(watchdog, "BREAKING_SECS", 0.05)
    goes_on, has_ended = threading.Event(), threading.Event()

    async def sleeps(host: Host) -> None:
        try:
            goes_on.wait()
        finally:
            has_ended.set()

    with pytest.raises(AssertionError, match=r"agent 'agent', standing at(.|\n)*in sleeps"):
        toolpost_host({}, timeout=LIMIT).run(sleeps)

    goes_on.set()
    assert has_ended.wait(60)


def test_ctrl_c_ends_the_agents_first(toolpost_host: HostFactory) -> None:
    ended: list[str] = []

    async def interrupts(host: Host) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await host.recv(math.inf)
        finally:
            ended.append(host.name)

    with pytest.raises(KeyboardInterrupt):
        toolpost_host({}, clock="real").run(interrupts)

    assert ended == ["agent"]


# -- the test as the agent -------------------------------------------------------------------------


def test_a_test_can_be_the_agent(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")

    with toolpost_host() as host:
        assert host.tooling.get("mcp").call_tool_blocking("echo").value == "hi"
        assert [each.name for each in host.mock("mcp").calls] == ["echo"]
    assert [each.agent for each in toolpost_trace.calls()] == ["main"]


async def test_an_async_test_can_be_the_agent(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")

    async with toolpost_host() as host:
        assert (await host.tooling.get("mcp").call_tool_blocking("echo")).value == "hi"
    assert [each.agent for each in toolpost_trace.calls()] == ["main"]


def test_a_host_is_open_once_at_a_time(toolpost_host: HostFactory) -> None:
    host = toolpost_host({})

    with host, pytest.raises(UsageError, match="open already; make another one"):
        host.__enter__()
    with host as again:
        assert again.name == "main"


def test_what_a_test_leaves_open_is_closed() -> None:
    hosts = HostFactory(MockFactory())
    host = hosts({}).__enter__()
    hosts.close()

    with pytest.raises(toolpost.HostClosed):
        host.try_recv()


def test_what_an_async_test_leaves_open_is_closed_on_its_loop() -> None:
    hosts = HostFactory(MockFactory())
    with asyncio.Runner() as runner:
        host = runner.run(hosts({}).__aenter__())
        hosts.close()

        with pytest.raises(toolpost.HostClosed):
            host.try_recv()
    hosts.close()


def test_what_a_loop_has_closed_at_its_end_is_closed() -> None:
    hosts = HostFactory(MockFactory())
    asyncio.run(hosts({}).__aenter__())

    hosts.close()


# -- configs ---------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A config in a file, and beside it the script of its agent."""
    (tmp_path / "agent.py").write_text("import beside\n\n\ndef run(host):\n    return beside.SAID\n")
    (tmp_path / "beside.py").write_text("SAID = 'from the file'\n")
    path = tmp_path / "toolpost.toml"
    path.write_text(REAL + '\n[agents.bob]\nscript = "agent.py"\n')
    return path


def test_a_config_may_be_a_file(toolpost_mock: MockFactory, toolpost_host: HostFactory, file: Path) -> None:
    toolpost_mock("mcp").tool("echo").returns("hi")

    for source in (file, str(file)):
        outcomes = toolpost_host(source).run()
        assert [each.text for each in outcomes.values()] == ["hi", "from the file"]


@pytest.mark.parametrize(
    "config",
    [
        {"tooling": {"mcp": {"kind": "mock"}}, "tunables": {"inbox_bound": 7}},
        '[tooling.mcp]\nkind = "mock"\n[tunables]\ninbox_bound = 7\n',
        "tunables.inbox_bound = 7",
        toolpost.Config(tunables=toolpost.Tunables(inbox_bound=7)),
    ],
)
def test_mocks_stand_in_place_of_the_toolings_of_their_names(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, config: ConfigUnderTest
) -> None:
    toolpost_mock("mcp").offers("echo")
    toolpost_mock("other").offers("add")

    with toolpost_host(config) as host:
        assert [tool.name for tool in host.tooling.get("mcp").list_tools()] == ["echo"]
        assert [tool.name for tool in host.tooling.get("other").list_tools()] == ["add"]


def test_a_mock_may_be_scripted_after_the_host_is_made(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    host = toolpost_host({})
    toolpost_mock("mcp").tool("echo").returns("hi")

    assert host.run(asks).text == "hi"
    assert toolpost_mock("mcp") is toolpost_mock("mcp")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (REAL, "^<text>: tooling.mcp.command: .*NO_SUCH_VARIABLE"),
        ("[tooling", "^<text>:1:9: not valid TOML"),
        ({"tooling": 3}, "^config: tooling: expected a table"),
        ("nowhere.toml", "^nowhere.toml: no such file"),
    ],
)
def test_a_config_that_cannot_be_used_is_told_of(
    toolpost_host: HostFactory, config: ConfigUnderTest, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        toolpost_host(config).run(asks)


def test_a_tooling_that_cannot_be_built_is_told_of(toolpost_host: HostFactory) -> None:
    memo = Memory()

    def refuses() -> None:
        raise UsageError("not today")

    memo.on_build = refuses

    with pytest.raises(UsageError, match="not today"):
        toolpost_host(memory.config(memo)).run(asks)


def test_a_table_that_is_none_is_told_of_beside_a_mock(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    toolpost_mock("mcp")

    with pytest.raises(ConfigError, match=r"^config: tooling: expected a table"):
        toolpost_host({"tooling": 3}).run(asks)


def test_neither_a_config_nor_a_mock_is_told_of(toolpost_host: HostFactory) -> None:
    with pytest.raises(UsageError, match="give toolpost_host a config, or script a mock by toolpost_mock"):
        toolpost_host().run(asks)
