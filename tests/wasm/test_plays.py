"""A guest does what the same agent does in Python, and leaves the same trace, seed by seed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import toolpost
from tests.wasm.conftest import AGENTS, EXAMPLES
from toolpost.testing.case import load_case
from toolpost.testing.run import run_case

SEEDS = range(4)

BOX: dict[str, Any] = {
    "kind": "mock",
    "tools": [
        {"name": "echo", "description": "says it again", "input_schema": {"type": "object"}},
        {"name": "bare", "input_schema": {}, "output_schema": {"type": "object"}},
    ],
    "tool_calls": [
        {"name": "echo", "result": "one"},
        {"name": "echo", "result": "två", "structured_content": {"deep": [1, None, {"x": "\ud83d\ude00"}]}},
        {"name": "echo", "result": "three", "is_error": True},
        {"name": "echo", "error": "refused"},
        {"name": "echo", "pending": True},
        {"name": "echo", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
    ],
    "initial_resource_list": [{"uri": "m://a", "name": "a", "description": "d", "mime_type": "text/plain"}],
    "initial_resource_contents": {"m://a": "first"},
    "resource_list_updates": [{"resources": [{"uri": "m://a", "name": "a"}, {"uri": "m://b", "name": "b"}]}],
    "resource_content_updates": [
        {"uri": "m://a", "content": "second"},
        {"uri": "m://a", "content": "AAECAw==", "encoding": "base64"},
    ],
}

PLANS: dict[str, list[list[Any]]] = {
    "values": [
        ["kind"],
        ["list_tools"],
        ["list_resources"],
        ["read_resource", "m://a"],
        ["call_tool_blocking", "echo", {"a": 1, "ü": [True, None, 1.5]}],
        ["call_tool_blocking", "echo", '{ "a" : 1 }'],
        ["call_tool_blocking", "echo"],
        ["call_tool_blocking", "echo"],
    ],
    "queue": [
        ["call_tool", "echo", {"n": 1}],
        ["call_tool", "echo"],
        ["is_open", 0],
        ["recv"],
        ["is_open", 0],
        ["recv", 5],
        ["call_tool", "echo"],
        ["recv"],
        ["call_tool", "echo"],
        ["recv"],
        ["call_tool", "echo"],
        ["cancel", 4],
        ["is_open", 4],
        ["call_tool", "echo"],
        ["recv"],
        ["try_recv"],
    ],
    "subscriptions": [
        ["subscribe_resource", "m://a"],
        ["subscribe_resource_list"],
        ["recv"],
        ["recv"],
        ["recv"],
        ["unsubscribe_resource", 0],
        ["unsubscribe_resource_list", 1],
        ["is_open", 0],
        ["recv", 2],
        ["subscribe_resource", "m://none"],
        ["recv", 2],
    ],
    "bounds": [
        *[["call_tool", "echo"]] * 9,
        ["recv"],
        ["call_tool", "echo"],
        ["call_tool", "echo"],
        ["cancel", 3],
        ["call_tool", "echo"],
        ["call_tool_blocking", "echo"],
    ],
    "cancelling": [
        ["call_tool", "echo"],
        ["call_tool", "echo"],
        ["sleep", 1],
        ["cancel", 0],
        ["is_open", 0],
        ["recv"],
        ["cancel", 0],
        ["cancel", 1],
        ["cancel", ""],
        ["cancel", "unknown"],
        ["is_open", "unknown"],
        ["unsubscribe_resource", "unknown"],
        ["unsubscribe_resource_list", ""],
        ["subscribe_resource", "m://a"],
        ["sleep", 1],
        ["cancel", 2],
        ["try_recv"],
    ],
    "arguments": [
        ["call_tool_blocking", "echo", ' {"message" : "\\u00fc\\ud83d\\ude00",\n "n": 1.50, "n": 1E2} '],
        ["call_tool_blocking", "echo", {"message": "ü", "list": [1, None, True], "deep": {"x": {}}}],
        ["call_tool", "echo", {"many": [[]] * 100}],
        ["recv"],
        ["call_tool", "echo", "{}", {"timeout": 0.005}],
        ["recv"],
        ["call_tool_blocking", "echo", {}, {"timeout": 2.5}],
        *[["call_tool", "echo", {}, {"timeout": each}] for each in (0, -1, float("nan"), "soon", True)],
    ],
    "time": [
        ["now"],
        ["sleep", 60],
        ["now"],
        ["recv", 0],
        ["recv", 3.5],
        ["now"],
        ["try_recv"],
        ["sleep", -1],
    ],
    "misuse": [
        ["call_tool", "echo", "["],
        ["call_tool", "echo", "[]"],
        ["call_tool", "", {}],
        ["call_tool_blocking", 5],
        ["call_tool", "echo", 7],
        ["recv", -1.5],
        ["recv", "soon"],
        ["sleep", "long"],
        ["log", "x", "loud"],
        ["read_resource", ""],
        ["read_resource", "m://none"],
        ["call_tool_blocking", "unscripted"],
    ],
}


def played(script: Path, params: dict[str, Any], seed: int) -> tuple[list[str], toolpost.Outcome]:
    """The trace and the outcome of one agent on the box, in a simulated run."""
    from toolpost.host.host import new_runner, run_async

    config = {
        "tooling": {"box": BOX},
        "tunables": {"open_calls_bound": 8},
        "agents": {"ada": {"script": str(script), "params": params}},
    }
    with new_runner(simulate=True, seed=seed) as runner:
        report = runner.run(run_async(config))
    return list(report.trace.json_lines()), report.outcomes["ada"]


@pytest.mark.parametrize("name", PLANS)
def test_a_guest_makes_the_calls_of_the_interface_as_an_agent_in_python_does(name: str, troupe: Path) -> None:
    params = {"act": "plan", "plan": PLANS[name]}

    for seed in SEEDS:
        in_python = played(AGENTS / "acts.py", params, seed)

        assert played(troupe, params, seed) == in_python
        assert in_python[1].kind == "exited"


def test_a_guest_is_refused_the_arguments_that_an_agent_in_python_is_refused(troupe: Path) -> None:
    in_python = played(AGENTS / "acts.py", {"act": "odd_arguments"}, 0)

    assert played(troupe, {"act": "odd_arguments"}, 0) == in_python
    assert set(str(in_python[1].text).split(", ")) == {"UsageError"}


@pytest.mark.parametrize(
    ("params", "outcome"),
    [
        ({"act": "say", "text": "well: ü"}, toolpost.Outcome("exited", "well: ü")),
        ({"act": "say", "text": None}, toolpost.Outcome("completed")),
        ({"act": "fail"}, toolpost.Outcome("failed", "ValueError: ada cannot go on")),
        (
            {"act": "wrong_type"},
            toolpost.Outcome("failed", "it returned 5; an agent returns None or a string"),
        ),
        ({"act": "leave"}, toolpost.Outcome("failed", "SystemExit: 3")),
    ],
)
def test_a_guest_ends_as_an_agent_in_python_does(
    params: dict[str, Any], outcome: toolpost.Outcome, troupe: Path
) -> None:
    assert played(AGENTS / "acts.py", params, 0)[1] == outcome
    assert played(troupe, params, 0)[1] == outcome


@pytest.fixture
def guests(troupe: Path, tmp_path: Path) -> Path:
    """The folder of examples, with guests as all its agents."""

    def as_guest(found: re.Match[str]) -> str:
        return f'script = "{troupe}"\nparams = {{ part = "{found[1]}", {found[2] or ""} }}'

    scripted = re.compile(r'^script = "(\w+)\.py"$(?:\nparams = \{(.*)\}$)?', re.MULTILINE)
    for each in EXAMPLES.glob("*.toml"):
        (tmp_path / each.name).write_text(scripted.sub(as_guest, each.read_text()))
    return tmp_path


@pytest.mark.parametrize("name", sorted(each.name for each in EXAMPLES.glob("*.test.toml")))
def test_an_example_passes_with_guests_under_each_seed_and_leaves_the_trace_of_agents_in_python(
    name: str, guests: Path
) -> None:
    in_python, as_guests = load_case(EXAMPLES / name), load_case(guests / name)

    assert all(each.script and each.script.suffix == ".wasm" for each in as_guests.config.agents.values())
    for seed in SEEDS:
        result, trace = run_case(as_guests, seed=seed)
        assert (result.status, result.report) == ("passed", "")
        assert list(trace.json_lines()) == list(run_case(in_python, seed=seed)[1].json_lines())
