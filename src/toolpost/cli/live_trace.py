"""The trace of a run while it runs: on standard output, and in a file.

Each has a thread of its own, so neither a slow reader nor a slow disk delays an agent or the other. The
thread owns the file's number that it writes to, and closes it: a file object has a lock, on which the end of
the process would wait for a reader that stands still.
"""

from __future__ import annotations

import codecs
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from toolpost.cli.session import void

if TYPE_CHECKING:
    from toolpost.trace.events import TraceEvent
    from toolpost.trace.log import Trace

OnLost: TypeAlias = Callable[[Exception], None]

_GRACE_SECS = 1.0
"""What is written after an interrupt has so long: nothing else would end the waiting for its reader."""


class LiveTrace:
    """Writes a trace's records as they come."""

    def __init__(self, out: int, *, is_utf8: bool = True, on_lost: OnLost = void) -> None:
        """Takes over the open file with the number `out`; `on_lost` is called in the thread."""
        self.error: Exception | None = None
        """Why no more is written."""
        self._on_lost = on_lost
        self._out = out
        self._is_utf8 = is_utf8
        self._records: queue.SimpleQueue[TraceEvent | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="trace writer", daemon=True)

    def __enter__(self) -> LiveTrace:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._finish(_GRACE_SECS if isinstance(error, KeyboardInterrupt) else None)

    def start(self, trace: Trace) -> None:
        """Write this trace from now on. It is empty yet."""
        trace.tap(self._take)

    @contextmanager
    def telling(self, on_lost: OnLost) -> Generator[None]:
        """In this block that is called when no more can be written."""
        before, self._on_lost = self._on_lost, on_lost
        try:
            yield
        finally:
            self._on_lost = before

    def close(self) -> None:
        """Write what is left; returns when the reader has it, or has gone."""
        self._finish(None)

    def _take(self, event: TraceEvent) -> None:
        if self.error is None:
            self._records.put(event)

    def _finish(self, timeout: float | None) -> None:
        self._records.put(None)
        self._thread.join(timeout)

    def _write_all(self) -> None:
        try:
            try:
                while (event := self._records.get()) is not None:
                    self._write(f"{json_line(event, is_utf8=self._is_utf8)}\n".encode())
            finally:
                os.close(self._out)  # some file systems tell only now that they are full
        except Exception as error:
            self.error = error
            self._on_lost(error)

    def _write(self, rest: bytes) -> None:
        while rest:
            rest = rest[os.write(self._out, rest) :]


@contextmanager
def printed_trace() -> Generator[LiveTrace]:
    """On standard output, which is for the trace alone: what agents print joins standard error."""
    with _own_stdout() as out, LiveTrace(os.dup(out), is_utf8=stdout_is_utf8()) as live:
        yield live


@contextmanager
def saved_trace(file: str, *, on_lost: OnLost = void) -> Generator[LiveTrace]:
    """In a file; one that is there is replaced. `on_lost` is called, in a thread, when it cannot go on.

    Raises:
        UsageError: It cannot be written.
    """
    from toolpost.errors import UsageError

    if file in ("", "-"):
        raise UsageError(f"--trace {file!r} is no file; give one, or print the trace with --json")
    try:
        out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    except OSError as error:
        raise UsageError(f"--trace {file!r} cannot be written: {error.strerror or error}") from None
    with LiveTrace(out, on_lost=on_lost) as live:
        yield live


def json_line(event: TraceEvent, *, is_utf8: bool) -> str:
    """A record as one line of JSON, in ASCII where the reader takes no more."""
    from toolpost.trace.log import to_json_line

    line = to_json_line(event)
    return line if is_utf8 or line.isascii() else json.dumps(json.loads(line))


def stdout_is_utf8() -> bool:
    """Whether the reader of standard output takes UTF-8."""
    return codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"


@contextmanager
def _own_stdout() -> Generator[int]:
    """Standard output under another number: what agents (and their children) print goes elsewhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # nobody reads what agents print; that is no reason to fail
            pass
        os.dup2(kept, 1)
        os.close(kept)
