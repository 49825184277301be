"""The process that runs cases, one after another: `python -m toolpost.testing.worker TERMS`.

Users' agents run here, so anything may happen: they print, change the working directory, never end, or take
the process down. What it owes its supervisor is in `toolpost.testing.protocol`.

    idle ──Order──▶ busy ──Reply──▶ idle
    busy ──(what cannot be stopped)──▶ Reply, and leaves at once
    idle ──(end of the stream)──▶ leaves
    busy ──(end of the stream)──▶ kills its group
    busy, with servers ──(end of the stream)──▶ SIGINT to itself ──(the case is cancelled, or a grace)──▶ ends

A case with mocks alone has nothing of which it must take leave. The end of the stream is the wish of a
supervisor that lives, and the sign of one that died.
"""

from __future__ import annotations

import atexit
import faulthandler
import io
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import msgspec

from toolpost.errors import ConfigError
from toolpost.testing.broken import raised
from toolpost.testing.case import Case, load_case
from toolpost.testing.limit import LONGEST_SECS, HardLimit
from toolpost.testing.logs import set_up_logging
from toolpost.testing.printed import Printed
from toolpost.testing.protocol import LEAVING_SECS, READY, Order, Reply, Terms, decoded, encoded
from toolpost.testing.report import could_not_run
from toolpost.testing.result import Result
from toolpost.testing.run import run_case
from toolpost.testing.seeds import run_seeds
from toolpost.trace.log import Trace

_STDIN = 0


def main() -> None:
    """Work until the supervisor has no more cases."""
    terms = decoded(sys.argv[1], Terms)
    if not terms.is_shown:
        atexit.register(_kill_group)  # the last thing of all: what agents have started goes too
    for file in (terms.stream, terms.output, terms.stacks):
        os.set_inheritable(file, False)  # what agents start must not keep them open
    set_up_logging(terms.log_level, agents=terms.agents_log_level)
    try:
        _Worker(terms).work()
    except KeyboardInterrupt:  # by ourselves, or by Ctrl-C on the terminal, which our supervisor gets too
        pass


class _Worker:
    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._printed = Printed(terms.output, is_shown=terms.is_shown)
        self._stacks = io.FileIO(terms.stacks, "w", closefd=False)
        faulthandler.enable(self._stacks)
        self._folder, self._environment = Path.cwd(), dict(os.environ)
        self._stream = _Stream(terms)

    def work(self) -> None:
        self._stream.send(READY)
        while (order := self._stream.next_order()) is not None:
            with self._stream.busy(), self._afresh():
                self._run(order)

    @contextmanager
    def _afresh(self) -> Generator[None]:
        """What a case does to the process is not there for the next one."""
        os.chdir(self._folder)
        os.environ.clear()
        os.environ.update(self._environment)
        with self._printed.afresh():
            yield

    def _run(self, order: Order) -> None:
        """Run a case, and tell of it."""
        started = time.monotonic()

        def leave_stuck(result: Result, trace: Trace) -> NoReturn:
            self._tell(order, result, trace)
            os._exit(0)

        try:
            case = self._load(order)
            self._stream.has_servers = any(each.kind.name != "mock" for each in case.config.tooling.values())

            def run(seed: int | None) -> tuple[Result, Trace]:
                limit = HardLimit(
                    case.settings.timeout_secs, silence_secs=self._terms.silence_secs, file=self._stacks
                )
                with limit:
                    return run_case(case, seed=seed, on_stuck=leave_stuck)

            result, trace = run_seeds(case, order.seeds, run)
        except ConfigError as error:
            result, trace = could_not_run(order.case, error, files=[str(Path(order.case).absolute())]), None
        except BaseException as error:
            if self._stream.has_ended:
                raise
            result, trace = raised(order.case, time.monotonic() - started, error), None
        self._tell(order, result, trace)
        if result.is_stuck:
            os._exit(0)

    def _load(self, order: Order) -> Case:
        case = load_case(Path(order.case))
        if self._terms.is_shown and os.isatty(_STDIN):
            # somebody is there, perhaps with a debugger: Ctrl-C is the limit
            case = replace(case, settings=msgspec.structs.replace(case.settings, timeout_secs=LONGEST_SECS))
        return case

    def _tell(self, order: Order, result: Result, trace: Trace | None) -> None:
        problem = "" if trace is None or order.trace is None else _write(trace, Path(order.trace))
        printed = msgspec.structs.replace(result, output=self._printed.text())
        self._stream.send(encoded(Reply(result=printed, problem=problem)))


def _write(trace: Trace, path: Path) -> str:
    """Write a trace as JSON lines; gives what went wrong."""
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in trace.json_lines())
    except OSError as error:
        return f"cannot write the trace {str(path)!r}: {error.strerror or error}"
    return ""


class _Stream:
    """The connection to the supervisor."""

    def __init__(self, terms: Terms) -> None:
        self.has_ended = False
        self.has_servers = False
        """Whether the case that runs must be given time to end what it has started."""
        self._socket = socket.socket(fileno=terms.stream)
        self._is_shown = terms.is_shown
        self._process = os.getpid()
        self._is_busy = False
        self._sending = threading.Lock()
        self._orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="toolpost orders", daemon=True).start()

    def next_order(self) -> Order | None:
        """Wait for the next case; None is the end."""
        order = self._orders.get()
        return None if self.has_ended else order

    @contextmanager
    def busy(self) -> Generator[None]:
        """Around a case: the end of the stream interrupts the block."""
        self._is_busy, self.has_servers = True, False
        try:
            yield
        finally:
            self._is_busy = False

    def send(self, line: bytes) -> None:
        """Send one line. Where nobody is there to hear it, this is the end."""
        if os.getpid() != self._process:  # an agent has forked, and its child came back to us
            os._exit(1)
        try:
            with self._sending:
                self._socket.sendall(line)
        except OSError:
            self._die()

    def _read(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    self._orders.put(decoded(line, Order))
        except OSError:  # the supervisor has not even closed it
            pass
        self.has_ended = True
        self._orders.put(None)
        if self._is_busy:
            if not self.has_servers:
                self._die()
            os.kill(self._process, signal.SIGINT)
        time.sleep(LEAVING_SECS)
        self._die()

    def _die(self) -> NoReturn:
        if not self._is_shown:  # else it is the terminal's group, where others are too
            _kill_group()
        os._exit(1)


def _kill_group() -> None:
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
