"""Lines out of bytes, however the bytes come."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.mcp.process import LineBuffer

TEXTS = st.lists(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])).map(str.encode), max_size=8
)


def fed(chunks: Iterable[bytes], limit: int = 1_000_000) -> tuple[list[bytes], bytes]:
    """The lines that come of some chunks, and the rest."""
    buffer = LineBuffer(limit)
    lines = [line for chunk in chunks for line in buffer.feed(chunk)]
    return lines, buffer.rest()


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    points = [0, *sorted(point % (len(data) + 1) for point in at), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(points)]


@given(TEXTS, st.binary(max_size=20).filter(lambda tail: b"\n" not in tail), st.lists(st.integers(0)))
def test_the_lines_do_not_depend_on_how_the_bytes_come(
    lines: list[bytes], tail: bytes, points: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in lines) + tail

    expected = (lines, tail)
    assert fed([data]) == expected
    assert fed(bytes([byte]) for byte in data) == expected
    assert fed(cut(data, points)) == expected


def test_a_multibyte_character_may_come_in_pieces() -> None:
    data = "ä€🙂\n".encode()
    assert fed(bytes([byte]) for byte in data) == ([data[:-1]], b"")


@pytest.mark.parametrize("inside", ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x00"])
def test_only_a_line_feed_ends_a_line(inside: str) -> None:
    line = f"a{inside}b".encode()
    assert fed([line + b"\n"]) == ([line], b"")


@pytest.mark.parametrize("size", [65_536, 1_000_003, 64 * 1024 * 1024])
def test_a_line_of_20_mib_comes_whole(size: int) -> None:
    line = b"x" * (20 * 1024 * 1024)
    data = line + b"\n"
    chunks = (data[start : start + size] for start in range(0, len(data), size))
    assert fed(chunks, limit=64 * 1024 * 1024) == ([line], b"")


def test_a_long_line_is_copied_once_and_not_with_every_piece() -> None:
    """Counted, not timed: what the buffer holds are the pieces themselves."""
    buffer = LineBuffer()
    pieces = [bytes(1024) for _ in range(20_480)]
    for piece in pieces:
        assert buffer.feed(piece) == []

    held = buffer._parts  # pyright: ignore[reportPrivateUsage]: the promise is about what it holds
    assert all(one is other for one, other in zip(held, pieces, strict=True))
    assert buffer.feed(b"\n") == [bytes(20 * 1024 * 1024)]


def test_a_line_past_the_limit_ends_the_taking() -> None:
    buffer = LineBuffer(10)

    assert buffer.feed(b"short\n012345678") == [b"short"]
    assert not buffer.overflowed
    assert buffer.feed(b"9") == []
    assert buffer.overflowed
    assert buffer.feed(b"\nmore\n") == []


def test_the_limit_is_of_one_line_and_not_of_all() -> None:
    buffer = LineBuffer(10)
    for _ in range(100):
        assert buffer.feed(b"0123456789\n") == [b"0123456789"]

    assert not buffer.overflowed
