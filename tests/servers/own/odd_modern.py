"""The protocol of 2026-07-28."""

from __future__ import annotations

from typing import Any, ClassVar

from odd_base import Honest, Message, error, text
from odd_wire import Answers


class Modern(Honest):
    """Speaks 2026-07-28 as well. Its tool `touch` tells the last stream that `uri` has changed.

    It refuses to listen for odd://refused, leaves odd://unanswered without an answer, and agrees to nothing
    for odd://nothing.
    """

    SUBSCRIPTION: ClassVar[str] = "io.modelcontextprotocol/subscriptionId"
    stream: Any = None

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "server/discover":
            info = {"name": "odd", "version": "1"}
            found = {"supportedVersions": ["2026-07-28"], "capabilities": self.CAPABILITIES}
            answer: Message | None = {"result": {**found, "serverInfo": info}}
        elif method == "subscriptions/listen":
            answer = self.listen(params["notifications"], id)
        else:
            answer = super().answer(method, params, id)
        if answer is not None and "result" in answer and method != "initialize":
            answer["result"] |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return answer

    def listen(self, wanted: Message, id: Any) -> Message | None:
        match wanted.get("resourceSubscriptions"):
            case ["odd://refused"]:
                return error(-32000, "not this one")
            case ["odd://unanswered"]:
                return None
            case ["odd://nothing"]:
                honored: Message = {}
            case _:
                honored = wanted
        self.stream = id
        meta = {self.SUBSCRIPTION: id}
        self.notify("notifications/subscriptions/acknowledged", notifications=honored, _meta=meta)
        return None

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if name == "touch":
            meta = {self.SUBSCRIPTION: self.stream}
            self.notify("notifications/resources/updated", uri=arguments["uri"], _meta=meta)
            return text("touched")
        return super().call(name, arguments, id)


class Forgetful(Modern):
    """Leaves out what every result of 2026-07-28 must have."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        answer = super().answer(method, params, id)
        if answer is not None and "result" in answer and method != "server/discover":
            for key in ("resultType", "ttlMs", "cacheScope"):
                answer["result"].pop(key, None)
        return answer


class WantsHeaders(Modern):
    """Refuses a call for a header until the tools have been listed; always with `--n 1`."""

    listed = False

    def tools(self, cursor: str | None) -> Message:
        self.listed = True
        return super().tools(cursor)

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if self.n or not self.listed:
            return error(-32020, "Mcp-Param-Region is missing")
        return super().call(name, arguments, id)


class EndsStreams(Modern):
    """Ends each stream as soon as it has confirmed it, and after a change with `--n 1`."""

    def listen(self, wanted: Message, id: Any) -> Message | None:
        super().listen(wanted, id)
        if self.n:
            self.call("touch", {"uri": wanted["resourceSubscriptions"][0]}, None)
        return {"result": {"_meta": {self.SUBSCRIPTION: id}}}


class ModernAnswers(Answers, Modern):
    """`Answers` of 2026-07-28."""
