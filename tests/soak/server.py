"""An MCP server to be killed: what it answers, whatever carries that. It has nothing to lose: see world.py.

    messages ──▶ Server.answer ──▶ answers          state ──(looked at often)──▶ followers

Its one tool, `echo`, is noted in the journal and answered with its own argument. Resources are what the state
has, and whoever follows one is told when the state changes.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.soak.world import State, World

Message: TypeAlias = dict[str, Any]
LOOK_SECS = 0.02
"""Between two looks at the state."""
LIST = ""
"""The key of the list of resources, among URIs."""
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES: Message = {"tools": {}, "resources": {"subscribe": True, "listChanged": True}}
INFO: Message = {"name": "soak", "version": "1"}
COMPLETE: Message = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What every result of 2026-07-28 must have."""


@dataclass(eq=False)
class Follower:
    """Whoever is told of changes: a session until 2025-11-25, a stream of `subscriptions/listen` after it."""

    send: Callable[[Message], None]
    keys: set[str] = field(default_factory=lambda: {LIST})
    stream: Any = None
    """The id of the request that opened the stream."""
    hang_up: Callable[[], None] = lambda: None
    """Ends the stream."""

    def tell(self, key: str) -> None:
        about: Message = {} if self.stream is None else {"_meta": {SUBSCRIPTION: self.stream}}
        if key == LIST:
            self.send(notification("notifications/resources/list_changed", **about))
        else:
            self.send(notification("notifications/resources/updated", uri=key, **about))


class Server:
    """What it answers, whatever carries it."""

    def __init__(self, world: World, era: str) -> None:
        self.era = era
        self.is_modern = era >= "2026"
        self.followers: dict[Follower, None] = {}
        self._world = world
        self._journal = world.open_journal()
        self._version = world.version()
        self._state = world.read()

    # -- what it is asked ----------------------------------------------------------------------------

    async def answer(self, message: Message, client: Follower) -> Message | None:
        """The answer to a request; None where there is none, or the stream that it opened is the answer."""
        if "id" not in message or "method" not in message:
            return None
        params: Message = message.get("params") or {}
        await self.dawdle()
        if message["method"] == "subscriptions/listen":
            self._listen(params["notifications"], client)
            return None
        result = self._result(message["method"], params, client)
        await self.dawdle()
        if result is None:
            error = {"code": -32601, "message": f"Method not found: {message['method']}"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": result | (COMPLETE if self.is_modern else {}),
        }

    def _result(self, method: str, params: Message, client: Follower) -> Message | None:
        match method:
            case "initialize" if not self.is_modern:
                self._note("greeted")
                return {"protocolVersion": self.era, "capabilities": CAPABILITIES, "serverInfo": INFO}
            case "server/discover" if self.is_modern:
                self._note("greeted")
                return {"supportedVersions": [self.era], "capabilities": CAPABILITIES, "serverInfo": INFO}
            case "tools/list":
                return {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                self._note(f"call {params['arguments']['token']}")
                return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
            case "resources/list":
                return {"resources": [{"uri": uri, "name": uri} for uri in self._state.resources]}
            case "resources/read":
                text = self._state.resources[params["uri"]]
                return {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text}]}
            case "resources/subscribe" if not self.is_modern:
                client.keys.add(params["uri"])
                return {}
            case "resources/unsubscribe" if not self.is_modern:
                client.keys.discard(params["uri"])
                return {}
            case "ping":
                return {}
            case _:
                return None

    async def dawdle(self) -> None:
        """Take a while, where the state wants that: what comes later may overtake this."""
        if self._state.delay:
            await asyncio.sleep(random.uniform(0, self._state.delay))

    def _listen(self, wanted: Message, stream: Follower) -> None:
        stream.keys = set(wanted.get("resourceSubscriptions") or ())
        if wanted.get("resourcesListChanged"):
            stream.keys.add(LIST)
        self.followers[stream] = None
        acknowledged = "notifications/subscriptions/acknowledged"
        stream.send(notification(acknowledged, notifications=wanted, _meta={SUBSCRIPTION: stream.stream}))

    def _note(self, line: str) -> None:
        os.write(self._journal, f"{line}\n".encode())

    # -- what it tells -------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Look at the state again and again, and tell who follows what has changed."""
        while True:
            await asyncio.sleep(LOOK_SECS)
            version = self._world.version()
            if version == self._version:
                continue
            self._version, before, self._state = version, self._state, self._world.read()
            for key in changed(before, self._state):
                for follower in tuple(self.followers):
                    if key in follower.keys:
                        follower.tell(key)
            if self._state.hang_ups != before.hang_ups:
                for follower in tuple(self.followers):
                    follower.hang_up()


def changed(before: State, after: State) -> Iterator[str]:
    """The URIs whose content has changed, and `LIST` where the list has."""
    if before.resources.keys() != after.resources.keys():
        yield LIST
    yield from (uri for uri, text in after.resources.items() if before.resources.get(uri, text) != text)


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}
