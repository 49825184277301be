"""What becomes of subscriptions and reads."""

from __future__ import annotations

import sys
from typing import Any

from odd_base import Honest, Message, error
from odd_modern import Modern


class DiesOverSubscription(Modern):
    """Exits over a subscription, before it answers."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method in ("resources/subscribe", "subscriptions/listen"):
            sys.exit(1)
        return super().answer(method, params, id)


class RefusesSubscription(Modern):
    """Refuses a subscription in the words of who asked."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method in ("resources/subscribe", "subscriptions/listen"):
            return error(-32000, f"not for {params}")
        return super().answer(method, params, id)


class IgnoresSubscription(Modern):
    """Leaves a subscription without an answer."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method in ("resources/subscribe", "subscriptions/listen"):
            return None
        return super().answer(method, params, id)


class LeavesOnceSubscribed(Honest):
    """Exits when it has agreed to a subscription."""

    def take(self, message: Message) -> None:
        super().take(message)
        if message.get("method") == "resources/subscribe":
            sys.exit(1)


class NotFound(Honest):
    """Knows no resource."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "resources/read":
            return error(-32002, f"Resource not found: {params['uri']}", {"uri": params["uri"]})
        return super().answer(method, params, id)
