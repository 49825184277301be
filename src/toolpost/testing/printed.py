"""What a case prints: caught at the file descriptors, so that what its children print is there too.

It goes into a file without a name, which the supervisor has open too: it reads it where the worker dies.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

from toolpost.secret import mask

BOUND = 1024 * 1024
"""Bytes of it that are kept: its end."""

_STDOUT, _STDERR = 1, 2


class Printed:
    """Standard output and standard error of this process, case by case.

    Shown instead of caught, they are left as they are, and the text stays empty.
    """

    def __init__(self, file: int, *, is_shown: bool) -> None:
        self._file = file
        self._is_shown = is_shown

    @contextmanager
    def afresh(self) -> Generator[None]:
        """Around a case: its text begins empty, and streams that it closes or replaces are whole again."""
        if not self._is_shown:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.ftruncate(self._file, 0)
            sys.stdout, sys.stderr = self._stream(_STDOUT), self._stream(_STDERR)
        yield

    def text(self) -> str:
        """What has been printed since, secrets masked."""
        return mask(read_printed(self._file))

    def _stream(self, number: int) -> TextIO:
        os.dup2(self._file, number)
        # no buffer, as under `python -u`: what was printed is there when the process is killed
        raw = io.FileIO(number, "w", closefd=False)
        return io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)


def read_printed(file: int) -> str:
    """The text in a file to which somebody may still write: its end, where it is long."""
    start = max(0, os.fstat(file).st_size - BOUND)
    text = os.pread(file, BOUND, start).decode("utf-8", "replace")
    if start == 0:
        return text
    _, _, whole_lines = text.partition("\n")
    return f"({start} bytes before this are left out)\n{whole_lines or text}"
