"""What servers ask and tell of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from odd_base import Honest, Message, error, text


class Asks(Honest):
    """Sends the requests in the argument `requests` during a call; answers it with all answers to them.

    Refuses a subscription to odd://refused, and leaves one to odd://unanswered without an answer.
    """

    def __init__(self, log: Path | None, n: float) -> None:
        super().__init__(log, n)
        self.call_id: Any = None
        self.awaited = 0
        self.heard: list[Message] = []

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if name != "ask":
            return super().call(name, arguments, id)
        self.call_id, self.heard = id, []
        self.awaited = len(arguments["requests"])
        for number, request in enumerate(arguments["requests"]):
            self.send({"jsonrpc": "2.0", "id": f"ask-{number}", **request})
        for number in arguments.get("cancel", []):
            self.awaited -= 1
            self.notify("notifications/cancelled", requestId=f"ask-{number}")
        return None

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        match method, params.get("uri"):
            case "resources/subscribe", "odd://refused":
                return error(-32000, "not this one")
            case "resources/subscribe", "odd://unanswered":
                return None
            case _:
                return super().answer(method, params, id)

    def take_answer(self, message: Message) -> None:
        self.heard.append(message)
        if len(self.heard) == self.awaited:
            self.heard.sort(key=lambda each: str(each["id"]))
            self.send({"jsonrpc": "2.0", "id": self.call_id, **text(json.dumps(self.heard))})


class EarlyPing(Asks):
    """Pings before it answers `initialize`, and answers that after the pong."""

    def __init__(self, log: Path | None, n: float) -> None:
        super().__init__(log, n)
        self.initialize: Message | None = None

    def take(self, message: Message) -> None:
        if message.get("method") == "initialize" and self.initialize is None:
            self.initialize = message
            self.notify("notifications/message", level="info", data="pinging")
            return self.send({"jsonrpc": "2.0", "id": "early", "method": "ping"})
        return super().take(message)

    def take_answer(self, message: Message) -> None:
        if message["id"] == "early" and self.initialize is not None:
            return super().take(self.initialize)
        return super().take_answer(message)


class Reports(Honest):
    """Holds reads and requests of `odd/slow`. Its tool `step` reports their progress, `go` answers them."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method in ("resources/read", "odd/slow"):
            self.held.append((id, params["_meta"]["progressToken"]))
            return None
        return super().answer(method, params, id)

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if name == "step":
            self.n += 1
            for _, token in self.held:
                self.notify("notifications/progress", progressToken=token, progress=self.n)
            return text("reported")
        for held, _ in self.held:
            self.send({"jsonrpc": "2.0", "id": held, "result": {"contents": [{"uri": "odd://", "text": ""}]}})
        return text("gone on")


class Floods(Honest):
    """Sends `--n` pings before it answers a call, and reads nothing meanwhile."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        pings = [b'{"jsonrpc": "2.0", "id": "ping-%d", "method": "ping"}\n' % n for n in range(int(self.n))]
        self.write(b"".join(pings))
        return super().call(name, arguments, id)
