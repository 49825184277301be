"""The server process of a stdio tooling: started in a group of its own, watched, and ended whole.

Bytes go in and out through callbacks of the event loop, so nothing is copied twice and reading never
waits for writing. The *process* is watched, not only its pipes: a grandchild may keep those open. What ends
it when toolpost is killed stands in `warden.py`. This file knows lines of bytes, and nothing of the protocol;
it imports no SDK, so that the server starts while the SDK is still being imported. What it writes until
somebody listens stays in its pipe.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio

from toolpost.mcp.faults import FinalFailure
from toolpost.mcp.warden import warden
from toolpost.secret import get_logger, mask

STDIN_CLOSED_SECS = 2.0
"""How long a server may take to leave after its stdin closed; then comes SIGTERM.
MCP 2025-11-25, basic/lifecycle, "Shutdown"."""
TERMINATE_SECS = 2.0
"""How long it may take after SIGTERM; then comes SIGKILL."""
KILLED_SECS = 0.5
"""How long the rest of a group may take to be gone after SIGKILL."""
REAP_SECS = 2.0
"""How long the loop may take to notice a kill."""

EXIT_FOLLOWS_SECS = 0.25
"""How long the end of stdin or stdout waits for the end of the process."""
DRAIN_READS = 32
"""Of 64 KiB: twice what the largest pipe holds."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""So much without an end of line is too much."""
TAIL_LINES = 20
MAX_STDERR_LINE = 1000
"""Characters; a longer piece of stderr is logged in parts."""
STDERR_KEPT = 16 * 1024
"""Characters of a line without an end that are kept back: longer than a secret, so none is cut in halves."""

_POLL_SECS = 0.01
_STDIN, _STDOUT, _STDERR = 0, 1, 2

_log = get_logger("toolpost.mcp")


class Spawned:
    """A running server process.

    `on_line` is called with each line of stdout without its end, `on_end` once, when no more can come:
    the process has exited or its stdout is closed.
    """

    def __init__(self, name: str) -> None:
        self._server_log = get_logger(f"toolpost.server.{name}")
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._protocol = _Protocol(self._log_stderr)
        self._transport: asyncio.SubprocessTransport | None = None
        self.pid = 0

    async def start(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        """Start the process.

        Raises:
            FinalFailure: The command cannot be started, now or later.
        """
        loop = asyncio.get_running_loop()
        warden.prepare(self, grace_secs=STDIN_CLOSED_SECS, terminate_secs=TERMINATE_SECS)
        try:
            # Not to be cancelled half way, which takes no time to speak of: asyncio loses the pipes then.
            with anyio.CancelScope(shield=True):
                self._transport, _ = await loop.subprocess_exec(
                    lambda: self._protocol, *command, env=dict(env), cwd=cwd, start_new_session=True
                )
                self.pid = self._transport.get_pid()
                warden.watch(self, self.pid)
        except (FileNotFoundError, NotADirectoryError):
            raise FinalFailure(_what_is_missing(command[0], env, cwd)) from None
        except PermissionError:
            raise FinalFailure(f"command {command[0]!r} is not executable") from None
        except OSError as error:
            reason = error.strerror or error
            raise FinalFailure(f"command {command[0]!r} cannot be started: {reason}") from None

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Hand over what has come and what comes."""
        self._protocol.listen(on_line, on_end)

    @property
    def exited(self) -> bool:
        """Whether the process itself is gone."""
        return self._protocol.exited.is_set()

    @property
    def writable(self) -> asyncio.Event:
        """Set while stdin takes more without piling up."""
        return self._protocol.writable

    def write(self, data: bytes) -> None:
        """Write to stdin without waiting.

        Raises:
            BrokenPipeError: Nobody reads it, or nobody would hear the answer.
        """
        stdin = self._pipe(_STDIN)
        if self._protocol.is_leaving or stdin is None or stdin.is_closing():
            raise BrokenPipeError
        cast("asyncio.WriteTransport", stdin).write(data)

    def describe_end(self) -> str:
        """Why it ended, as an error quotes it: the exit status and the last lines of stderr."""
        if self._protocol.overflowed:
            return f"sent a line longer than {MAX_LINE_BYTES >> 20} MiB"
        status = self._transport.get_returncode() if self._transport is not None else None
        return ("closed its output" if status is None else _describe_status(status)) + self.last_words()

    def last_words(self) -> str:
        """The last lines of stderr as the end of a sentence, secrets masked; empty if there are none."""
        lines = "\n  ".join(self._tail)
        return f"; its last words on stderr:\n  {lines}" if lines else ""

    async def wait_exited(self, seconds: float) -> bool:
        """Wait for the process to be gone; tells whether it is."""
        with anyio.move_on_after(seconds):
            await self._protocol.exited.wait()
        return self.exited

    async def end(self) -> None:
        """End the process and all of its group: stdin closed, SIGTERM, SIGKILL. Bounded.

        No cancelled scope cuts it short. `Task.cancel` and an interrupt do (a shield does not stop them);
        then the group is killed at once.
        """
        if self._transport is None:
            warden.forget(self)
            return
        try:
            with anyio.CancelScope(shield=True):
                await self._end_gently()
        except BaseException:
            _signal_group(self.pid, _KILL)
            raise
        finally:
            warden.forget(self)
            self._protocol.flush_stderr()
            with suppress(PermissionError, RuntimeError):  # RuntimeError: the loop is closed already
                self._transport.close()

    async def _end_gently(self) -> None:
        self._protocol.let_flow()
        self._close_pipe(_STDIN)
        if not await self.wait_exited(STDIN_CLOSED_SECS) or _group_alive(self.pid):
            _signal_group(self.pid, signal.SIGTERM)
            await self._wait_group_gone(TERMINATE_SECS)
        if _group_alive(self.pid):
            _signal_group(self.pid, _KILL)
            await self._wait_group_gone(KILLED_SECS)
        if not await self.wait_exited(REAP_SECS):
            _log.warning("server process %d outlived SIGKILL; it is left behind", self.pid)

    async def _wait_group_gone(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while _group_alive(self.pid):  # noqa: ASYNC110  nothing tells when a group has gone
                await anyio.sleep(_POLL_SECS)

    def _pipe(self, fd: int) -> asyncio.BaseTransport | None:
        return None if self._transport is None else self._transport.get_pipe_transport(fd)

    def _close_pipe(self, fd: int) -> None:
        pipe = self._pipe(fd)
        if pipe is not None and not pipe.is_closing():
            pipe.close()

    def _log_stderr(self, line: str) -> None:
        self._tail.append(mask(line))
        self._server_log.info("%s", line)


class _Protocol(asyncio.SubprocessProtocol):
    """Frames stdout on LF and stderr into log lines."""

    def __init__(self, on_stderr: Callable[[str], None]) -> None:
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdout = LineBuffer()
        self._stderr = bytearray()
        self._on_stderr = on_stderr
        self._on_line: Callable[[bytes], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._early: list[bytes] = []
        """What came before anybody listens, and before reading could pause or when the process left."""
        self._ended = False
        self.exited = asyncio.Event()
        self.is_leaving = False
        """stdin or stdout is closed: what is written now is not answered any more."""
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        if (stdout := self._open_pipe(_STDOUT)) is not None:
            stdout.pause_reading()

    @property
    def overflowed(self) -> bool:
        return self._stdout.overflowed

    def listen(self, on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_line, self._on_end = on_line, on_end
        for line in self._early:
            on_line(line)
        self._early.clear()
        if (stdout := self._open_pipe(_STDOUT)) is not None:
            stdout.resume_reading()
        if self._ended:
            on_end()

    def let_flow(self) -> None:
        """Let go of what nobody will listen to: a server that still writes would not leave."""
        if self._on_line is None:
            self.listen(lambda _line: None, lambda: None)

    def _open_pipe(self, fd: int) -> asyncio.ReadTransport | None:
        """Where stdout or stderr is read; None once it is closed."""
        pipe = None if self._transport is None else self._transport.get_pipe_transport(fd)
        return None if pipe is None or pipe.is_closing() else cast("asyncio.ReadTransport", pipe)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDERR:
            self._take_stderr(data)
            return
        lines = self._stdout.feed(data)
        if self._on_line is None:
            self._early += lines
            return
        for line in lines:
            self._on_line(line)
        if self._stdout.overflowed:
            self._end()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDERR:
            self.flush_stderr()
            return
        if fd == _STDOUT:
            self._take_rest()
        self.is_leaving = True
        self.writable.set()
        self._end_soon()

    def process_exited(self) -> None:
        for fd in (_STDERR, _STDOUT):
            if (pipe := self._open_pipe(fd)) is not None:
                pipe.pause_reading()
        # A turn later: what asyncio has read comes in this one, and stood before what is still in the pipe.
        asyncio.get_running_loop().call_soon(self._take_last)

    def _take_last(self) -> None:
        """The process is gone, and what was read before has come."""
        self.exited.set()
        self._drain(_STDERR)
        self._drain(_STDOUT)
        self._take_rest()
        self._end()
        for fd in (_STDERR, _STDOUT):  # a child of it may write on, and would not leave if nobody read
            if (pipe := self._open_pipe(fd)) is not None and (fd == _STDERR or self._on_line is not None):
                pipe.resume_reading()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _end_soon(self) -> None:
        """A pipe is closed: the process is likely to leave now, and an error with its status says more."""
        if self.exited.is_set():
            self._end()
        else:
            asyncio.get_running_loop().call_later(EXIT_FOLLOWS_SECS, self._end)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self.writable.set()
            if self._on_end is not None:
                self._on_end()

    def _drain(self, fd: int) -> None:
        """Take what the process wrote before it left: a child of it may hold the pipe open."""
        pipe = self._open_pipe(fd)
        file = None if pipe is None else pipe.get_extra_info("pipe")
        if file is None or sys.platform == "win32":
            return
        for _ in range(DRAIN_READS):
            try:
                data = os.read(file.fileno(), 65536)
            except (OSError, ValueError):  # nothing more for now, or closed
                return
            if not data:
                return
            self.pipe_data_received(fd, data)

    def _take_rest(self) -> None:
        """Nobody will end the last line: it is as long as it is."""
        if not (rest := self._stdout.rest()):
            return
        if self._on_line is None:
            self._early.append(rest)
        else:
            self._on_line(rest)

    def _take_stderr(self, data: bytes) -> None:
        *lines, rest = (bytes(self._stderr) + data).split(b"\n")
        self._stderr = bytearray(rest)
        for line in lines:
            self._say(line)
        if len(self._stderr) > 2 * STDERR_KEPT:
            self._say_some()

    def flush_stderr(self) -> None:
        rest, self._stderr = bytes(self._stderr), bytearray()
        self._say(rest)

    def _say_some(self) -> None:
        """Of a line without an end: what comes next may complete a secret, so its last part stays here."""
        text = mask(self._stderr.decode(errors="surrogateescape"))
        self._say(text[:-STDERR_KEPT].encode(errors="surrogateescape"))
        self._stderr = bytearray(text[-STDERR_KEPT:].encode(errors="surrogateescape"))

    def _say(self, line: bytes) -> None:
        text = mask(line.decode(errors="replace").strip("\r\n\t "))  # before it is cut, not after
        for start in range(0, len(text), MAX_STDERR_LINE):
            self._on_stderr(text[start : start + MAX_STDERR_LINE])


class LineBuffer:
    """Cuts a stream of bytes into lines, on LF alone. Each byte is looked at and copied once or twice."""

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.overflowed = False
        """A line went past the limit; nothing more is taken."""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends."""
        if self.overflowed:
            return []
        *lines, rest = data.split(b"\n")
        if lines and self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            self.overflowed = self._size >= self._limit
        return lines

    def rest(self) -> bytes:
        """What stands after the last LF."""
        rest, self._parts = b"".join(self._parts), []
        return rest


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _what_is_missing(command: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Why a process could not be started though its command may be there."""
    if cwd is not None and not Path(cwd).exists():
        return f"the working directory {cwd!r} does not exist"
    if cwd is not None and not Path(cwd).is_dir():
        return f"the working directory {cwd!r} is no directory"
    if os.sep in command and Path(cwd or "", command).exists():
        return f"the interpreter of the script {command!r} was not found"
    path = env.get("PATH")
    if path is None or path == os.environ.get("PATH"):
        return f"command {command!r} was not found (PATH={path or ''!r})"
    return f"command {command!r} was not found (on the PATH that `env` gives)"  # a secret, as all of `env`


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    with suppress(ValueError):
        return f"was ended by signal {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _group_alive(group: int) -> bool:
    """Whether any process of the group is left. The leader's id is the group's, also when it is gone."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # some of them are another user's, or not reaped yet: not gone
    return not _only_zombies(group)


def _only_zombies(group: int) -> bool:
    """Whether what is left of a group has exited and is not reaped; in many containers nobody ever does."""
    if sys.platform != "linux":
        return False
    for process in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = process.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # gone meanwhile
            continue
        if its_group == str(group) and state not in "ZX":
            return False
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    if sys.platform == "win32":
        with suppress(OSError):
            os.kill(group, number)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
