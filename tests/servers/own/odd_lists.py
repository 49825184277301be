"""What is listed, and in which pages."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from odd_base import Honest, Message, error, text, tool
from odd_wire import Malformed


class Structured(Malformed):
    """Has a tool for each output schema in the argument of `declare`, which tells that the list has changed.

    They answer with the JSON in their argument `answer`. With `--n 1` the list of tools is left unanswered.
    """

    schemas: ClassVar[Message] = {"sum": {"type": "object", "properties": {"sum": {"type": "number"}}}}

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        return None if method == "tools/list" and self.n else super().answer(method, params, id)

    def tools(self, cursor: str | None) -> Message:
        return {"tools": [tool(name, outputSchema=schema) for name, schema in self.schemas.items()]}

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if name != "declare":
            return super().call(name, arguments, id)
        self.schemas.clear()
        self.schemas.update(arguments["schemas"])
        self.notify("notifications/tools/list_changed")
        return text("declared")


class Pages(Honest):
    """Lists 50 tools, seven a page."""

    def tools(self, cursor: str | None) -> Message:
        start = int(cursor or 0)
        page: Message = {"tools": [tool(f"tool-{n}") for n in range(start, min(start + 7, 50))]}
        return page | ({"nextCursor": str(start + 7)} if start + 7 < 50 else {})


class CursorLoop(Honest):
    """Gives the cursors a, b, a, b, … for ever."""

    def tools(self, cursor: str | None) -> Message:
        return {"tools": [tool(f"after-{cursor}")], "nextCursor": "b" if cursor == "a" else "a"}


class EndlessPages(Honest):
    """Gives a new cursor for ever."""

    def tools(self, cursor: str | None) -> Message:
        number = int(cursor or 0) + 1
        return {"tools": [tool(f"tool-{number}")], "nextCursor": str(number)}


class SlowPages(EndlessPages):
    """Takes `--n` seconds for each page."""

    def tools(self, cursor: str | None) -> Message:
        time.sleep(self.n)
        return super().tools(cursor)


class BadPage(Honest):
    """Fails at the second page."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "tools/list" and "cursor" in params:
            return error(-32602, "Invalid cursor")
        return super().answer(method, params, id)

    def tools(self, cursor: str | None) -> Message:
        return {"tools": [tool("first")], "nextCursor": "two"}


class UnknownPage(BadPage):
    """Knows no method for page `--n`."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "tools/list" and self.n == (2 if "cursor" in params else 1):
            return error(-32601, f"Method not found: {method}")
        return super().answer(method, params, id)
