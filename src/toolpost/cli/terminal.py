"""Standard output and standard error: results go to the one, talk to the other.

Knows nothing of toolpost's affairs. What is written to a terminal for people has its control characters
taken out, since servers' words must not move the cursor; results that are promised verbatim do not.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

_ERASE_LINE = "\r\x1b[2K"


class OutputLost(Exception):
    """Nothing can be written to standard output any more."""

    def __init__(self, error: OSError) -> None:
        self.reader_left = isinstance(error, BrokenPipeError)
        super().__init__(f"cannot write to standard output: {error.strerror or error}")


# -- results ---------------------------------------------------------------------------------------


def write(text: str) -> None:
    """Write to standard output and flush, so that a lost reader shows here and not at exit.

    Raises:
        OutputLost: It cannot be written.
    """
    try:
        _write_all(sys.stdout, text)
    except OSError as error:
        _abandon(sys.stdout)
        raise OutputLost(error) from None


def write_line(text: str) -> None:
    """Write a text that ends with one line end, whether it has its own or not."""
    write(text if text.endswith("\n") else f"{text}\n")


def write_bytes(data: bytes) -> None:
    """Write bytes as they are, and flush.

    Raises:
        OutputLost: They cannot be written.
    """
    try:
        sys.stdout.flush()
        _write_bytes(sys.stdout.buffer, data)
    except OSError as error:
        _abandon(sys.stdout)
        raise OutputLost(error) from None


def write_json(value: Any, *, indent: int | None = 2) -> None:
    """Write one JSON document, indented for people who look; on one line with `indent=None`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    write_line(text if encodable(text, sys.stdout) else json.dumps(value, indent=indent))


def width() -> int | None:
    """How wide standard output is; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def encodable(text: str, stream: TextIO) -> bool:
    """Whether the stream can carry the text as it is. (An escape for what it cannot would be no JSON.)"""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _write_all(stream: Any, text: str) -> None:
    """Write to the bytes below: under PYTHONUNBUFFERED a text stream loses what the system did not take."""
    stream.flush()
    _write_bytes(stream.buffer, text.encode(stream.encoding, stream.errors or "strict"))


def _write_bytes(binary: Any, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[binary.write(rest) :]
    binary.flush()


def _abandon(stream: TextIO) -> None:
    """Let what is still buffered go nowhere: flushing it at exit would fail again, and loudly."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)


# -- talk ------------------------------------------------------------------------------------------


class Talk:
    """Standard error: lines that stay, and one line of progress that goes again."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress = ""
        self.is_terminal = sys.stderr.isatty()
        dumb = os.environ.get("TERM") in (None, "", "dumb")
        self.moves = self.is_terminal and not dumb
        """Whether a line can be taken away again."""
        self._colours = self.moves and not os.environ.get("NO_COLOR")

    def say(self, text: str) -> None:
        """Write lines that stay."""
        with self._lock:
            self._erase()
            self._put(f"{text}\n")
            self._draw()

    def progress(self, text: str) -> None:
        """Show what is being waited for, on a terminal only; an empty text takes it away."""
        if self.moves:
            with self._lock:
                self._erase()
                self._progress = printable(text)
                self._draw()

    def paint(self, text: str, style: str) -> str:
        """The text in a style (the number of an ANSI sequence), where colours are wanted."""
        return f"\x1b[{style}m{text}\x1b[0m" if self._colours else text

    def _erase(self) -> None:
        if self._progress:
            self._put(_ERASE_LINE)

    def _draw(self) -> None:
        if self._progress:
            width = shutil.get_terminal_size().columns
            self._put(self._progress[: max(width - 1, 1)])

    def _put(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody listens to the talk any more: no reason to stop the work
            pass


def printable(text: str) -> str:
    """The text without control characters, other than line ends and tabs."""
    return "".join(each if each.isprintable() or each in "\n\t" else "�" for each in text)


# -- tables ----------------------------------------------------------------------------------------


def table(rows: Sequence[tuple[str, ...]], *, indent: int = 0) -> str:
    """Aligned columns for people. On a terminal the last one is wrapped; on a pipe a row is a line."""
    if not rows:
        return ""
    columns = width()
    cleaned = [tuple(one_line(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*cleaned, strict=True))[:-1]]
    return "\n".join(line for row in cleaned for line in _row(row, widths, indent, columns))


def _row(row: tuple[str, ...], widths: Sequence[int], indent: int, width: int | None) -> Iterator[str]:
    lead = " " * indent + "".join(f"{cell:<{size}}  " for cell, size in zip(row, widths, strict=False))
    if width is None:
        yield f"{lead}{row[-1]}".rstrip()
        return
    if width - len(lead) < _NARROW:  # no room beside the other columns: below them
        yield lead.rstrip()
        lead = " " * (indent + 4)
        if not row[-1]:
            return
        yield from textwrap.wrap(row[-1], max(width, 20), initial_indent=lead, subsequent_indent=lead)
        return
    lines = textwrap.wrap(row[-1], width - len(lead)) or [""]
    for number, line in enumerate(lines):
        yield f"{lead if number == 0 else ' ' * len(lead)}{line}".rstrip()


_NARROW = 20


def one_line(text: str) -> str:
    """The first line that is not empty, printable."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return printable(first).replace("\t", " ")
