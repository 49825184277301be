"""The sync face: the same calls with the same names, from threads; and the ways in without a loop."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest

import toolpost
from tests import memory
from tests.memory import Memory
from toolpost import Host, HostClosed, Outcome, SyncHost, SyncTooling, Tooling, UsageError

pytestmark = pytest.mark.usefixtures("either_way")


ROOT = Path(__file__).parent.parent.parent


# -- the two faces ---------------------------------------------------------------------------------


def public(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


def parameters(function: Callable[..., Any]) -> list[str]:
    """As they are written, without self."""
    return [str(each) for each in list(inspect.signature(function).parameters.values())[1:]]


@pytest.mark.parametrize(("face", "behind"), [(SyncTooling, Tooling), (SyncHost, Host)])
def test_the_sync_face_has_the_same_names_signatures_and_docstrings(face: type, behind: type) -> None:
    ours, theirs = public(face), public(behind)

    assert ours.keys() == theirs.keys()
    for name, function in theirs.items():
        assert inspect.getdoc(ours[name]) == inspect.getdoc(function), name
        if callable(function):
            assert parameters(ours[name]) == parameters(function), name
            assert not inspect.iscoroutinefunction(getattr(ours[name], "__code__", None)), name


def test_what_may_wait_is_awaited_and_what_may_not_is_plain() -> None:
    def awaited(cls: type) -> set[str]:
        return {name for name, value in public(cls).items() if inspect.iscoroutinefunction(value)}

    assert public(Tooling).keys() - awaited(Tooling) == {"kind", "name", "is_open"}
    assert public(Host).keys() - awaited(Host) == {"name", "params", "try_recv", "log", "now"}


def test_every_call_works_from_a_thread() -> None:
    memo = Memory()
    with toolpost.open_host_sync(memory.config(memo)) as host:
        tooling = host.tooling.get("memo")
        assert (host.name, host.params, tooling.kind(), tooling.name()) == ("main", {}, "memory", "memo")
        assert repr(tooling) == "<sync <Tooling 'memo' of kind 'memory'>>"
        assert len(tooling.list_tools()) == 4
        assert len(tooling.list_resources()) == 2
        assert tooling.read_resource("memo:a").content == "a0"
        assert tooling.call_tool_blocking("echo", {"message": "hi"}).value == "hi"

        call = tooling.call_tool("echo", {"message": "queued"})
        assert host.recv(timeout=5).id == call
        held = tooling.call_tool("hold")
        assert tooling.is_open(held)
        tooling.cancel(held)
        assert not tooling.is_open(held)

        tooling.unsubscribe_resource(tooling.subscribe_resource("memo:a"))
        tooling.unsubscribe_resource_list(tooling.subscribe_resource_list())
        assert host.try_recv() is None
        with pytest.raises(toolpost.Unsupported):
            tooling.request("prompts/list")
        assert host.now() <= host.now()
        host.sleep(0)
        host.log("hi")
        assert len(host.trace) > 10


def test_errors_cross_to_the_thread_as_they_are() -> None:
    with toolpost.open_host_sync(memory.config(Memory())) as host:
        tooling = host.tooling.get("memo")
        with pytest.raises(toolpost.UnknownTooling):
            host.tooling.get("x")
        with pytest.raises(UsageError):
            tooling.call_tool("echo", "[]")
        with pytest.raises(toolpost.ServerError):
            tooling.call_tool_blocking("fail")
        with pytest.raises(LookupError):
            tooling.call_tool_blocking("break")
        with pytest.raises(toolpost.RecvTimeout):
            host.recv(timeout=0)


def test_a_backend_that_cancels_itself_does_not_end_the_agent() -> None:
    memo = Memory()

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    memo.on_call = lambda call: cancels_itself()
    with toolpost.open_host_sync(memory.config(memo)) as host:
        with pytest.raises(asyncio.CancelledError):
            host.tooling.get("memo").call_tool_blocking("echo")
        memo.on_call = None

        assert host.tooling.get("memo").call_tool_blocking("echo", {"message": "on"}).value == "on"


def test_several_threads_may_share_a_host() -> None:
    memo = Memory()

    def use(number: int) -> str:
        return tooling.call_tool_blocking("echo", {"message": str(number)}).value

    with toolpost.open_host_sync(memory.config(memo)) as host, ThreadPoolExecutor(8) as pool:
        tooling = host.tooling.get("memo")
        assert list(pool.map(use, range(50))) == [str(number) for number in range(50)]


def test_a_thread_that_waits_is_told_when_the_host_closes() -> None:
    memo = Memory()
    with ThreadPoolExecutor(2) as pool:
        with toolpost.open_host_sync(memory.config(memo)) as host:
            tooling = host.tooling.get("memo")
            call = pool.submit(tooling.call_tool_blocking, "hold")
            reader = pool.submit(host.recv)
            while not (memo.held and tooling.call_tool_blocking("echo").value == ""):
                pass
        assert isinstance(call.exception(timeout=5), HostClosed)
        told = reader.exception(timeout=5)

    assert isinstance(told, HostClosed) or reader.result().event == toolpost.Shutdown()


def test_a_closed_host_takes_nothing_new() -> None:
    with toolpost.open_host_sync(memory.config(Memory())) as host:
        tooling = host.tooling.get("memo")
    for work in (tooling.list_tools, host.recv, host.try_recv, lambda: host.tooling.get("memo")):
        with pytest.raises(HostClosed, match="open another one"):
            work()


def test_a_body_that_raises_closes_the_host_and_raises_the_same() -> None:
    memo = Memory()
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught, toolpost.open_host_sync(memory.config(memo)):
        raise error

    assert caught.value is error
    assert memo.closed == 1


def test_a_factory_that_raises_is_a_config_error() -> None:
    memo = Memory()

    def on_build() -> None:
        raise KeyError("far_end")

    memo.on_build = on_build
    with pytest.raises(toolpost.ConfigError), toolpost.open_host_sync(memory.config(memo)):
        pytest.fail("the block was entered")


def test_no_thread_is_left_after_closing() -> None:
    before = threading.active_count()
    with toolpost.open_host_sync(memory.config(Memory())):
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_a_sync_host_without_a_trace_says_so() -> None:
    with (
        toolpost.open_host_sync(memory.config(Memory()), trace=False) as host,
        pytest.raises(UsageError, match="trace=False"),
    ):
        _ = host.trace


async def test_a_sync_host_refuses_its_own_loop() -> None:
    leaked: list[SyncHost] = []

    def agent(host: SyncHost) -> None:
        leaked.append(host)
        host.recv()

    async def other(host: Host) -> str:
        while not leaked:
            await host.sleep(0)
        with pytest.raises(UsageError, match="on its own event loop"):
            leaked[0].try_recv()
        return "refused"

    with anyio.fail_after(5):
        run = asyncio.create_task(
            toolpost.run_async(
                memory.config(Memory(), tunables={"recv_timeout_secs": 0.01}),
                agents={"sync": agent, "async": other},
            )
        )
        report = await run
    assert report.outcomes["async"] == Outcome("exited", "refused")


# -- run -------------------------------------------------------------------------------------------


def test_run_gives_the_outcome_of_each_agent() -> None:
    async def ada(host: Host) -> str:
        return (await host.tooling.get("memo").call_tool_blocking("echo", {"message": "hi"})).value

    def bob(host: SyncHost) -> None:
        host.tooling.get("memo").list_tools()

    outcomes = toolpost.run(memory.config(Memory()), agents={"ada": ada, "bob": bob})

    assert outcomes == {"ada": Outcome("exited", "hi"), "bob": Outcome("completed")}


async def test_run_inside_a_loop_points_to_run_async() -> None:
    with pytest.raises(UsageError, match=r"await toolpost\.run_async"):
        toolpost.run(memory.config(Memory()), agents={"ada": lambda host: None})


def test_run_works_in_a_thread_that_is_not_the_main_one() -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(toolpost.run, memory.config(Memory()), agents={"ada": lambda host: "done"})
        assert running.result(timeout=5) == {"ada": Outcome("exited", "done")}


def test_two_event_loops_may_follow_each_other() -> None:
    memo = Memory()
    config = toolpost.load_config(memory.config(memo))

    async def use() -> str:
        async with toolpost.open_host(config) as host:
            return (await host.tooling.get("memo").call_tool_blocking("echo", {"message": "hi"})).value

    assert [asyncio.run(use()), asyncio.run(use())] == ["hi", "hi"]
    assert (memo.built, memo.closed) == (2, 2)


# -- Ctrl-C, in processes of their own -------------------------------------------------------------

PREAMBLE = """
import signal, sys, threading, time
import toolpost
from tests import memory
from tests.memory import Memory
from toolpost.host import agents as agents_module

memo = Memory()
config = memory.config(memo)

def interrupt(number=signal.SIGINT):
    signal.pthread_kill(threading.main_thread().ident, number)
"""


def script(source: str) -> str:
    """What a program prints, run to its end."""
    preamble = f"{PREAMBLE}\nMemory.drives_calls = {Memory.drives_calls}\n"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", preamble + textwrap.dedent(source)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_ctrl_c_ends_a_call_that_the_main_thread_waits_for() -> None:
    printed = script("""
        def interrupt_when_held():
            while not memo.held:
                time.sleep(0.001)
            interrupt()

        with toolpost.open_host_sync(config) as host:
            threading.Thread(target=interrupt_when_held).start()
            try:
                host.tooling.get("memo").call_tool_blocking("hold")
            except KeyboardInterrupt:
                print("interrupted", memo.held[0].was_cancelled)
            print(host.tooling.get("memo").call_tool_blocking("echo", {"message": "goes on"}).value)
        print(memo.log[-1], threading.active_count())
    """)
    assert printed.splitlines() == ["interrupted True", "goes on", "aclose 1"]


def test_ctrl_c_while_waiting_for_envelopes_loses_none() -> None:
    printed = script("""
        with toolpost.open_host_sync(config) as host:
            tooling = host.tooling.get("memo")
            uuid = tooling.call_tool("hold")
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                host.recv()
            except KeyboardInterrupt:
                print("interrupted")
            host._bridge.call(lambda: memo.held[0].answer("kept"))
            print(host.recv(timeout=5).event.value)
    """)
    assert printed.splitlines() == ["interrupted", "kept"]


def test_ctrl_c_in_the_very_step_that_deals_with_another_loses_no_envelope() -> None:
    printed = script("""
        from toolpost.host.bridge import Bridge
        give_up = Bridge._give_up

        def interrupted_again(bridge, hop):
            Bridge._give_up = give_up
            signal.raise_signal(signal.SIGINT)
            return give_up(bridge, hop)

        Bridge._give_up = interrupted_again
        with toolpost.open_host_sync(config) as host:
            host.tooling.get("memo").call_tool("hold")
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                host.recv()
            except KeyboardInterrupt:
                print("interrupted")
            host._bridge.call(lambda: memo.held[0].answer("kept"))
            print(host.recv(timeout=5).event.value)
    """)
    assert printed.splitlines() == ["interrupted", "kept"]


INTERRUPTER = """
import queue

asked = queue.SimpleQueue()  # an interrupt cannot break it, as it can the locks of `threading`

def interrupt_when_asked():
    while True:
        asked.get()
        interrupt()

threading.Thread(target=interrupt_when_asked, daemon=True).start()
"""


@pytest.mark.parametrize("call", ["host.now()", "it.call_tool_blocking('echo')"])
def test_ctrl_c_at_any_moment_of_a_call_leaves_the_thread_working(call: str) -> None:
    printed = script(
        INTERRUPTER
        + textwrap.dedent(f"""
            seen = 0
            with toolpost.open_host_sync(config) as host:
                it = host.tooling.get("memo")
                while seen < 1000:
                    try:
                        asked.put(None)
                        while True:
                            {call}
                    except KeyboardInterrupt:
                        seen += 1
                print("works", host.tooling.get("memo").call_tool_blocking("echo").name)
        """)
    )
    assert printed == "works echo\n"


def test_ctrl_c_at_any_moment_of_taking_loses_no_envelope() -> None:
    printed = script(
        INTERRUPTER
        + textwrap.dedent("""
            with toolpost.open_host_sync(config) as host:
                tooling = host.tooling.get("memo")
                for number in range(1000):
                    uuid, taken = tooling.call_tool("echo"), None
                    try:
                        asked.put(None)
                        if number % 2:
                            taken = host.recv(timeout=5)
                        while taken is None:
                            taken = host.try_recv()
                        while True:
                            host.now()
                    except KeyboardInterrupt:
                        pass
                    taken = taken or host.recv(timeout=5)
                    assert taken.id == uuid, "lost, or taken twice"
                assert host.try_recv() is None
                kinds = [event.kind for event in host.trace]
                print("none lost", kinds.count("inbound"))
        """)
    )
    assert printed == "none lost 1000\n"


def test_ctrl_c_at_any_moment_of_queueing_leaves_no_call_behind() -> None:
    printed = script(
        INTERRUPTER
        + textwrap.dedent("""
            with toolpost.open_host_sync(config) as host:
                tooling = host.tooling.get("memo")
                for _ in range(500):
                    uuids = []
                    try:
                        asked.put(None)
                        while True:
                            uuids += [tooling.call_tool("hold")]
                    except KeyboardInterrupt:
                        pass
                    for uuid in uuids:
                        tooling.cancel(uuid)
                opened = [event.id for event in host.trace if event.kind == "opened"]
                print("left:", [uuid for uuid in opened if tooling.is_open(uuid)])
        """)
    )
    assert printed == "left: []\n"


def test_ctrl_c_while_it_closes_does_not_cut_that_short() -> None:
    printed = script("""
        import asyncio
        seen = []

        def on_signal(*_):
            seen.append("interrupt")
            raise KeyboardInterrupt

        async def on_close():
            for count in range(1, 21):
                interrupt()
                while len(seen) < count:
                    await asyncio.sleep(0)
            memo.log.append("closed")

        signal.signal(signal.SIGINT, on_signal)
        memo.on_close = on_close
        try:
            with toolpost.open_host_sync(config):
                pass
        except KeyboardInterrupt:
            print("interrupted", len(seen), memo.log[-1], threading.active_count())
    """)
    assert printed == "interrupted 20 closed 1\n"


@pytest.mark.parametrize("step", ["__exit__", "end", "_interrupts_put_off"])
def test_ctrl_c_in_the_very_step_that_begins_to_close_it_does_not_keep_it_open(step: str) -> None:
    printed = script(f"""
        step = {step!r}
        from toolpost.host import host as module

        def interrupted(frame, event, _):
            code = frame.f_code
            if event == "call" and code.co_name == step and code.co_filename == module.__file__:
                sys.settrace(None)
                raise KeyboardInterrupt

        try:
            with toolpost.open_host_sync(config):
                sys.settrace(interrupted)
        except KeyboardInterrupt:
            print("interrupted", memo.closed, threading.active_count())
    """)
    assert printed == "interrupted 1 1\n"


def test_ctrl_c_that_is_not_caught_closes_the_host() -> None:
    printed = script("""
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            with toolpost.open_host_sync(config) as host:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                host.sleep(60)
        except KeyboardInterrupt:
            print("interrupted", memo.closed, threading.active_count())
    """)
    assert printed.splitlines() == ["interrupted 1 1"]


def test_ctrl_c_in_run_shuts_the_agents_down_and_is_raised_then() -> None:
    printed = script("""
        told = []

        async def ada(host):
            interrupt()
            told.append((await host.recv()).event.kind)

        def bob(host):
            told.append(host.recv().event.kind)

        try:
            toolpost.run(config, agents={"ada": ada, "bob": bob})
        except KeyboardInterrupt:
            print("interrupted", memo.closed, *told)
    """)
    assert printed == "interrupted 1 shutdown shutdown\n"


def test_sigterm_shuts_agents_down_as_ctrl_c_does() -> None:
    printed = script("""
        import asyncio

        async def ada(host):
            interrupt(signal.SIGTERM)
            return (await host.recv()).event.kind

        report = asyncio.run(toolpost.run_async(config, agents={"ada": ada}, handle_signals=True))
        print(report.interrupted, report.outcomes["ada"])
    """)
    assert printed == "True exited: shutdown\n"


def test_a_second_ctrl_c_grants_no_grace() -> None:
    printed = script("""
        import asyncio
        agents_module.SHUTDOWN_GRACE_SECS = 60.0

        async def ada(host):
            interrupt()
            await host.recv()
            interrupt()

        async def bob(host):
            await host.recv()
            await host.sleep(60)

        crew = {"ada": ada, "bob": bob}
        report = asyncio.run(toolpost.run_async(config, agents=crew, handle_signals=True))
        print(report.interrupted, *report.outcomes.values(), sep="; ")
    """)
    assert "AgentStopped: agent 'bob' did not end in time after Shutdown" in printed


COMPUTES = """
import signal, sys, time
from toolpost.host.host import BUSY_SECS

async def run(host):
    signal.raise_signal(signal.SIGINT)
    until = time.monotonic() + BUSY_SECS
    while time.monotonic() < until:
        pass
    print("first", file=sys.stderr, flush=True)  # two that come at once would be one to the process
    while True:
        pass
"""
WAITS = """
def run(host):
    return host.recv().event.kind
"""


@pytest.mark.parametrize("simulated", [[], ["--simulate"]], ids=["real", "simulated"])
def test_a_second_ctrl_c_reaches_an_agent_that_computes_and_the_run_is_reported(
    simulated: list[str], tmp_path: Path
) -> None:
    (tmp_path / "ada.py").write_text(COMPUTES)
    (tmp_path / "bob.py").write_text(WAITS)
    (tmp_path / "toolpost.toml").write_text(
        '[agents.bob]\nscript = "bob.py"\n[agents.ada]\nscript = "ada.py"\n'
    )
    code = "from toolpost.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "run", *simulated], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "first" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()

    assert process.returncode == 130
    assert "agent 'ada' failed: AgentStopped: agent 'ada' was interrupted: it let nobody else run" in said
    assert "agent 'bob' exited: shutdown" in said


def test_the_handlers_of_the_program_are_back_after_a_run() -> None:
    printed = script("""
        def mine(*_):
            print("mine")

        signal.signal(signal.SIGTERM, mine)
        toolpost.run(config, agents={"ada": lambda host: None})
        interrupt(signal.SIGTERM)
    """)
    assert printed == "mine\n"


@pytest.mark.parametrize("asked", [False, True])
def test_the_handlers_of_the_programs_loop_are_back_after_a_run(asked: bool) -> None:
    printed = script(f"""
        import asyncio

        async def main():
            heard = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)

            async def ada(host):
                pass

            await toolpost.run_async(config, agents={{"ada": ada}}, handle_signals={asked})
            interrupt(signal.SIGTERM)
            await heard.wait()
            print("mine")

        asyncio.run(main())
    """)
    assert printed == "mine\n"


def test_without_being_asked_a_run_handles_no_signals() -> None:
    printed = script("""
        import asyncio

        async def ada(host):
            return str(signal.getsignal(signal.SIGTERM) is mine)

        def mine(*_): ...

        signal.signal(signal.SIGTERM, mine)
        print(asyncio.run(toolpost.run_async(config, agents={"ada": ada})).outcomes["ada"])
    """)
    assert printed == "exited: True\n"


def test_a_task_that_was_left_behind_does_not_keep_the_process() -> None:
    printed = script("""
        import asyncio, logging
        logging.disable()
        agents_module.SHUTDOWN_GRACE_SECS = agents_module.STOP_GRACE_SECS = 0.01

        async def deaf(host):
            interrupt()
            while True:
                try:
                    await asyncio.Event().wait()
                except BaseException:
                    pass

        async def busy(host):
            while True:
                try:
                    await host.recv()
                except BaseException:
                    pass

        try:
            toolpost.run(config, agents={"deaf": deaf, "busy": busy})
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert printed == "interrupted\n"


def test_a_thread_that_was_left_behind_does_not_keep_the_process() -> None:
    printed = script("""
        import logging
        logging.disable()
        agents_module.SHUTDOWN_GRACE_SECS = agents_module.STOP_GRACE_SECS = 0.01

        def stuck(host):
            interrupt()
            threading.Event().wait()

        try:
            toolpost.run(config, agents={"stuck": stuck})
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert printed == "interrupted\n"
