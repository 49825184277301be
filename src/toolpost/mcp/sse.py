"""Server-sent events, read from bytes as they come. Pure: no I/O, no event loop, no protocol above it.

The format is WHATWG HTML, "Server-sent events", 9.2.6: lines end with LF, CR or CRLF and nothing else, a
blank line ends an event, and what the stream ends in the middle of never was one. Every byte is looked at
once, however the network cuts the stream.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """An event is longer than it may be; the stream cannot be read on."""


class Event(NamedTuple):
    """One event that has data."""

    name: str
    data: bytes
    id: str | None
    """What `Last-Event-ID` must say to go on after it; None where it cannot be said."""


class EventParser:
    """What the bytes of one stream say."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._is_first_line = True
        self._after_cr = False
        self._line: list[bytes] = []
        """The pieces of a line whose end has not come."""
        self._size = 0
        """Of what has come of the current event."""
        self._name = ""
        self._data = bytearray()
        self._id: str | None = None
        self.last_id: str | None = None
        """The id of the last event that ended, with data or without."""
        self.retry_ms: int | None = None
        """How long the server wants to be left alone before the stream is opened again."""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that end in these bytes.

        Raises:
            EventTooLarge: One is too long.
        """
        events: list[Event] = []
        if not chunk:
            return events
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF that the network cut in two
        # Most streams know LF only, and the search for one byte is ten times as fast as a pattern.
        *ended, rest = _LINE_END.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            line = self._line[0] if len(self._line) == 1 else b"".join(self._line)
            self._line.clear()
            if (event := self._take(line)) is not None:
                events.append(event)
        self._after_cr = chunk.endswith(b"\r")
        if rest:
            self._add(rest)
        return events

    def _add(self, piece: bytes) -> None:
        self._size += len(piece) + 1  # its end, or as good as that
        if self._size > self._max_bytes:
            raise EventTooLarge
        self._line.append(piece)

    def _take(self, line: bytes) -> Event | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        field, _, value = line.partition(b":")
        self._take_field(field, value.removeprefix(b" "))
        return None

    def _take_field(self, field: bytes, value: bytes) -> None:
        match field:
            case b"data":
                self._data += value
                self._data += b"\n"
            case b"event":
                self._name = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode(errors="replace") or None
            case b"retry" if value.isdigit():
                self.retry_ms = int(value[:18])  # longer than anybody waits, and no million digits
            case _:
                pass  # a comment, or nothing that we know

    def _end_event(self) -> Event | None:
        self.last_id = self._id
        name, data = self._name or "message", bytes(self._data[:-1])
        self._size, self._name = 0, ""
        self._data.clear()
        return Event(name, data, self.last_id) if data else None
