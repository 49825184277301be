"""How servers start, or do not, and shake hands."""

from __future__ import annotations

import sys
import time
from typing import Any, ClassVar

from odd_base import Honest, Message, error
from odd_modern import Modern


class ExitOnStart(Honest):
    """Says why on stderr and exits before it reads."""

    def start(self) -> None:
        super().start()
        sys.stderr.write("reading the licence\nno licence found\n")
        sys.exit(3)


class ExitOnInitialize(Honest):
    """Reads `initialize` and exits with no answer."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "initialize":
            sys.stderr.write("cannot initialize\n")
            sys.exit(4)
        return super().answer(method, params, id)


class Silent(Honest):
    """Reads everything and never answers."""

    def start(self) -> None:
        super().start()
        sys.stderr.write("warming up\n")

    def take(self, message: Message) -> None: ...


class Banner(Honest):
    """Writes `--n` bytes that are no message before it reads."""

    def start(self) -> None:
        super().start()
        self.write(b"banner " * (int(self.n) // 7) + b"\n")


class DiscoverSilent(Honest):
    """Leaves `server/discover` without an answer."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        return None if method == "server/discover" else super().answer(method, params, id)


class DiscoverExit(Honest):
    """Reads its first message after `--n` seconds, and exits if that is not `initialize`."""

    def start(self) -> None:
        super().start()
        time.sleep(self.n)

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "server/discover":
            sys.exit(1)
        return super().answer(method, params, id)


class SlowDiscover(Modern):
    """Starts to read after `--n` seconds, and then answers the handshakes of both eras."""

    def start(self) -> None:
        super().start()
        time.sleep(self.n)


class BadVersion(Honest):
    """Answers `initialize` with a version that nobody knows."""

    VERSION = "1999-01-01"


class OldVersion(Honest):
    """Speaks the first version."""

    VERSION = "2024-11-05"


class InitError(Honest):
    """Refuses `initialize` with an error."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "initialize":
            return error(-32603, "the database is away")
        return super().answer(method, params, id)


class InitMalformed(Honest):
    """Answers `initialize` with a result that is none."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "initialize":
            return {"result": {"protocolVersion": 7}}
        return super().answer(method, params, id)


class LeaveAfterHandshake(Honest):
    """Shakes hands, and exits with status 1 at the first request."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method not in ("initialize", "server/discover"):
            sys.exit(1)
        return super().answer(method, params, id)


class GoneAfterHandshake(Honest):
    """Shakes hands, and exits at once."""

    def take(self, message: Message) -> None:
        if message.get("method") == "notifications/initialized":
            sys.exit(1)
        super().take(message)


class Picky(Modern):
    """Refuses the first `server/discover` for its version, though it names that version as one of its own.

    With `--n 1` it refuses every one.
    """

    asked = 0

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "server/discover":
            self.asked += 1
            if self.n or self.asked == 1:
                return error(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})
        return super().answer(method, params, id)


class Bare(Honest):
    """Declares no capability."""

    CAPABILITIES: ClassVar[Message] = {}
