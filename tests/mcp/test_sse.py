"""Server-sent events, from bytes in any pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.mcp.sse import Event, EventParser, EventTooLarge


def parsed(*chunks: bytes) -> list[Event]:
    parser = EventParser(1 << 20)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data_of(*chunks: bytes) -> list[bytes]:
    return [event.data for event in parsed(*chunks)]


def test_an_event_is_its_name_its_data_and_its_id() -> None:
    assert parsed(b"event: hello\nid: 7\ndata: {}\n\n") == [Event("hello", b"{}", "7")]


def test_an_event_without_a_name_is_a_message() -> None:
    assert parsed(b"data: {}\n\n") == [Event("message", b"{}", None)]


def test_a_name_holds_for_one_event_and_an_id_for_all_that_follow() -> None:
    first, second = parsed(b"event: ping\nid: 1\ndata: a\n\ndata: b\n\n")

    assert (first.name, second.name) == ("ping", "message")
    assert (first.id, second.id) == ("1", "1")


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_kind_of_line_end_ends_a_line(end: bytes) -> None:
    assert data_of(b"data: a" + end + b"data: b" + end + end) == [b"a\nb"]


def test_a_line_end_that_the_network_cut_in_two_is_one() -> None:
    assert data_of(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [b"a\nb"]


def test_characters_that_end_lines_elsewhere_are_data() -> None:
    text = "a\u2028b\u2029c\u0085d\u000be".encode()

    assert data_of(b"data: " + text + b"\n\n") == [text]


def test_one_space_after_the_colon_is_not_data() -> None:
    assert data_of(b"data:a\n\n", b"data: b\n\n", b"data:  c\n\n") == [b"a", b"b", b" c"]


def test_a_byte_order_mark_at_the_start_is_not_part_of_the_first_field() -> None:
    assert data_of(b"\xef\xbb", b"\xbfdata: a\n\n") == [b"a"]


def test_comments_unknown_fields_and_events_without_data_are_passed_over() -> None:
    assert data_of(b": hello\n\nfoo: bar\n\ndata:\n\ndata\n\nid: 3\n\nevent: x\n\ndata: a\n\n") == [b"a"]


def test_what_the_stream_ends_in_the_middle_of_is_no_event() -> None:
    parser = EventParser(1 << 20)

    assert parser.feed(b"id: 9\ndata: a\n") == []
    assert parser.last_id is None


def test_an_event_without_data_has_an_id_to_go_on_from() -> None:
    parser = EventParser(1 << 20)
    parser.feed(b"id: a1\ndata:\n\n")

    assert parser.last_id == "a1"


def test_an_id_with_a_nul_is_none_and_an_empty_one_takes_the_last_back() -> None:
    parser = EventParser(1 << 20)
    parser.feed(b"id: a\n\nid: b\0\n\n")
    assert parser.last_id == "a"

    parser.feed(b"id:\n\n")
    assert parser.last_id is None


@pytest.mark.parametrize(
    ("value", "expected"), [(b"250", 250), (b"-5", None), (b"abc", None), (b"1.5", None), (b"\xb2", None)]
)
def test_a_retry_is_digits_or_nothing(value: bytes, expected: int | None) -> None:
    parser = EventParser(1 << 20)
    parser.feed(b"retry: " + value + b"\n")

    assert parser.retry_ms == expected


def test_a_retry_of_a_million_digits_is_a_long_time_and_no_trouble() -> None:
    parser = EventParser(2 << 20)
    parser.feed(b"retry: 1" + b"0" * 1_000_000 + b"\n")

    assert parser.retry_ms == 10**17


@given(st.lists(st.integers(min_value=1, max_value=7), min_size=1))
def test_how_the_network_cuts_the_stream_changes_nothing(sizes: list[int]) -> None:
    text = "\ufeff: c\r\nevent: message\rid: 1\r\ndata: ä𝄞\r\ndata: b\n\nretry: 5\ndata:x\r\r\ndata: y\n\n"
    whole = text.encode()
    pieces: list[bytes] = []
    rest = whole
    while rest:
        for size in sizes:
            pieces.append(rest[:size])
            rest = rest[size:]

    assert parsed(*pieces) == parsed(whole)


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 60 + b"\n", b"x" * 60, b":\n" * 30])
def test_an_event_that_is_too_long_is_refused_whatever_makes_it_long(piece: bytes) -> None:
    parser = EventParser(max_bytes=1000)

    with pytest.raises(EventTooLarge):
        [parser.feed(piece) for _ in range(100)]


def test_the_bound_is_one_of_each_event_and_not_of_the_stream() -> None:
    parser = EventParser(max_bytes=1000)

    for _ in range(100):
        assert len(parser.feed(b"data: " + b"x" * 900 + b"\n\n")) == 1
