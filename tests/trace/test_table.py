"""The table of a trace: what a person sees, and that no text can spoil it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.expect.pattern import show
from toolpost.trace.cells import columns
from toolpost.trace.events import (
    EVENTS,
    OPS,
    AgentOutcome,
    Call,
    Closed,
    Inbound,
    Opened,
    State,
    TraceEvent,
)
from toolpost.trace.table import table

NOTES = "mem://notes"


def a_run() -> list[TraceEvent]:
    """A run with everything that a trace can hold. Its UUIDs are others each time."""
    follows, adds = str(uuid.uuid4()), str(uuid.uuid4())
    result = {
        "name": "add",
        "arguments": '{"text":"milk"}',
        "value": f"kept as {adds}",
        "content": [{"type": "text", "text": f"kept as {adds}"}],
        "is_error": False,
    }
    content = {"uri": NOTES, "mime_type": "text/plain", "content": "milk\neggs", "encoding": "text"}
    add = {"tooling": "notes", "name": "add", "arguments": {"text": "milk"}}
    return [
        State(tooling="notes", state="dialing"),
        State(tooling="notes", state="ready"),
        Call(agent="ada", op="subscribe_resource", detail={"tooling": "notes", "uri": NOTES}),
        Opened(agent="ada", id=follows, source="subscribe_resource"),
        Call(agent="writer", op="call_tool", detail=add),
        Opened(agent="writer", id=adds, source="call_tool"),
        Closed(agent="writer", id=adds, reason="ended"),
        Inbound(agent="writer", id=adds, event="tool-result", payload=result),
        Inbound(agent="ada", id=follows, event="resource-updated", payload=content),
        Call(agent="ada", op="unsubscribe_resource", detail={"tooling": "notes", "uuid": follows}),
        Closed(agent="ada", id=follows, reason="cancelled"),
        Inbound(agent="ada", id="", event="shutdown", payload={}),
        AgentOutcome(agent="ada", outcome="completed"),
        AgentOutcome(agent="writer", outcome={"failed": "ValueError: no\nluck"}),
    ]


A_RUN = """\
at  agent    kind     id  what                  detail
 0  [notes]  state        dialing
 1  [notes]  state        ready
 2  ada      call         subscribe_resource    { tooling = "notes", uri = "mem://notes" }
 3  ada      opened   #1  subscribe_resource
 4  writer   call         call_tool             { tooling = "notes", name = "add", arguments = { text = "…
 5  writer   opened   #2  call_tool
 6  writer   closed   #2  ended
 7  writer   inbound  #2  tool-result           { name = "add", value = "kept as #2" }
 8  ada      inbound  #1  resource-updated      { uri = "mem://notes", content = "milk\\neggs", mime_type …
 9  ada      call     #1  unsubscribe_resource  { tooling = "notes", uuid = "#1" }
10  ada      closed   #1  cancelled
11  ada      inbound      shutdown
12  ada      outcome      completed
13  writer   outcome      failed                "ValueError: no\\nluck"
"""


def called(**arguments: Any) -> Call:
    detail = {"tooling": "memo", "name": "echo", "arguments": arguments}
    return Call(agent="ada", op="call_tool", detail=detail)


def inbound(event: str, payload: Any) -> Inbound:
    return Inbound(agent="ada", id="", event=event, payload=payload)


def details(*trace: TraceEvent, width: int = 160) -> list[str]:
    """What stands in the last column."""
    header, *lines = table(trace, width=width)
    return [line[header.index("detail") :] for line in lines]


def test_a_run_at_a_glance() -> None:
    assert "".join(f"{line}\n" for line in table(a_run(), width=106)) == A_RUN


def test_two_runs_of_the_same_script_give_the_same_table() -> None:
    assert a_run() != a_run()
    assert table(a_run()) == table(a_run())


def test_a_trace_without_records_is_a_header() -> None:
    assert table([]) == ["at  agent  kind  id  what  detail"]


# -- places ----------------------------------------------------------------------------------------


def test_some_places_are_shown_with_a_mark_where_others_are_left_out() -> None:
    assert table(a_run(), [7, 2, 3, 3, 10]) == [
        "at  agent   kind     id  what                detail",
        ' 2  ada     call         subscribe_resource  { tooling = "notes", uri = "mem://notes" }',
        " 3  ada     opened   #1  subscribe_resource",
        " …",
        ' 7  writer  inbound  #2  tool-result         { name = "add", value = "kept as #2" }',
        " …",
        "10  ada     closed   #1  cancelled",
    ]


def test_gaps_can_go_unmarked() -> None:
    lines = table(a_run(), [3, 7], shows_gaps=False)

    assert [line.split()[:2] for line in lines[1:]] == [["3", "ada"], ["7", "writer"]]


def test_a_window_may_reach_over_the_ends_of_the_trace() -> None:
    trace = a_run()

    assert table(trace, range(-3, 2)) == table(trace, [0, 1])
    assert table(trace, range(12, 20)) == table(trace, [12, 13])
    assert table(trace, range(len(trace))) == table(trace)


# -- details ---------------------------------------------------------------------------------------


def test_a_detail_reads_as_the_pattern_that_would_expect_it() -> None:
    call = called(text='say "hi"', n=[1, None, True])

    assert details(call) == [show(call.detail)]


RESULTS: list[tuple[dict[str, Any], str]] = [
    ({"name": "a", "value": "hi", "content": [{}]}, '{ name = "a", value = "hi" }'),
    ({"name": "a", "value": "no", "is_error": True}, '{ name = "a", is_error = true, value = "no" }'),
    (
        {"name": "a", "value": "", "content": [{"type": "image"}]},
        '{ name = "a", value = "", content = [{ type = "image" }] }',
    ),
    (
        {"name": "a", "value": "1", "content": [{}], "structured_content": {"n": 1}},
        '{ name = "a", value = "1", structured_content = { n = 1 } }',
    ),
]


@pytest.mark.parametrize(
    ("payload", "shown"),
    RESULTS,
    ids=["text", "a failure", "an image", "structured"],
)
def test_of_a_result_what_tells_most_comes_first(payload: Any, shown: str) -> None:
    assert details(inbound("tool-result", payload | {"arguments": "{}"})) == [shown]


def test_an_error_is_its_text_and_a_list_its_items() -> None:
    resources = [{"uri": NOTES, "name": "notes"}]

    assert details(inbound("error", "no luck"), inbound("resource-list-updated", resources)) == [
        '"no luck"',
        '[{ uri = "mem://notes", name = "notes" }]',
    ]


def test_binary_is_told_apart_from_text() -> None:
    content = {"uri": NOTES, "content": "AAEC", "encoding": "base64"}

    (shown,) = details(inbound("resource-updated", content))
    assert shown == '{ uri = "mem://notes", content = "AAEC", encoding = "base64" }'


def test_a_uuid_that_was_never_opened_has_no_number() -> None:
    strange = str(uuid.uuid4())
    cancel = Call(agent="ada", op="cancel", detail={"tooling": "memo", "uuid": strange})
    lines = table([cancel, Closed(agent="ada", id=strange, reason="ended")])

    assert [line.split()[3] for line in lines[1:]] == ["#?", "#?"]
    assert strange not in "".join(lines)


def test_uuids_of_servers_stay_as_they_are() -> None:
    theirs = str(uuid.uuid4())

    assert theirs in details(inbound("error", theirs))[0]


def test_uuids_in_texts_of_any_length_become_numbers() -> None:
    ids = [str(uuid.uuid4()) for _ in range(300)]
    trace: list[TraceEvent] = [Opened(agent="ada", id=each, source="call_tool") for each in ids]
    trace.append(AgentOutcome(agent="ada", outcome={"exited": " ".join(ids)}))

    *_, line = table(trace, width=2000)
    assert line.endswith(f'"{" ".join(f"#{number}" for number in range(1, 301))}"')


def test_in_a_narrow_table_details_follow_their_names() -> None:
    assert table(a_run(), range(6, 9), width=60) == [
        "at  agent   kind     id  what  detail",
        " 6  writer  closed   #2  ended",
        ' 7  writer  inbound  #2  tool-result  { name = "add", value…',
        ' 8  ada     inbound  #1  resource-updated  { uri = "mem://n…',
    ]


# -- odd texts -------------------------------------------------------------------------------------


def test_long_names_are_cut_and_wide_ones_keep_the_columns() -> None:
    lines = table(
        [
            AgentOutcome(agent="a" * 100, outcome={"exited": "1"}),
            AgentOutcome(agent="漢字", outcome={"exited": "2"}),
            AgentOutcome(agent="e\u0301", outcome={"exited": "3"}),
            AgentOutcome(agent="two\nlines", outcome={"exited": "4"}),
        ]
    )

    assert lines == [
        "at  agent                     kind     id  what    detail",
        f' 0  {"a" * 23}…  outcome      exited  "1"',
        ' 1  漢字                      outcome      exited  "2"',
        ' 2  e\u0301                         outcome      exited  "3"',
        ' 3  two\\u000alines            outcome      exited  "4"',
    ]


@pytest.mark.parametrize(
    "payload",
    [
        "x" * 1_000_000,
        ["x"] * 1_000_000,
        [""] * 1_000_000,
        [None] * 1_000_000,
        {str(number): number for number in range(100_000)},
        "\x00" * 1_000_000,
        "a" + "\u0301" * 1_000_000,
        [[["x" * 1_000_000] * 1000] * 1000] * 1000,
    ],
    ids=["text", "texts", "empty texts", "nulls", "object", "control characters", "marks", "everything"],
)
def test_what_is_long_is_cut(payload: Any) -> None:
    (line,) = table([inbound("error", payload)])[1:]

    assert line.endswith("…")
    assert 158 <= columns(line) <= 160


def test_what_is_deep_is_cut() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    (shown,) = details(inbound("error", deep), width=1000)
    assert shown == f'{"[" * 100}"…"{"]" * 100}'


@pytest.mark.parametrize("outcome", [{}, {"a": 1, "b": 2}, 3, None])
def test_an_outcome_of_another_kind_is_shown_as_it_is(outcome: Any) -> None:
    assert table([AgentOutcome(agent="ada", outcome=outcome)])[1].startswith(" 0  ada    outcome")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=20,
)
TEXT = st.text(st.characters(), max_size=30)
IDS = st.sampled_from(["", *(str(uuid.UUID(int=number)) for number in range(4))])
RECORDS = st.one_of(
    st.builds(Call, agent=TEXT, op=st.sampled_from(OPS), detail=st.dictionaries(TEXT, JSON)),
    st.builds(Call, agent=TEXT, op=TEXT, detail=st.fixed_dictionaries({"tooling": TEXT, "uuid": IDS})),
    st.builds(Opened, agent=TEXT, id=IDS, source=st.just("call_tool")),
    st.builds(Closed, agent=TEXT, id=IDS, reason=st.just("ended")),
    st.builds(Inbound, agent=TEXT, id=IDS, event=st.sampled_from(EVENTS), payload=JSON),
    st.builds(State, tooling=TEXT, state=TEXT),
    st.builds(AgentOutcome, agent=TEXT, outcome=JSON),
)


@given(st.lists(RECORDS), st.integers(1, 200))
def test_every_line_fits_is_one_line_and_harmless(trace: list[TraceEvent], width: int) -> None:
    lines = table(trace, width=width)

    assert len(lines) == 1 + len(trace)
    for line in lines:
        assert columns(line) <= width
        assert line.isprintable()
        assert line == line.rstrip()


@given(st.lists(RECORDS), st.lists(st.integers(-5, 30)))
def test_a_record_has_the_same_number_and_text_in_every_window(
    trace: list[TraceEvent], places: list[int]
) -> None:
    whole = [line.split() for line in table(trace, width=10_000)[1:]]
    shown = [line.split() for line in table(trace, places, width=10_000)[1:]]

    chosen = sorted({place for place in places if 0 <= place < len(trace)})
    assert [cells for cells in shown if cells != ["…"]] == [whole[place] for place in chosen]
