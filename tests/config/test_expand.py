"""`${VAR}` in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.config.expand import expand

ENVIRON = {"HOME": "/home/me", "EMPTY": "", "_x1": "y", "TRICKY": "${HOME}"}


@pytest.mark.parametrize(
    ("text", "expanded", "variables"),
    [
        ("", "", []),
        ("plain", "plain", []),
        ("${HOME}", "/home/me", ["HOME"]),
        ("<${HOME}/${_x1}>", "</home/me/y>", ["HOME", "_x1"]),
        ("${EMPTY}", "", ["EMPTY"]),
        ("${HOME:-other}", "/home/me", ["HOME"]),
        ("${NONE:-other}", "other", []),
        ("${EMPTY:-other}", "other", []),
        ("${NONE:-}", "", []),
        ("${NONE:-a:-b $HOME\n}", "a:-b $HOME\n", []),
        ("$${HOME}", "${HOME}", []),
        ("$$${HOME}", "$${HOME}", []),
        ("$HOME $ $$ {HOME} }", "$HOME $ $$ {HOME} }", []),
        ("${TRICKY}", "${HOME}", ["TRICKY"]),
    ],
)
def test_what_it_gives(text: str, expanded: str, variables: list[str]) -> None:
    done = expand(text, ENVIRON)

    assert (done.text, done.variables, done.problems) == (expanded, variables, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("${NONE}", "the environment variable NONE is not set; set it, or write ${NONE:-default}"),
        ("${}", "expected ${VAR} or ${VAR:-default}; a literal `${` is written `$${`"),
        ("${1A}", "expected ${VAR} or ${VAR:-default}; a literal `${` is written `$${`"),
        ("${HOME:?no}", "expected ${VAR} or ${VAR:-default}; a literal `${` is written `$${`"),
        ("${ HOME }", "expected ${VAR} or ${VAR:-default}; a literal `${` is written `$${`"),
        ("a ${HOME", "a `${` without its `}`; a literal one is written `$${`"),
    ],
)
def test_what_it_refuses(text: str, problem: str) -> None:
    assert expand(text, ENVIRON).problems == [problem]


@given(st.text())
def test_a_literal_text_can_always_be_written(text: str) -> None:
    if text.endswith("$"):
        text += "."

    assert expand(text.replace("${", "$${"), {}).text == text
