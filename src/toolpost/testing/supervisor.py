"""Runs cases in a process of their own, and tells what came of each, also where the process did not live on.

One worker at a time. It is replaced when a case has taken it down, or has left something in it that cannot be
stopped; what such a case has started goes with it. No agent's code ever runs in this process.

The worker has a session of its own: no terminal, and a group that can be ended as a whole. With its output
shown it stays the terminal's, so that a debugger can be used in it, and Ctrl-C reaches all that it started.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from toolpost.errors import ConfigError, ToolpostError, Unsupported
from toolpost.secret import mask
from toolpost.testing.broken import died
from toolpost.testing.printed import read_printed
from toolpost.testing.protocol import LEAVING_SECS, READY, Order, Reply, Terms, decoded, encoded

SILENCE_SECS = 5.0
"""So long may code that lets nothing else run go on once its case's time is up."""
TICK_SECS = 0.1
"""How often whoever waits for a case is called."""
_LOST_SECS = 10.0
"""How long a process may take to end once it has closed its connection."""
_DUMP_BOUND = 1024 * 1024


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How cases are run."""

    is_shown: bool = False
    """What they print goes to standard error, at once, instead of into their results."""
    silence_secs: float = SILENCE_SECS
    log_level: int = 30
    """What of the log is among what they print; a number of the standard library's."""
    agents_log_level: int = 20
    """The same for what agents log themselves."""
    keeps_bytecode: bool = True
    """Whether imported sources are kept compiled, which does not notice two changes in one second."""


class Supervisor:
    """Use it as a context manager. The first worker starts with it, and gets ready before cases are known."""

    def __init__(self, options: Options = Options()) -> None:  # noqa: B008 (it is frozen)
        """Start.

        Raises:
            Unsupported: Not on this system.
        """
        self._options = options
        self._worker: _Worker | None = _Worker(options)

    def run(self, order: Order, *, tick: Callable[[], None] = lambda: None) -> Reply:
        """Run a case to its result. Raises for nothing that the case does.

        Args:
            order: What to run.
            tick: Called again and again while it runs.

        Raises:
            ToolpostError: No worker can be started.
        """
        if self._worker is None:
            self._worker = _Worker(self._options)
        worker = self._worker
        if not worker.is_ready(tick):
            self._worker = None
            end = worker.end(within=_LOST_SECS)
            raise ToolpostError(f"the process that runs tests {end.how} at its start\n{end.printed}".strip())
        started = time.monotonic()
        worker.send(encoded(order))
        line = worker.receive(tick)
        reply = None if line is None else _understood(line)
        if reply is not None:
            if reply.result.is_stuck:
                self.close()
            return reply
        self._worker = None
        end = worker.end(within=_LOST_SECS)
        seconds = time.monotonic() - started
        printed = _masked(end.printed, Path(order.case))
        return Reply(result=died(order.case, seconds, how=end.how, stacks=end.stacks, printed=printed))

    def close(self) -> None:
        """End the worker and what its cases have started. A case that is under way is cancelled."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(within=LEAVING_SECS + 1.0)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _understood(line: bytes) -> Reply | None:
    """A reply; None where an agent has meddled with what writes it."""
    try:
        return decoded(line, Reply)
    except (ValueError, msgspec.ValidationError):
        return None


def _masked(printed: str, case: Path) -> str:
    """What a case has printed whose process could mask it no more: its secrets are in its config."""
    from toolpost.testing.case import load_case  # hardly any run needs it here

    try:
        loaded = load_case(case)
    except ConfigError:
        return "(left out: its secrets are not known)\n" if printed else ""
    masked = mask(printed)
    del loaded  # it kept them alive until here
    return masked


class _Worker:
    """One worker process, from its start to its end."""

    def __init__(self, options: Options) -> None:
        if sys.platform == "win32":
            raise Unsupported(
                "tests run in a process of their own, which needs a POSIX system; use pytest here"
            )
        self._is_shown = options.is_shown
        self._is_ready = False
        self._received = bytearray()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(TICK_SECS)
        self._files = ExitStack()
        self._output = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack closes it
        self._stacks = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  the stack closes it
        with theirs:
            self._process = self._spawn(options, theirs.fileno())

    def _spawn(self, options: Options, stream: int) -> subprocess.Popen[bytes]:
        terms = Terms(
            stream=stream,
            output=self._output.fileno(),
            stacks=self._stacks.fileno(),
            is_shown=options.is_shown,
            silence_secs=options.silence_secs,
            log_level=options.log_level,
            agents_log_level=options.agents_log_level,
        )
        # -P: a file in the current folder must not stand for a module of the standard library
        flags = ["-P", *(() if options.keeps_bytecode else ("-B",))]
        return subprocess.Popen(
            [sys.executable, *flags, "-m", "toolpost.testing.worker", encoded(terms).decode().strip()],
            stdin=None if options.is_shown else subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if options.is_shown else self._output,
            stderr=None if options.is_shown else self._output,
            start_new_session=not options.is_shown,
            pass_fds=(terms.stream, terms.output, terms.stacks),
        )

    def is_ready(self, tick: Callable[[], None]) -> bool:
        """Wait until it takes orders; false where it has ended instead."""
        self._is_ready = self._is_ready or self.receive(tick) == READY.strip()
        return self._is_ready

    def send(self, line: bytes) -> None:
        """Send one line. Where it cannot be sent `receive` sees the end."""
        try:
            self._socket.sendall(line)
        except OSError:
            pass

    def receive(self, tick: Callable[[], None]) -> bytes | None:
        """The next line; None once there is nobody to send it."""
        has_exited = False
        while (end := self._received.find(b"\n")) < 0:
            try:
                chunk = self._socket.recv(1 << 16)
            except TimeoutError:
                if has_exited:  # and what a child of it keeps open brings nothing more
                    return None
                has_exited = self._process.poll() is not None
                tick()
            except OSError:
                return None
            else:
                if not chunk:
                    return None
                self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def end(self, *, within: float) -> _End:
        """End the process and all of its group; what runs is cancelled, and has `within` seconds to leave."""
        self._socket.close()
        try:
            if not self._is_ready:  # nothing of anybody runs in it yet
                self._process.kill()
            how = _described(self._process.wait(within))
        except subprocess.TimeoutExpired:
            how = "had to be killed"
        finally:
            self._kill()
        with self._files:
            stacks = os.pread(self._stacks.fileno(), _DUMP_BOUND, 0).decode("utf-8", "replace")
            return _End(how, read_printed(self._output.fileno()), stacks)

    def _kill(self) -> None:
        try:
            if self._is_shown:
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # they are gone, or not reaped yet
            pass
        self._process.wait()


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a worker."""

    how: str
    """As `exited with status 3`."""
    printed: str
    """What its last case printed."""
    stacks: str
    """What `faulthandler` wrote down."""


def _described(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-status}"
