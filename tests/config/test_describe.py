"""Types and values in words."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest
from msgspec import Meta

from toolpost.config.describe import expected, found
from toolpost.secret import Secret


class Table(msgspec.Struct):
    key: str


HINTS: list[tuple[Any, str]] = [
    (str, "a string"),
    (Secret | None, "a string"),
    (Annotated[str, Meta(pattern="^a", min_length=2)], "a string of length 2 or more and that matches '^a'"),
    (Optional[Annotated[int, Meta(ge=1)]], "an integer of at least 1"),  # noqa: UP045  # pyright knows no other
    (Annotated[float, Meta(gt=0, lt=1)], "a number above 0 and below 1"),
    (Literal["a", 1], '"a" or 1'),
    (str | list[str], "a string or a list of strings"),
    (list[Table], "a list of tables"),
    (list[Annotated[int, Meta(ge=1)]], "a list of integers"),
    (list[str | int], "a list of values, each a string or an integer"),
    (list[datetime.date], "a list of values"),
    (list[Any], "a list of values"),
    (dict[str, Secret], "a table of strings"),
    (dict[str, Any], "a table"),
    (dict, "a table"),
    (Table, "a table"),
    (Any, "a value"),
    (datetime.date, "a date"),
]


@pytest.mark.parametrize(("hint", "words"), HINTS, ids=str)
def test_what_is_expected(hint: Any, words: str) -> None:
    assert expected(hint) == words


@pytest.mark.parametrize(
    ("value", "shown", "hidden"),
    [
        (True, "the boolean true", "a boolean"),
        (5, "the integer 5", "an integer"),
        (-(10**100), "a huge integer", "an integer"),
        (0.5, "the number 0.5", "a number"),
        ("it's", 'the string "it\'s"', "a string"),
        ("x" * 61, "a string of 61 characters", "a string"),
        (datetime.date(2000, 1, 1), "a date or time", "a date or time"),
        (datetime.time(1), "a date or time", "a date or time"),
        ({"a": 1}, "a table", "a table"),
        (["a"], "a list", "a list"),
        (None, "nothing", "nothing"),
        (b"abc", "a bytes", "a bytes"),
        (Secret("abc"), "a Secret", "a Secret"),
    ],
)
def test_what_was_found(value: Any, shown: str, hidden: str) -> None:
    assert found(value, show=True) == shown
    assert found(value, show=False) == hidden
