"""Names of tools that any model can be given."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from toolpost import Tool, model_names

FIT = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NAMES = st.lists(st.one_of(st.text(min_size=1), st.text(alphabet="ab_.-", min_size=1, max_size=3)))


def tools(*names: str) -> list[Tool]:
    return [Tool(name=name, input_schema={}) for name in names]


def called(*names: str) -> dict[str, str]:
    """What each of these tools is called."""
    return {tool.name: alias for alias, tool in model_names(tools(*names)).items()}


def test_a_name_that_is_fit_stays_as_it_is() -> None:
    fit = ["echo", "Echo", "a_b", "a-b", "-x", "__proto__", "7", "n" * 64]

    assert called(*fit) == {name: name for name in fit}


def test_any_other_name_becomes_a_fit_beginning_with_a_digest_of_the_whole() -> None:
    assert called("a.b", "a/b", "répète😀", "n" * 65) == {
        "a.b": "a_b_2e7336dc",
        "a/b": "a_b_c14cddc0",
        "répète😀": "r_p_te__caee9d48",
        "n" * 65: "n" * 55 + "_1e3fb6d5",
    }


def test_one_tool_is_never_taken_for_another() -> None:
    names = model_names(tools("x.y", "x_y", "x/y"))

    assert {alias: tool.name for alias, tool in names.items()}["x_y"] == "x_y"
    assert {tool.name for tool in names.values()} == {"x.y", "x_y", "x/y"}


def test_what_a_tool_is_called_does_not_change_when_others_come_and_go() -> None:
    alone = called("x.y")["x.y"]

    assert called("a.b", "x_y", "x.y", "x/y")["x.y"] == called("x.y", "x-y")["x.y"] == alone


def test_a_tool_that_is_called_what_another_would_be_keeps_its_name() -> None:
    taken = called("x.y")["x.y"]
    both = called("x.y", taken)

    assert both[taken] == taken
    assert both["x.y"] not in (taken, "x_y")


def test_of_two_tools_with_one_name_the_first_is_there() -> None:
    first, second = (Tool(name="dup", description=each, input_schema={}) for each in ("one", "two"))

    assert model_names([first, second]) == {"dup": first}


def test_the_names_of_another_tooling_are_not_given_again() -> None:
    files = model_names(tools("read", "write"))
    notes = model_names(tools("read", "add"), taken=files)

    assert files.keys() & notes.keys() == set()
    assert {tool.name for tool in notes.values()} == {"read", "add"}
    assert "add" in notes


@given(NAMES, st.sets(st.text(alphabet="ab_", min_size=1, max_size=2)))
def test_every_name_is_fit_and_leads_to_one_tool_whatever_they_are(names: list[str], taken: set[str]) -> None:
    given = model_names(tools(*names), taken=taken)

    assert all(FIT.fullmatch(alias) for alias in given)
    assert {tool.name for tool in given.values()} == set(names)
    assert len(given) == len(set(names))
    assert not given.keys() & taken
