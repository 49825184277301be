"""How servers take it when they are ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from odd_base import Honest, Message


class IgnoreEofAndTerm(Honest):
    """Stays when stdin ends, and on SIGTERM and SIGINT."""

    def start(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().start()

    def end(self) -> None:
        self.say(end="of stdin")
        time.sleep(600)


class Mute(IgnoreEofAndTerm):
    """The same, and answers nothing."""

    def take(self, message: Message) -> None: ...


class SlowExit(Honest):
    """Takes a moment after the end of stdin to write its state down."""

    def end(self) -> None:
        time.sleep(0.3)
        self.say(exit="clean")


class Launcher(Honest):
    """Leaves a child behind that holds all its pipes, ignores SIGTERM, and sleeps."""

    def start(self) -> None:
        code = (
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            " print('set', flush=True); time.sleep(600)"
        )
        child = subprocess.Popen([sys.executable, "-c", code], stdin=0, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        self.say(child=child.pid)
        # a second one holds stdout itself
        self.say(child=subprocess.Popen(["sleep", "600"], stdin=0, stdout=1).pid)
        super().start()
