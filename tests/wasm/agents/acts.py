"""What the tests have an agent do, as an agent in Python and as a guest: `params.act` says which."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import toolpost
from toolpost import SyncHost


def run(host: SyncHost) -> Any:
    return ACTS[host.params["act"]](host)


def plan(host: SyncHost) -> str:
    """Does what `params.plan` lists, each `[operation, argument…]`, and tells what came of it."""
    told: list[Any] = []
    uuids: list[str] = []
    for op, *listed in host.params["plan"]:
        args = list(listed)
        keywords: Any = args.pop() if args and isinstance(args[-1], dict) and "timeout" in args[-1] else {}
        handle: Any = host if hasattr(host, op) else host.tooling.get(host.params.get("tooling", "box"))
        if op in ("cancel", "is_open", "unsubscribe_resource", "unsubscribe_resource_list"):
            args[0] = uuids[args[0]] if isinstance(args[0], int) else args[0]
        try:
            came: Any = getattr(handle, op)(*args, **keywords)
        except toolpost.ToolpostError as error:
            came = f"{type(error).__name__}: {error}"
        if op in ("call_tool", "subscribe_resource", "subscribe_resource_list"):
            uuids.append(came)
        told.append(came)
    return "\n".join(map(in_json, told))


def puppet(host: SyncHost) -> str | None:
    """Does what `params` says, which is new each time, and tells what came of it as the name of a tooling.

    So the strings are pulled without a trace, and without a wait.
    """
    mcp: Any = host.tooling.get("mcp")
    while "end" not in (told := type(host)().params):  # pyright: ignore[reportCallIssue]: of guests, which keeps them
        name, args, kwargs = told["call"]
        try:
            came: Any = getattr(host if hasattr(host, name) else mcp, name)(*args, **kwargs)
        except toolpost.ToolpostError as error:
            came = {"error": type(error).__name__, "text": str(error)}
        host.tooling.get(in_json(came))
    if told["end"] == "failed":
        raise ValueError("no luck")
    return "bye" if told["end"] == "exited" else None


def in_json(value: Any) -> str:
    def fields(each: Any) -> Any:
        names = [*getattr(each, "__struct_fields__", ()), *getattr(each, "__dataclass_fields__", ())]
        return {"is": type(each).__name__, **{name: getattr(each, name) for name in names if name != "kind"}}

    return json.dumps(value, default=fields, sort_keys=True)


def odd_arguments(host: SyncHost) -> str:
    """Which of them are refused, and as what."""
    deep: list[Any] = []
    for _ in range(200_000):
        deep = [deep]
    itself: dict[str, Any] = {}
    itself["itself"] = itself
    odd: list[Any] = [
        *(None, 7, ["a"], b"{}", {"a"}, {b"a": 1}, {1: "a"}, {"a": object()}, {"a": {1}}),
        *({"a": float("nan")}, {"a": "\ud83d"}, {"\ud83d": 1}, {"a": deep}, itself),
        *("", "null", "7", '{"a": NaN}', '{"a": 1e999}', '{"a": "\ud83d"}', '{"a": "\\ud83d"}'),
        *('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", '{"a":' * 201 + "1" + "}" * 201),
    ]
    box: Any = host.tooling.get("box")
    return ", ".join(attempt(lambda each=each: box.call_tool("echo", each)) for each in odd)


def say(host: SyncHost) -> Any:
    return host.params["text"]


def fail(host: SyncHost) -> None:
    raise ValueError(f"{host.name} cannot go on")


def wrong_type(host: SyncHost) -> Any:
    return 5


def leave(host: SyncHost) -> None:
    sys.exit(3)


def hold(host: SyncHost) -> str:
    """Gets handles until it may not have another."""
    held: list[Any] = []
    try:
        while True:
            held.append(host.tooling.get("box"))
    except toolpost.UsageError as error:
        del held[:]
        host.tooling.get("box")
        return str(error)


def follow(host: SyncHost) -> str:
    """Subscribes until it may not; ends one, and subscribes again."""
    box = host.tooling.get("box")
    opened: list[str] = []
    try:
        while True:
            opened.append(box.subscribe_resource_list())
    except toolpost.UsageError as error:
        box.unsubscribe_resource_list(opened[0])
        box.subscribe_resource_list()
        return str(error)


def ungranted(host: SyncHost) -> str:
    try:
        host.tooling.get("safe")
    except toolpost.UnknownTooling as error:
        return str(error)
    return "granted"


def large(host: SyncHost) -> str:
    text = "x" * 10_000_000
    result = host.tooling.get("box").call_tool_blocking("echo", {"text": text})
    host.log(text)
    return f"{len(result.arguments)} there, {len(result.value)} back"


def bad_json(host: SyncHost) -> str:
    try:
        host.tooling.get("box").call_tool("echo", "{")
    except toolpost.UsageError as error:
        return str(error)
    return "queued"


def after_shutdown(host: SyncHost) -> str:
    assert isinstance(host.recv(60).event, toolpost.Shutdown)
    told: list[str] = []
    for receive in (lambda: host.recv(1), host.try_recv):
        try:
            told.append(repr(receive()))
        except toolpost.HostClosed as error:
            told.append(str(error))
    return ", ".join(told)


def wait(host: SyncHost) -> str:
    return host.recv(60).event.kind


def allocate(host: SyncHost) -> None:
    kept: list[bytes] = []
    while True:
        kept.append(bytes(1_000_000))


def recurse(host: SyncHost) -> None:
    recurse(host)


def loop(host: SyncHost) -> None:
    host.log("looping")
    while True:
        pass


def ask(host: SyncHost) -> None:
    """What a stopped host answers, too."""
    host.log("asking")
    while True:
        host.now()


def doze(host: SyncHost) -> None:
    time.sleep(3600)


def loop_once_told(host: SyncHost) -> None:
    host.recv(60)
    while True:
        pass


def see(host: SyncHost) -> str:
    """What the system gives it."""
    seen: dict[str, Any] = {"env": dict(os.environ), "argv": sys.argv[1:]}
    for path in host.params["paths"]:
        seen[path] = attempt(lambda path=path: Path(path).read_text())
    for path in host.params.get("writes", []):
        seen[f"to {path}"] = attempt(lambda path=path: Path(path).write_text("by a guest"))
    there = ("127.0.0.1", host.params["port"])
    seen["connect"] = attempt(lambda: socket.socket().connect(there))
    seen["bind"] = attempt(lambda: socket.socket().bind(("127.0.0.1", 0)))
    seen["send"] = attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"hello", there))
    seen["look up"] = attempt(lambda: socket.getaddrinfo(b"localhost", 80))
    seen["root"] = attempt(lambda: len(list(Path("/").iterdir())))
    return json.dumps(seen)


def attempt(what: Callable[[], object]) -> Any:
    try:
        return what()
    except Exception as error:
        return f"{type(error).__name__}"


def speak(host: SyncHost) -> None:
    print("one line, and")
    print("another: Zürich", end="", flush=True)
    print(host.params.get("secret", ""), file=sys.stderr)


def call_often(host: SyncHost) -> str:
    """How long a blocking call takes, in seconds, by its own clock."""
    box = host.tooling.get("box")
    count = host.params["count"]
    start = time.perf_counter()
    for _ in range(count):
        box.call_tool_blocking("echo", '{"n":1}')
    return str((time.perf_counter() - start) / count)


ACTS: dict[str, Callable[[SyncHost], Any]] = {
    each.__name__: each
    for each in (
        *(
            plan,
            puppet,
            odd_arguments,
            say,
            fail,
            wrong_type,
            leave,
            hold,
            follow,
            ungranted,
            large,
            bad_json,
            after_shutdown,
            wait,
        ),
        *(allocate, recurse, loop, ask, loop_once_told, doze, see, speak, call_often),
    )
}
