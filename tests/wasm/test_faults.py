"""A guest that goes wrong ends as `failed`, with what it did; nothing else is harmed."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from wasmtime.component._linker import RESOURCE_DTORS

import toolpost
from tests.cli.support import started, write_config
from tests.wasm import wat
from tests.wasm.support import BOX, config, outcome, outcomes_when
from toolpost.host.core import Core
from toolpost.wasm import binding

SOAK = int(os.environ.get("TOOLPOST_SOAK", "1"))


BUSY = pytest.mark.parametrize(
    "busy", [wat.component(wat.LOOPS), wat.waiting(wat.SLEEPS)], ids=["computes", "sleeps"]
)


def failed(script: Path | str, params: dict[str, Any] | None = None, **keys: Any) -> str:
    ended = outcome(script, params, **keys)
    assert ended.kind == "failed"
    assert ended.text is not None
    return ended.text


def guest(folder: Path, body: str, **parts: Any) -> str:
    return wat.write(folder, "guest", wat.component(body, **parts))


# -- ends of its own -------------------------------------------------------------------------------


def test_a_guest_that_returns_nothing_completes(tmp_path: Path) -> None:
    assert outcome(guest(tmp_path, wat.FINE)) == toolpost.Outcome("completed")


def test_the_error_that_a_guest_returns_is_why_it_failed(tmp_path: Path) -> None:
    assert failed(guest(tmp_path, wat.FAILS)) == "no"


def test_a_trap_is_told_with_the_guests_backtrace_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = config(guest(tmp_path, wat.TRAPS))
    tables["agents"]["bob"] = {"script": wat.write(tmp_path, "fine", wat.component(wat.FINE))}

    with caplog.at_level(logging.ERROR):
        outcomes = toolpost.run(tables)

    assert outcomes["bob"] == toolpost.Outcome("completed")
    text = outcomes["ada"].text or ""
    assert text.startswith("wasm trap: wasm `unreachable` instruction executed\n")
    assert "guest!run" in text
    assert caplog.messages == [f"agent 'ada' failed: {text}"]


def test_an_exit_is_a_failure_even_with_status_0(tmp_path: Path) -> None:
    body = f"(call $exit (i32.const 0)) {wat.FINE}"

    assert failed(guest(tmp_path, body, imports=wat.EXIT, calls="exit")) == (
        "it exited with status 0, and did not return from `run`"
    )


def test_recursion_without_end_is_a_trap(tmp_path: Path) -> None:
    assert failed(guest(tmp_path, wat.RECURSES)).startswith("wasm trap: call stack exhausted\n")


def test_a_guest_in_python_that_recurses_without_end_fails_as_in_python(troupe: Path) -> None:
    assert failed(troupe, {"act": "recurse"}).startswith("RecursionError: ")


# -- limits ----------------------------------------------------------------------------------------


def test_a_guest_that_needs_more_memory_than_it_may_have_does_not_start(tmp_path: Path) -> None:
    text = failed(guest(tmp_path, wat.FINE, memory=17), sandbox={"memory_mb": 1})

    assert text == "memory minimum size of 17 pages exceeds memory limits"


def test_a_guest_gets_no_more_memory_than_it_may_have(tmp_path: Path) -> None:
    text = failed(guest(tmp_path, wat.GROWS), sandbox={"memory_mb": 2})

    assert "unreachable" in text  # which it reaches once it gets no more


@pytest.mark.parametrize(
    ("many", "named"),
    [
        ("(core module $m) " + "(core instance (instantiate $m))" * 300, "instance count too high"),
        (
            f"(core module $m {'(table 1 funcref)' * 20}) (core instance (instantiate $m))",
            "table count too high",
        ),
        ("(core module $m (table 70000 funcref)) (core instance (instantiate $m))", "70000 elements"),
    ],
    ids=["instances", "tables", "elements"],
)
def test_a_guest_gets_no_more_of_what_is_no_memory(many: str, named: str, tmp_path: Path) -> None:
    assert named in failed(guest(tmp_path, wat.FINE, imports=many))


def test_a_guest_in_python_that_allocates_without_end_runs_out_of_memory(troupe: Path) -> None:
    assert failed(troupe, {"act": "allocate"}, sandbox={"memory_mb": 64}).startswith("MemoryError")


@pytest.mark.parametrize("simulate", [False, True])
@BUSY
def test_a_guest_that_goes_without_a_host_call_for_too_long_is_interrupted(
    busy: bytes, simulate: bool, tmp_path: Path
) -> None:
    path = wat.write(tmp_path, "guest", busy)
    text = failed(path, sandbox={"timeout_secs": 0.1}, simulate=simulate)

    assert text == "it made no host call for 0.1 s (sandbox.timeout_secs), and was interrupted"


def test_a_guest_in_python_that_sleeps_by_its_own_means_for_too_long_is_interrupted(troupe: Path) -> None:
    assert failed(troupe, {"act": "doze"}, sandbox={"timeout_secs": 1}).startswith(
        "it made no host call for 1 s"
    )


def test_time_in_host_calls_is_not_counted(troupe: Path) -> None:
    """It waits for longer than it may compute; the limit is far above what the rest of it takes."""
    params = {"act": "plan", "plan": [["sleep", 3.5]]}

    assert outcome(troupe, params, sandbox={"timeout_secs": 3}).kind == "exited"


# -- shutdown --------------------------------------------------------------------------------------


async def until(holds: Callable[[], object]) -> None:
    with anyio.fail_after(60):
        while not holds():  # noqa: ASYNC110  # a thread tells nobody
            await anyio.sleep(0.01)


async def until_started(core: Core) -> None:
    await until(lambda: core.runs and core.runs[0].thread)


@pytest.mark.parametrize("attempt", range(SOAK))
@BUSY
async def test_a_guest_that_makes_no_host_call_ends_at_shutdown_without_its_grace(
    busy: bytes, attempt: int, tmp_path: Path
) -> None:
    async def shut_down(core: Core, stop: asyncio.Event) -> None:
        await until_started(core)
        stop.set()

    ended = await outcomes_when(config(wat.write(tmp_path, "guest", busy)), shut_down)

    why = "AgentStopped: agent 'ada' made no host call for 0.5 s after Shutdown"
    assert ended == {"ada": toolpost.Outcome("failed", why)}


@BUSY
async def test_a_guest_that_makes_no_host_call_ends_at_once_when_there_is_no_grace(
    busy: bytes, tmp_path: Path
) -> None:
    async def end(core: Core, _: asyncio.Event) -> None:
        await until_started(core)
        core.end_agent("ada", toolpost.Outcome("asserted"))
        await until(lambda: not core.runs)
        left.extend(core.left_behind)

    left: list[object] = []
    ended = await outcomes_when(config(wat.write(tmp_path, "guest", busy)), end)

    assert ended == {"ada": toolpost.Outcome("asserted")}
    assert left == []


async def test_a_guest_that_is_stopped_while_it_waits_and_computes_then_is_interrupted(troupe: Path) -> None:
    async def end(core: Core, _: asyncio.Event) -> None:
        await until(lambda: core.runs and core.runs[0].waits())
        core.end_agent("ada", toolpost.Outcome("asserted"))
        await until(lambda: not core.runs)
        left.extend(core.left_behind)

    left: list[object] = []
    ended = await outcomes_when(config(troupe, {"act": "loop_once_told"}), end)

    assert ended == {"ada": toolpost.Outcome("asserted")}
    assert left == []


async def test_a_guest_that_is_stopped_is_not_kept_going_by_calls_that_never_fail(
    troupe: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def end(core: Core, _: asyncio.Event) -> None:
        await until(lambda: "asking" in caplog.messages)
        core.end_agent("ada", toolpost.Outcome("asserted"))
        await until(lambda: not core.runs)
        left.extend(core.left_behind)

    left: list[object] = []
    with caplog.at_level(logging.INFO, "toolpost.agent.ada"):
        ended = await outcomes_when(config(troupe, {"act": "ask"}), end)

    assert ended == {"ada": toolpost.Outcome("asserted")}
    assert left == []


async def test_a_guest_that_waits_is_told_of_shutdown_and_calls_as_any_agent_after_it(troupe: Path) -> None:
    async def shut_down(core: Core, stop: asyncio.Event) -> None:
        await until_started(core)
        stop.set()

    ended = await outcomes_when(config(troupe, {"act": "after_shutdown"}), shut_down)

    assert ended["ada"].kind == "exited"
    assert str(ended["ada"].text).count("has taken Shutdown, the last envelope of its inbox") == 2


async def test_a_guest_that_is_stopped_in_a_host_call_is_unwound_and_says_why(troupe: Path) -> None:
    async def stop_without_grace(core: Core, stop: asyncio.Event) -> None:
        await until(lambda: core.runs and core.runs[0].waits())
        core.hurry()
        stop.set()

    tables = config(troupe, {"act": "plan", "plan": [["sleep", 3600]]})
    ended = await outcomes_when(tables, stop_without_grace)

    why = "AgentStopped: agent 'ada' did not end in time after Shutdown"
    assert ended == {"ada": toolpost.Outcome("failed", why)}


def test_ctrl_c_ends_a_simulated_run_whose_guest_computes_and_leaves_nothing_behind(
    troupe: Path, tmp_path: Path
) -> None:
    table = f"[agents.ada]\nscript = '{troupe}'\nparams = {{ act = 'loop' }}\n"

    with started("run", "--simulate", "-c", write_config(tmp_path, table)) as running:
        assert running.process.stderr is not None
        assert any("looping" in line for line in running.process.stderr)
        running.signal(signal.SIGINT)
        ended = running.end()

    assert ended.status == 130
    assert "agent 'ada' failed: AgentStopped: agent 'ada' was stopped between two host calls" in ended.err
    assert "left behind" not in ended.err


# -- handles ---------------------------------------------------------------------------------------


def test_a_handle_that_is_dropped_twice_is_a_trap(tmp_path: Path) -> None:
    once = f"{wat.GET} (call $drop (i32.const 1)) {wat.FINE}"
    twice = f"{wat.GET} (call $drop (i32.const 1)) (call $drop (i32.const 1)) {wat.FINE}"

    assert outcome(guest(tmp_path, once, imports=wat.HANDLES, calls="get drop")).kind == "completed"
    assert "unknown handle index 1" in failed(guest(tmp_path, twice, imports=wat.HANDLES, calls="get drop"))


def test_a_guest_that_keeps_handles_may_have_so_many_and_more_once_it_drops_some(troupe: Path) -> None:
    ended = outcome(troupe, {"act": "hold"})

    assert ended.text == "this guest holds 1024 handles of toolings: drop some first"


def test_a_guest_may_have_so_many_subscriptions_and_more_once_it_ends_some(troupe: Path) -> None:
    ended = outcome(troupe, {"act": "follow"})

    assert ended.text == "this guest has 1024 subscriptions: end some first"


def test_a_guest_gets_no_tooling_that_it_was_not_granted(troupe: Path) -> None:
    assert outcome(troupe, {"act": "ungranted"}).text == ("unknown tooling 'safe'; this agent can use: 'box'")


# -- what it passes --------------------------------------------------------------------------------


def test_ten_megabytes_go_through(troupe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = "y" * 10_000_000
    monkeypatch.setitem(BOX, "tool_calls", [{"name": "echo", "result": answer}])

    assert outcome(troupe, {"act": "large"}).text == "10000011 there, 10000000 back"


def test_half_of_a_surrogate_pair_is_replaced(troupe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON can carry it, and a component's string cannot."""
    monkeypatch.setitem(BOX, "tool_calls", [{"name": "echo", "result": "half: \ud83d, whole: \U0001f600"}])
    plan = [["call_tool", "echo"], ["recv"]]

    told = str(outcome(troupe, {"act": "plan", "plan": plan}).text).splitlines()[1]

    assert json.loads(told)["event"]["value"] == "half: \ufffd, whole: \U0001f600"


def test_arguments_that_are_no_json_are_refused(troupe: Path) -> None:
    assert str(outcome(troupe, {"act": "bad_json"}).text).startswith("arguments are no JSON")


def test_a_guest_leaves_nothing_in_the_binding(tmp_path: Path) -> None:
    path = guest(tmp_path, f"{wat.GET} {wat.FINE}", imports=wat.HANDLES, calls="get drop")

    def held() -> tuple[int, int]:
        gc.collect()
        return len(binding._functions.handles), len(RESOURCE_DTORS.handles)  # pyright: ignore[reportPrivateUsage]: what is kept

    before = held()

    for _ in range(5):
        assert outcome(path).kind == "completed"

    assert held() == before


# -- many ------------------------------------------------------------------------------------------


async def test_a_hundred_guests_run_at_once_each_with_its_own_state(troupe: Path) -> None:
    async def shut_down(core: Core, stop: asyncio.Event) -> None:
        await until(lambda: sum("recv()" in run.waits() for run in core.runs) == 100)
        stop.set()

    calls = [{"name": "echo", "result": "same", "structured_content": {"n": 1}}] * 500
    plan = [*[["call_tool_blocking", "echo", {"a": 1}], ["list_tools"]] * 5, ["recv"]]
    one = {"script": str(troupe), "params": {"act": "plan", "plan": plan}}
    tables = {
        "tooling": {"box": {**BOX, "tool_calls": calls}},
        "agents": {f"ada{number}": one for number in range(100)},
    }

    outcomes = set((await outcomes_when(tables, shut_down)).values())

    assert len(outcomes) == 1
    assert str(outcomes.pop()).count("structured_content") == 5


async def test_two_hosts_in_one_process_run_guests_beside_each_other(troupe: Path) -> None:
    async def run_another(core: Core, stop: asyncio.Event) -> None:
        await until(lambda: core.runs and core.runs[0].waits())
        others.append(await asyncio.to_thread(outcome, troupe, {"act": "say", "text": "here"}))
        stop.set()

    others: list[toolpost.Outcome] = []
    ended = await outcomes_when(config(troupe, {"act": "wait"}), run_another)

    assert others == [toolpost.Outcome("exited", "here")]
    assert ended == {"ada": toolpost.Outcome("exited", "shutdown")}


def test_a_guest_goes_on_while_another_one_is_inside_a_host_call(troupe: Path) -> None:
    """The one beside is let go by the call that the other is inside of, and that one by what it does then."""
    begun = {"kind": "call", "op": "call_tool_blocking", "agent": "inside"}
    gone_on = {"kind": "call", "op": "list_tools", "agent": "beside"}
    tooling = {
        name: {**BOX, "tool_calls": [{"name": "echo", "result": "let go", "after": after}]}
        for name, after in (("inside", gone_on), ("beside", begun))
    }
    plan = [["call_tool_blocking", "echo"], ["list_tools"]]
    agents = {
        name: {"script": str(troupe), "params": {"act": "plan", "plan": plan, "tooling": name}}
        for name in tooling
    }

    ended = toolpost.run({"tooling": tooling, "agents": agents})

    assert {name: "let go" in str(each.text) for name, each in ended.items()} == dict.fromkeys(agents, True)
