"""Text that a terminal shows: harmless, measured, cut."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.trace.cells import columns, fitted, harmless

ANY_TEXT = st.text(st.characters(), max_size=40)  # half of a surrogate pair too


def shown(text: str) -> int:
    """How many columns a terminal takes, where it takes none for a mark."""
    plain = [each for each in text if unicodedata.category(each) not in ("Mn", "Me")]
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in plain)


@given(ANY_TEXT)
def test_harmless_text_has_only_what_is_printable_and_keeps_that(text: str) -> None:
    made = harmless(text)

    assert made.isprintable()
    assert harmless(made) == made
    assert text.isprintable() is (made == text)


@given(ANY_TEXT.map(harmless), st.integers(0, 50))
def test_what_is_fitted_fits_and_is_a_beginning(text: str, width: int) -> None:
    made = fitted(text, width)

    assert shown(made) <= columns(made) <= width
    assert made == text or (width == 0 and made == "") or text.startswith(made.removesuffix("…"))
    assert (made == text) is (columns(text) <= width)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("two\nlines", "two\\u000alines"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("\u202ereversed", "\\u202ereversed"),
        ("half \ud83d", "half \\ud83d"),
        ("\U000e0041", "\\U000e0041"),
        ("漢字 é ☂\ufe0f 👋", "漢字 é ☂\ufe0f 👋"),
    ],
)
def test_what_would_move_a_cursor_is_an_escape(text: str, made: str) -> None:
    assert harmless(text) == made


@pytest.mark.parametrize(
    ("text", "taken"),
    [("plain", 5), ("漢字", 4), ("e\u0301a", 2), ("👋", 2), ("☂\ufe0f", 2), ("a" + "\u0301" * 10, 10)],
    ids=["plain", "wide", "a mark", "an emoji", "an emoji by request", "a heap of marks"],
)
def test_columns_are_what_a_terminal_takes_at_most(text: str, taken: int) -> None:
    assert columns(text) == taken


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert fitted("漢字漢字", 4) == "漢…"
