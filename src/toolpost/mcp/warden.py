"""What ends server processes when toolpost could not: it was killed, it crashed, it left by `os._exit`.

Then the stdin of each server ends, and most leave. A server that does not, or a child of one, would stay
for ever. So while there are servers, there is a *warden*: a small process (`warden_process.py`) that is told
of their process groups and reads a pipe of which nobody but this process holds the other end. When that
ends, it ends the groups that are left.

    none ──a server is about to start──▶ watching ──the last one has gone──▶ none
                                            └──the warden itself has died──▶ none, until another starts

There is one for all hosts, loops and threads of a process. It is beside the servers and not above them:
where there is none, everything works but this. A signal of the kernel at the death of a parent
(`PR_SET_PDEATHSIG`) would be simpler, but comes when the *thread* ends that started the server, and not to
the server's children.

One gap is left: between the start of a server and the moment its group is told (a few turns of the event
loop) a kill finds it unknown. Its stdin ends all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from toolpost.secret import get_logger

PROGRAM = Path(__file__).with_name("warden_process.py")

KILLED_SECS = 2.0
"""How long a warden may take to be gone after SIGKILL."""

_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All of the environment that the warden gets: where some interpreters find what they are linked to."""

_log = get_logger("toolpost.mcp")


class Warden:
    """The warden of this process, while there is one. From any thread; nothing here waits for long.

    An `owner` is whatever stands for one server, from before its start until its group is gone.
    """

    def __init__(self) -> None:
        self._mutex = threading.RLock()  # a log handler may fork, which takes it again
        self._groups: dict[object, int] = {}
        """By owner; 0 while its server is being started."""
        self._process: subprocess.Popen[bytes] | None = None
        self._has_warned = False
        if hasattr(os, "register_at_fork"):  # the mutex, so that no pipe is half made when it is copied
            os.register_at_fork(
                before=self._mutex.acquire,
                after_in_parent=self._mutex.release,
                after_in_child=self._start_anew,
            )

    def prepare(self, owner: object, *, grace_secs: float, terminate_secs: float) -> None:
        """A server is about to start, so there is to be a warden. It comes up while the server does.

        Args:
            owner: Of the server.
            grace_secs: For a warden that starts now: how long servers may take to leave by themselves.
            terminate_secs: And how long after SIGTERM.
        """
        with self._mutex:
            self._groups[owner] = 0
            if self._process is not None and self._process.poll() is not None:
                self._lose("it has died")
            if self._process is None:
                self._start(grace_secs, terminate_secs)

    def watch(self, owner: object, group: int) -> None:
        """The server has started, in a process group of its own."""
        with self._mutex:
            self._groups[owner] = group
            self._tell(group)

    def forget(self, owner: object) -> None:
        """The group is gone, or there never was one."""
        with self._mutex:
            if group := self._groups.pop(owner, 0):
                self._tell(-group)
            if not self._groups:
                self._stop()

    def _start(self, grace_secs: float, terminate_secs: float) -> None:
        if sys.platform == "win32":
            return
        try:
            if getattr(
                sys, "frozen", False
            ):  # its executable is the program itself, which must not run again
                raise OSError("a frozen program has no interpreter for it")
            # A session of its own: no Ctrl-C. Nothing of ours held open, no folder and no pipe.
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(PROGRAM), str(grace_secs), str(terminate_secs)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _LIBRARIES if name in os.environ},
                start_new_session=True,
            )
        except OSError as error:
            self._warn(f"it cannot be started: {error}")
            return
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._process = process
        for group in filter(None, self._groups.values()):
            self._tell(group)

    def _tell(self, group: int) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), b"%d\n" % group)
        except OSError as error:  # it is dead, or stopped, and its pipe is full
            self._lose(error.strerror or str(error))

    def _lose(self, why: str) -> None:
        self._warn(f"it is lost: {why}")
        self._stop()

    def _stop(self) -> None:
        """End the warden. It has nothing to end itself, so it is killed: that is quick."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILLED_SECS)
        assert process.stdin is not None
        process.stdin.close()  # not before: its end says that we are dead

    def _warn(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning("no process watches over the servers (%s); some may stay if toolpost is killed", why)

    def _start_anew(self) -> None:
        """In a process that was forked off, nothing is its own: neither servers nor the warden."""
        process, self._process = self._process, None
        self._groups.clear()
        if process is not None and process.stdin is not None:
            process.stdin.close()  # or the warden would not notice that the other process dies
            process.returncode = 0  # not ours to wait for
        self._mutex.release()


warden = Warden()
