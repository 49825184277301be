"""Text in the columns of a terminal: made harmless, measured, cut.

Nothing that a server or an agent wrote may move a cursor, turn the direction of writing or start a line of
its own, so what is not printable is written as the escape that TOML and JSON have for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import accumulate, takewhile

CUT = "…"
"""Stands where something is left out."""

_WIDENS = "\ufe0f"
"""Asks for the emoji of the character before it, which takes two columns."""


def harmless(text: str) -> str:
    """The text with every character that is not printable as an escape: `\\u000a`."""
    return text if text.isprintable() else "".join(map(_visible, text))


def columns(text: str) -> int:
    """How many columns a terminal takes for a harmless text; never fewer."""
    return len(text) if text.isascii() else sum(_sizes(text))


def fitted(text: str, width: int) -> str:
    """The text, or as much of its beginning as fits into the columns, with a `…`."""
    if columns(text) <= width:
        return text
    if width < 1:
        return ""
    left = width - 1  # beside the sign that something is missing
    if text.isascii():
        return f"{text[:left]}{CUT}"
    ends = zip(text, accumulate(_sizes(text)), strict=True)
    return "".join(character for character, _ in takewhile(lambda each: each[1] <= left, ends)) + CUT


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _sizes(text: str) -> Iterator[int]:
    was_mark = False
    for character in text:
        is_mark = unicodedata.category(character) in ("Mn", "Me") and character != _WIDENS
        if is_mark:
            # one on a character takes no room; a heap of them counts, or a line of them would never end
            yield int(was_mark)
        else:
            yield 2 if unicodedata.east_asian_width(character) in "WF" else 1
        was_mark = is_mark
