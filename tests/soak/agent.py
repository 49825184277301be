"""One agent of a soak, and the record that it keeps.

An agent is written once, as a generator of host calls, and runs on either face: `in_task` awaits what it
yields, `in_thread` has it already, since the calls of the sync face return when they are done.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import toolpost
from tests.soak.plan import KINDS, RESOURCES, Options, uri
from tests.soak.server import LIST

Work: TypeAlias = Generator[Any, Any, None]
AnyHost: TypeAlias = toolpost.Host | toolpost.SyncHost
CANCELS, RESUBSCRIBES, BIG, HURRIES = 0.05, 0.01, 0.02, 0.05
"""How often, for each call."""
HURRY_SECS = 0.2
"""The limit of a call that has one of its own."""
BIG_CHARACTERS = 64 * 1024
TICK_SECS = 0.5
LOOKS = 10
"""How often an agent tries to read what it has subscribed to; then it takes what comes."""
MOST_SAID = 5

EXPECTED = (
    "the connection was lost",
    "the connection was down",
    "no answer within",
    "no connection within",
    "did not confirm within",
    "cannot connect",
)
"""What an error says that a fault of ours explains."""
NEVER_SENT = ("the connection was down", "no connection within", "cannot connect")
"""What an error says that denies that the call had any effect."""


class Stage:
    """What agents and their adversary know of each other. Read and set from several threads."""

    def __init__(self, options: Options) -> None:
        self._at_work = options.agents
        self._calls = options.calls
        self._made = 0
        self._lock = threading.Lock()
        self.calls_are_done = threading.Event()
        """No agent has a call left."""
        self.last_change = threading.Event()
        """Every resource has its last content, and the servers are well."""
        self.last: dict[tuple[str, str], str] = {}
        """By tooling and key: what subscribers must see in the end."""

    @property
    def share_of_calls(self) -> float:
        """How many of all calls have been made."""
        return self._made / max(self._calls, 1)

    def count_call(self) -> None:
        with self._lock:
            self._made += 1

    def finish_calls(self) -> None:
        """Of one agent."""
        with self._lock:
            self._at_work -= 1
            if self._at_work == 0:
                self.calls_are_done.set()


@dataclass
class Followed:
    """A subscription that is alive."""

    tooling: str
    key: str
    value: str | None = None
    """What was seen last."""


@dataclass
class Record:
    """What one agent knows of its calls and subscriptions."""

    calls: int = 0
    answered: int = 0
    lost: int = 0
    """Calls that ended with an error."""
    denied: list[str] = field(default_factory=list[str])
    """Tokens of calls that were never sent, as their errors say."""
    cancelled: int = 0
    after_the_end: int = 0
    """Envelopes under the UUID of a call that was answered or cancelled before."""
    open: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Token and text by UUID. What is left here at the end was silent."""
    subscriptions: dict[str, Followed] = field(default_factory=dict[str, Followed])
    seen: int = 0
    """Updates."""
    renewed: int = 0
    """Subscriptions that ended with an error, and were made anew."""
    errors: Counter[str] = field(default_factory=Counter[str])
    """By what explains them, all that were told or raised."""
    odd: list[str] = field(default_factory=list[str])
    """What nothing explains."""

    def complain(self, what: str) -> None:
        if len(self.odd) < MOST_SAID:
            self.odd.append(what)


class SoakAgent:
    """Calls, cancels, subscribes, and writes down what comes of it."""

    def __init__(self, name: str, options: Options, stage: Stage, *, calls: int, subscriptions: int) -> None:
        self.name = name
        self.record = Record()
        self._options = options
        self._stage = stage
        self._calls = calls
        self._subscriptions = subscriptions
        self._chance = random.Random(f"{options.seed}/{name}")
        self._left: set[str] = set()
        """Subscriptions that ended: what still waits of them says nothing new."""

    async def in_task(self, host: toolpost.Host) -> None:
        work = self._work(host)
        step: Any = None
        error: Exception | None = None
        while True:
            try:
                given: object = work.throw(error) if error is not None else work.send(step)
            except StopIteration:
                return
            step, error = None, None
            try:
                step = await cast("Awaitable[Any]", given) if isinstance(given, Awaitable) else given
            except Exception as raised:
                error = raised

    def in_thread(self, host: toolpost.SyncHost) -> None:
        work = self._work(host)
        step: Any = None
        while True:
            try:
                step = work.send(step)
            except StopIteration:
                return

    # -- what it does --------------------------------------------------------------------------------

    def _work(self, host: AnyHost) -> Work:
        try:
            for _ in range(self._subscriptions):
                yield from self._subscribe(host, self._any_tooling(), self._any_key())
            yield from self._make_calls(host)
            for uuid in list(self.record.subscriptions):
                yield from self._renew(host, uuid)
        finally:
            self._stage.finish_calls()
        yield from self._see_the_last(host)

    def _make_calls(self, host: AnyHost) -> Work:
        """In bursts, as they come due, until each has its outcome or nothing comes any more."""
        record, started = self.record, time.monotonic()
        heard = started
        while record.calls < self._calls or record.open:
            room = min(self._options.window - len(record.open), self._calls - record.calls)
            if room and time.monotonic() >= started + self._options.seconds * record.calls / self._calls:
                for _ in range(self._chance.randint(1, room)):
                    yield from self._call(host)
            came = yield from self._receive(host, TICK_SECS)
            if came or not record.open:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._options.silent_secs:
                return

    def _call(self, host: AnyHost) -> Work:
        record, chance = self.record, self._chance
        token = f"{self.name}/{record.calls}"
        text = token + "." * (BIG_CHARACTERS if chance.random() < BIG else chance.randrange(40))
        handle = host.tooling.get(self._any_tooling())
        record.calls += 1
        self._stage.count_call()
        limit = HURRY_SECS if chance.random() < HURRIES else None
        uuid = yield handle.call_tool("echo", {"token": token, "text": text}, timeout=limit)
        record.open[uuid] = token, text
        if chance.random() < CANCELS:
            given_up = chance.choice(list(record.open))
            yield handle.cancel(given_up)
            del record.open[given_up]
            record.cancelled += 1
        if chance.random() < RESUBSCRIBES and record.subscriptions:
            uuid = chance.choice(list(record.subscriptions))
            yield from self._renew(host, uuid)

    def _subscribe(self, host: AnyHost, tooling: str, key: str) -> Work:
        """Subscribe, then look: whatever changes from then on is told."""
        handle = host.tooling.get(tooling)
        uuid = yield (handle.subscribe_resource_list() if key == LIST else handle.subscribe_resource(key))
        followed = self.record.subscriptions[uuid] = Followed(tooling, key)
        for _ in range(LOOKS):
            try:
                found = yield (handle.list_resources() if key == LIST else handle.read_resource(key))
            except toolpost.ToolpostError as error:
                self._explain(str(error))
            else:
                followed.value = listed(found) if key == LIST else found.content
                return

    def _renew(self, host: AnyHost, uuid: str) -> Work:
        followed = self.record.subscriptions.pop(uuid)
        handle = host.tooling.get(followed.tooling)
        is_list = followed.key == LIST
        yield (handle.unsubscribe_resource_list(uuid) if is_list else handle.unsubscribe_resource(uuid))
        yield from self._subscribe(host, followed.tooling, followed.key)

    def _see_the_last(self, host: AnyHost) -> Work:
        """Wait for the last content of everything that it follows."""
        while not self._stage.last_change.is_set():
            yield from self._receive(host, TICK_SECS)
        give_up = time.monotonic() + self._options.see_secs
        while self.blind(self._stage.last) and time.monotonic() < give_up:
            yield from self._receive(host, TICK_SECS)

    def blind(self, last: Mapping[tuple[str, str], str]) -> list[Followed]:
        """The subscriptions that have not seen the last content."""
        followed = self.record.subscriptions.values()
        return [each for each in followed if each.value != last[each.tooling, each.key]]

    # -- what comes ----------------------------------------------------------------------------------

    def _receive(self, host: AnyHost, seconds: float) -> Generator[Any, Any, bool]:
        """Take an envelope; False where none came."""
        try:
            envelope: toolpost.Envelope = yield host.recv(seconds)
        except toolpost.RecvTimeout:
            return False
        record, uuid = self.record, envelope.id
        if uuid in record.open:
            self._take_outcome(*record.open.pop(uuid), envelope.event)
        elif uuid in record.subscriptions:
            yield from self._take_change(host, uuid, envelope.event)
        elif uuid not in self._left:
            record.after_the_end += 1
            record.complain(f"{envelope.event.kind} under a UUID that had come to its end")
        return True

    def _take_outcome(self, token: str, text: str, event: toolpost.Event) -> None:
        match event:
            case toolpost.ToolResult(value=value, arguments=arguments):
                self.record.answered += 1
                if value != text or json.loads(arguments)["token"] != token:
                    self.record.complain(f"call {token} was answered with {value[:40]!r}")
            case toolpost.Error(text=said):
                self.record.lost += 1
                self._explain(said)
                if any(each in said for each in NEVER_SENT):
                    self.record.denied.append(token)
            case _:
                self.record.complain(f"call {token} was answered with {event.kind}")

    def _take_change(self, host: AnyHost, uuid: str, event: toolpost.Event) -> Work:
        record, followed = self.record, self.record.subscriptions[uuid]
        match event:
            case toolpost.ResourceUpdated(content=content):
                record.seen += 1
                followed.value = content
            case toolpost.ResourceListUpdated(resources=resources):
                record.seen += 1
                followed.value = listed(resources)
            case toolpost.Error(text=said):
                self._explain(said)
                if not host.tooling.get(followed.tooling).is_open(uuid):
                    del record.subscriptions[uuid]
                    self._left.add(uuid)
                    record.renewed += 1
                    yield from self._subscribe(host, followed.tooling, followed.key)
            case _:
                record.complain(f"subscription to {followed.key!r} brought {event.kind}")

    def _explain(self, said: str) -> None:
        known = next((each for each in EXPECTED if each in said), None)
        self.record.errors[known or "something else"] += 1
        if known is None:
            self.record.complain(said)

    def _any_tooling(self) -> str:
        return self._chance.choice(KINDS).name

    def _any_key(self) -> str:
        return self._chance.choice([LIST, *map(uri, range(RESOURCES))])


def listed(resources: object) -> str:
    """A list of resources as a value to compare."""
    return listed_uris(each.uri for each in cast("list[toolpost.ResourceInfo]", resources))


def listed_uris(uris: Iterable[str]) -> str:
    return " ".join(sorted(uris))
