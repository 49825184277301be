"""How the report of a failed test tells how far a mock came. The text is product."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio

import toolpost
from tests.mock.support import NOTES, ONE, mock
from toolpost.mock.backend import MockBackend
from toolpost.mock.queue import MAX_LEFT, describe, line
from toolpost.mock.steps import place_steps
from toolpost.secret import Secret
from toolpost.tooling.port import Site
from toolpost.trace.events import Call, Inbound
from toolpost.trace.log import Trace

UUID = "0b7e9a52-8c1d-4f6e-9d3a-5f2b6c7d8e9f"


class Run:
    """A mock with a trace that the test writes, and no house around them."""

    def __init__(self, **keys: Any) -> None:
        self.trace = Trace()
        params: Any = toolpost.load_config(mock(**keys)).tooling["it"].params
        self.backend = MockBackend(params, _site(self.trace))

    def report(self) -> str:
        return "\n".join(describe(self.backend, self.trace, "it")) + "\n"


def _site(trace: Trace) -> Site:
    def nothing(*_: object) -> None:
        raise AssertionError("a mock starts no task and has no connection")

    return Site(name="it", start_task=nothing, on_state=nothing, tunables=None, trace=trace)


def lines(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


async def reported(config: Mapping[str, Any], *does: tuple[str, str]) -> str:
    """The report after a program has done this: operations of the handle, each with its argument."""
    async with toolpost.open_host(config) as host:
        it = host.tooling.get("it")
        backend: Any = vars(host.mock("it"))["_backend"]
        for operation, argument in does:
            with suppress(toolpost.ToolpostError):
                await getattr(it, operation)(*filter(None, [argument]))
    return "\n".join(describe(backend, host.trace, "it")) + "\n"


async def test_the_report_of_a_run_tells_what_was_taken_what_is_left_and_what_waits() -> None:
    config = mock(
        tool_calls=[
            {"name": "echo", "result": "hi"},
            {"name": "add", "result": "3", "after": {"kind": "inbound", "event": "resource-updated"}},
            {"name": "add", "arguments": {"a": 1}, "result": "5"},
            {"name": "echo", "error": "out of order"},
        ],
        initial_resource_list=[NOTES],
        initial_resource_contents={ONE: "v1"},
        resource_content_updates=[
            {
                "uri": ONE,
                "content": "v2",
                "after": {"kind": "call", "op": "read_resource", "detail": {"uri": "drafts"}},
            }
        ],
    )

    told = await reported(
        config,
        ("subscribe_resource", ONE),
        ("call_tool_blocking", "echo"),
        ("read_resource", ONE),
        ("call_tool", "add"),
    )

    assert told == lines("""
        mock 'it': 2 of 4 tool_calls taken
          taken    tool_calls[0]                main: echo gave "hi"
          next     tool_calls[2]                { name = "add", arguments = { a = 1 }, result = "5" }
          left     tool_calls[3]                { name = "echo", error = "out of order" }
          waiting  tool_calls[1]                { name = "add", result = "3" }
                   after                        { kind = "inbound", event = "resource-updated" }
                   nearest                      none: the trace has no inbound record
          waiting  resource_content_updates[0]  { uri = "mem://notes", content = "v2" }
                   after                        { kind = "call", op = "read_resource", detail = { uri = "drafts" } }
                   nearest                      record 3: detail.uri: wanted a text with "drafts", found "mem://notes"
    """)  # noqa: E501  as it is shown


async def test_a_step_that_is_cancelled_while_it_waits_is_told_of_all_the_same() -> None:
    after = {"kind": "call", "op": "cancel"}
    config = mock(tool_calls=[{"name": "add", "result": "3", "after": after}])

    told = await reported(config, ("call_tool", "add"), ("list_tools", ""))

    assert told == lines("""
        mock 'it': 1 of 1 tool_calls taken
          waiting  tool_calls[0]  { name = "add", result = "3" }
                   after          { kind = "call", op = "cancel" }
                   nearest        record 0: op: wanted 'cancel', found 'call_tool'
    """)


async def test_what_the_mock_answered_is_told_also_where_no_trace_has_it() -> None:
    steps = [
        {"name": "echo", "result": "hi"},
        {"name": "echo", "result": "ho"},
        {"name": "add", "error": "no"},
    ]
    config = mock(tool_calls=steps)
    calls = [("call_tool_blocking", name) for name in ("echo", "add", "add", "echo")]

    assert await reported(config, *calls) == lines("""
        mock 'it': 3 of 3 tool_calls taken
          taken   tool_calls[0]  main: echo gave "hi"
          taken   tool_calls[1]  main: add failed: step 2 of 3 expects 'echo', but 'add' was called
          taken   tool_calls[2]  main: add failed: no (code -32000)
          beyond                 main: echo failed: the script has ended; all 3 steps of tool_calls are taken
    """)
    assert await reported(mock()) == "mock 'it': it has no tool_calls\n"


def test_an_update_that_nobody_subscribed_to_is_left() -> None:
    run = Run(resource_list_updates=[{"resources": [NOTES]}, {"error": "gone"}])

    assert run.report() == lines("""
        mock 'it': it has no tool_calls
          left  resource_list_updates[0]  { resources = [{ uri = "mem://notes", name = "notes", mime_type = "text/plain" }] }
          left  resource_list_updates[1]  { error = "gone" }
    """)  # noqa: E501  as it is shown


def test_a_long_script_is_cut_and_says_how_much_more_there_is() -> None:
    run = Run(tool_calls=[{"name": f"t{number}", "result": ""} for number in range(100)])

    shown = run.report().splitlines()

    assert len(shown) == 1 + MAX_LEFT + 1
    assert shown[1] == '  next  tool_calls[0]  { name = "t0", result = "" }'
    assert shown[-1] == "        … and 92 more"


def test_a_single_step_can_be_shown_too() -> None:
    run = Run(resource_content_updates=[{"uri": ONE, "content": "v" * 1000}])

    assert [line(placed) for placed in run.backend.unused] == [
        f'resource_content_updates[0] {{ uri = "mem://notes", content = "{"v" * 47}…" }}'
    ]


def test_long_texts_are_cut_so_that_every_step_is_one_line() -> None:
    words = "many words\n" * 100_000
    run = Run(tool_calls=[{"name": "a", "result": words, "is_error": True}])

    assert run.report() == lines(r"""
        mock 'it': 0 of 1 tool_calls taken
          next  tool_calls[0]  { name = "a", result = "many words\nmany words\nmany words\nmany words\nman…", is_error = true }
    """)  # noqa: E501  as it is shown


async def test_ids_are_hidden_since_they_are_new_in_each_run() -> None:
    after = {"kind": "call", "op": "cancel", "detail": {"uuid": "^0000"}}
    config = mock(tool_calls=[{"name": "a", "result": UUID, "after": after}, {"name": "b", "result": UUID}])

    told = await reported(config, ("call_tool", "a"), ("cancel", UUID))

    assert told == lines("""
        mock 'it': 1 of 2 tool_calls taken
          next     tool_calls[1]  { name = "b", result = "<uuid>" }
          waiting  tool_calls[0]  { name = "a", result = "<uuid>" }
                   after          { kind = "call", op = "cancel", detail = { uuid = "^0000" } }
                   nearest        record 2: detail.uuid: wanted a text with "^0000", found "<uuid>"
    """)


async def test_the_nearest_miss_is_the_record_that_met_most_of_the_gate() -> None:
    detail = {"name": "^add$", "arguments": {"a": 1, "b": 2}}
    after = {"kind": "call", "op": "call_tool", "agent": "ann", "detail": detail}
    run = Run(tool_calls=[{"name": "a", "result": "", "after": after}])
    with anyio.CancelScope() as scope:
        scope.cancel()  # it comes as far as its gate
        await run.backend.call_tool(toolpost.ToolCall(name="a", arguments={}, text="{}"))
    for agent, b in [("bob", 2), ("ann", 3)]:
        detail = {"tooling": "it", "name": "add", "arguments": {"a": 1, "b": b}}
        run.trace.append(Inbound(agent=agent, id=UUID, event="error", payload="no"))
        run.trace.append(Call(agent=agent, op="call_tool", detail=detail))

    assert run.report().splitlines()[-1].split(maxsplit=1) == [
        "nearest",
        "record 3: detail.arguments.b: wanted 2, found 3",
    ]


def test_a_secret_in_a_script_is_masked_before_anything_is_cut() -> None:
    text = "correct-horse-battery-staple-is-a-long-passphrase-for-a-test"
    secret = Secret(text, allow_unlocked=True)
    run = Run(tool_calls=[{"name": "a", "result": f"it is {text}"}])

    told = run.report()

    assert "correct-horse" not in told
    assert "it is" in told
    del secret


def test_steps_are_placed_as_errors_of_the_config_name_them() -> None:
    params: Any = (
        toolpost.load_config(mock(tool_calls=[{"name": "a", "pending": True}] * 2)).tooling["it"].params
    )

    assert [placed.place for placed in place_steps(params)] == ["tool_calls[0]", "tool_calls[1]"]
