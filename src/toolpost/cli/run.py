"""`toolpost run`: the config's agents, side by side, to their ends."""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from toolpost.cli import interrupts
from toolpost.cli.options import ConfigOption, JsonOption, LevelOption, VerboseOption
from toolpost.cli.session import DONE, FAILED, Session, void
from toolpost.cli.terminal import OutputLost, encodable, printable

if TYPE_CHECKING:
    from toolpost.host.host import RunReport
    from toolpost.trace.events import TraceEvent
    from toolpost.trace.log import Trace


EXAMPLES = """
Examples:

toolpost run

toolpost run -c night.toml --json > trace.jsonl
"""


def run(
    ctx: typer.Context,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Run the agents of the config, side by side, to their ends.

    --json prints the trace, live, one object a line; what agents print goes to stderr then.
    """
    Session.of(ctx, config, verbose, log_level).finish(
        lambda session: _run_traced(session) if as_json else _run(session)
    )


def _run(session: Session) -> int:
    import asyncio

    from toolpost.host.host import run_async

    _print_by_line()
    return _told(session, asyncio.run(run_async(session.config(), handle_signals=True)))


def _run_traced(session: Session) -> int:
    import asyncio

    from toolpost.host.host import run_async

    config = session.config()
    with _own_stdout() as out, _LiveTrace(out) as live:

        async def run_and_write() -> RunReport:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None
            # nobody reads the trace any more: end the run, as for any program on a pipe
            live.on_lost = lambda: void(loop.call_soon_threadsafe(task.cancel))
            return await run_async(config, on_trace=live.start, handle_signals=True)

        try:
            report = asyncio.run(run_and_write())
        except asyncio.CancelledError:
            if live.error is None:
                raise
            raise live.error from None
        status = _told(session, report)
        live.close()
        if live.error is not None:
            raise live.error
    return status


def _told(session: Session, report: RunReport) -> int:
    """Tell how each agent ended; gives the exit status."""
    for name, outcome in report.outcomes.items():
        style = "31" if outcome.kind == "failed" else "32"
        kind, _, text = str(outcome).partition(": ")
        said = f": {printable(text)}" if text else ""
        session.talk.say(f"agent {name!r} {session.talk.paint(kind, style)}{said}")
    if report.interrupted:
        session.fail("the agents were shut down", label="interrupted")
        return interrupts.STATUS
    failed = any(outcome.kind == "failed" for outcome in report.outcomes.values())
    return FAILED if failed else DONE


def _print_by_line() -> None:
    """What agents print is read while they run, on a pipe too."""
    stdout: object = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(line_buffering=True)


# -- the trace, live -------------------------------------------------------------------------------


@contextmanager
def _own_stdout() -> Generator[int]:
    """Standard output for the trace alone: what agents (and their children) print joins standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        _print_by_line()
        yield kept
    finally:
        try:
            sys.stdout.flush()
        except OSError:  # nobody reads what agents print; that is no reason to fail
            pass
        os.dup2(kept, 1)
        os.close(kept)


class _LiveTrace:
    """Writes a trace's records as they come, from a thread: a slow reader delays no agent.

    It writes to the file's number. A file object has a lock, on which the end of the process would wait
    for a reader that stands still.
    """

    def __init__(self, out: int) -> None:
        self.error: OutputLost | None = None
        self.on_lost: Callable[[], None] = lambda: None
        self._out = out
        self._is_utf8 = encodable("€", sys.stdout)
        self._records: queue.SimpleQueue[TraceEvent | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="trace writer", daemon=True)

    def __enter__(self) -> _LiveTrace:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        # an interrupt that came before `close` waited: no other would end the waiting
        self._closed = self._closed or isinstance(error, KeyboardInterrupt)
        self.close()

    def start(self, trace: Trace) -> None:
        """Write this trace from now on. It is empty yet."""
        trace.tap(self._records.put)

    def close(self) -> None:
        """Write what is left; returns when the reader has it, or has gone. Interrupted, it does not wait."""
        if not self._closed:
            self._closed = True
            self._records.put(None)
            self._thread.join()

    def _write_all(self) -> None:
        from toolpost.trace.log import to_json_line

        while (event := self._records.get()) is not None:
            try:
                self._write(to_json_line(event))
            except OSError as error:
                self.error = OutputLost(error)
                self.on_lost()
                return

    def _write(self, line: str) -> None:
        carried = line if self._is_utf8 or line.isascii() else json.dumps(json.loads(line))
        rest = f"{carried}\n".encode()
        while rest:
            rest = rest[os.write(self._out, rest) :]
