"""A scripted MCP server that does one thing badly. Standard library only, so it starts at once.

    odd.py MODE [--log FILE] [--n N]

`--log` records, a JSON line each, what it received and what it says of itself (`{"self": …}`). Without a
quirk (mode `honest`) it is a good server of 2025-11-25, with tools that break it on request. Calls of
`hold` are answered when `release` is called, the last first. A mode is a class; its docstring says the quirk.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

Message = dict[str, Any]


def tool(name: str, **more: Any) -> Message:
    return {"name": name, "inputSchema": {"type": "object"}} | more


def error(code: int, message: str, data: Any = None) -> Message:
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}


def text(value: str, **more: Any) -> Message:
    return {"result": {"content": [{"type": "text", "text": value}], **more}}


class Honest:
    """Nothing odd."""

    VERSION: ClassVar[str] = "2025-11-25"
    CAPABILITIES: ClassVar[Message] = {
        "tools": {},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
    }

    def __init__(self, log: Path | None, n: float) -> None:
        self.log_file = log
        self.n = n
        self.held: list[Any] = []
        self.client_capabilities: Message = {}

    # -- what modes change -----------------------------------------------------------------------

    def start(self) -> None:
        self.say(pid=os.getpid())

    def take(self, message: Message) -> None:
        """One message from the client."""
        if "method" not in message:
            return self.take_answer(message)
        if "id" not in message:
            return None
        answer = self.answer(message["method"], message.get("params") or {}, message["id"])
        if answer is not None:
            self.send_answer({"jsonrpc": "2.0", "id": message["id"], **answer})
        return None

    def take_answer(self, message: Message) -> None: ...

    def send_answer(self, message: Message) -> None:
        self.send(message)

    def end(self) -> None:
        """stdin has ended."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        match method:
            case "initialize":
                self.client_capabilities = params["capabilities"]
                return {
                    "result": {
                        "protocolVersion": self.VERSION,
                        "capabilities": self.CAPABILITIES,
                        "serverInfo": {"name": "odd", "version": "1"},
                    }
                }
            case "ping" | "resources/subscribe" | "resources/unsubscribe":
                return {"result": {}}
            case "tools/list":
                return {"result": self.tools(params.get("cursor"))}
            case "tools/call":
                return self.call(params["name"], params.get("arguments") or {}, id)
            case "resources/list":
                return {"result": {"resources": [{"uri": "odd://one", "name": "one"}]}}
            case "resources/read":
                return {"result": {"contents": [{"uri": params["uri"], "text": f"of {params['uri']}"}]}}
            case _:
                return error(-32601, f"Method not found: {method}")

    def tools(self, cursor: str | None) -> Message:
        return {"tools": [tool("echo"), tool("pid")]}

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        match name:
            case "echo":
                return text(arguments.get("text", ""))
            case "pid":
                return text(str(os.getpid()))
            case "environ":
                return text(json.dumps(dict(os.environ)))
            case "client":
                return text(json.dumps(self.client_capabilities))
            case "big":
                return text("x" * int(arguments["size"]))
            case "fail":
                return text("no", isError=True)
            case "hold":
                self.held.append((id, arguments.get("text", "")))
                return None
            case "release":
                while self.held:
                    held, said = self.held.pop()
                    self.send({"jsonrpc": "2.0", "id": held, **text(said)})
                return text("released")
            case "notify":
                self.send({"jsonrpc": "2.0", "method": arguments["method"], "params": arguments["params"]})
                return text("notified")
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                sys.stderr.write("leaving as asked\n")
                sys.exit(int(arguments.get("status", 0)))
            case "close_stdout":
                os.close(1)
                return None
            case "close_stdin":
                os.close(0)
                self.send({"jsonrpc": "2.0", "id": id, **text("deaf now")})
                time.sleep(60)
            case _:
                pass
        return error(-32602, f"Unknown tool: {name}")

    # -- what they use ---------------------------------------------------------------------------

    def record(self, entry: Any) -> None:
        if self.log_file is not None:
            with self.log_file.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def say(self, **facts: Any) -> None:
        self.record({"self": facts})

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def run(self) -> None:
        self.start()
        with open(0, "rb", closefd=False) as lines:
            for line in lines:
                message = json.loads(line)
                self.record(message)
                self.take(message)
        self.end()


# -- starting and shaking hands --------------------------------------------------------------------


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


class NotFound(Honest):
    """Knows no resource."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "resources/read":
            return error(-32002, f"Resource not found: {params['uri']}", {"uri": params["uri"]})
        return super().answer(method, params, id)


class LeavesOnceSubscribed(Honest):
    """Exits when it has agreed to a subscription."""

    def take(self, message: Message) -> None:
        super().take(message)
        if message.get("method") == "resources/subscribe":
            sys.exit(1)


class Bare(Honest):
    """Declares no capability."""

    CAPABILITIES: ClassVar[Message] = {}


# -- the wire --------------------------------------------------------------------------------------


class Noise(Honest):
    """Writes what is no message, and messages in odd clothes: BOM, CRLF, blank lines, two in one write."""

    def start(self) -> None:
        super().start()
        self.write(b"odd server 1.0 starting\n\n\r\n  \n")

    def send_answer(self, message: Message) -> None:
        for noise in (b"\xff\xfe not utf-8", b"17", b'"text"', b"null", b"[]", b"{}", b'{"jsonrpc": "2.0"}'):
            self.write(noise + b"\n")
        self.write(b"\xef\xbb\xbf" + json.dumps(message).encode() + b"\r\n\r\n")


class Banner(Honest):
    """Writes `--n` bytes that are no message before it reads."""

    def start(self) -> None:
        super().start()
        self.write(b"banner " * (int(self.n) // 7) + b"\n")


class NoiseWithoutEnd(Honest):
    """Writes 5000 lines that are no message before every answer to a call."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        self.write(b"".join(b"noise %d\n" % number for number in range(5000)))
        return super().call(name, arguments, id)


class StringIds(Honest):
    """Answers with ids turned into strings."""

    def send_answer(self, message: Message) -> None:
        self.send(message | {"id": str(message["id"])})


class FloatIds(Honest):
    """Answers with ids turned into floats."""

    def send_answer(self, message: Message) -> None:
        self.send(message | {"id": float(message["id"])})


class DuplicateAnswers(Honest):
    """Answers every call twice, differently, after 100 answers that nobody asked for."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        for unknown in range(1_000_000, 1_000_100):
            self.send({"jsonrpc": "2.0", "id": unknown, **text("foreign")})
        self.send({"jsonrpc": "2.0", "id": id, **text(arguments.get("text", ""))})
        return text("second")


class ZeroIds(Honest):
    """Answers every call under the id 0."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        self.send({"jsonrpc": "2.0", "id": 0, **text("lost")})
        return None


class Malformed(Honest):
    """Answers a call with the JSON that its argument `answer` holds."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        return arguments["answer"] if "answer" in arguments else super().call(name, arguments, id)


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


class Forgetful(Modern):
    """Leaves out what every result of 2026-07-28 must have."""

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        answer = super().answer(method, params, id)
        if answer is not None and "result" in answer and method != "server/discover":
            for key in ("resultType", "ttlMs", "cacheScope"):
                answer["result"].pop(key, None)
        return answer


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


class StderrFlood(Honest):
    """Writes 1 MiB of lines to stderr before each answer."""

    def send_answer(self, message: Message) -> None:
        sys.stderr.write(("flood " * 16 + "\n") * 10_900)
        sys.stderr.flush()
        super().send_answer(message)


class StderrWithoutNewline(Honest):
    """Writes 300 KiB without a line's end, and not UTF-8, to stderr before each answer."""

    def send_answer(self, message: Message) -> None:
        os.write(2, b"\xff\xfeflood " * 37_000)
        super().send_answer(message)


# -- what it lists ---------------------------------------------------------------------------------


class BadTools(Honest):
    """Lists usable tools among others."""

    def tools(self, cursor: str | None) -> Message:
        no_schema = {"name": "no_schema"}
        null = tool("null_schema", inputSchema=None)
        return {"tools": [tool("good"), no_schema, null, {"inputSchema": {}}, 7, tool("good too")]}


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


# -- being ended -----------------------------------------------------------------------------------


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


# -- asking the client -----------------------------------------------------------------------------


class Asks(Honest):
    """Sends the requests in the argument `requests` during a call; answers it with all answers to them.

    Refuses a subscription to odd://refused, and leaves one to odd://unanswered without an answer.
    """

    def __init__(self, log: Path | None, n: float) -> None:
        super().__init__(log, n)
        self.call_id: Any = None
        self.awaited = 0
        self.answers: list[Message] = []

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if name != "ask":
            return super().call(name, arguments, id)
        self.call_id, self.answers = id, []
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
        self.answers.append(message)
        if len(self.answers) == self.awaited:
            self.answers.sort(key=lambda each: str(each["id"]))
            self.send({"jsonrpc": "2.0", "id": self.call_id, **text(json.dumps(self.answers))})


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


class Leaky(Honest):
    """Writes the variable LEAK wherever it can: stderr, log messages, errors, results, noise, tools."""

    def start(self) -> None:
        super().start()
        secret = os.environ["LEAK"]
        sys.stderr.write(f"starting with {secret}\n")
        sys.stderr.write("x" * 990 + secret + "\n")
        sys.stderr.write(base64.b64encode(secret.encode()).decode() + "\n")
        sys.stderr.flush()
        self.write(f"noise with {secret}\n".encode())
        for before in range(175, 191, 3):
            self.write(b"x" * before + secret.encode() + b"\n")
        self.notify("notifications/message", level="error", data=f"early {secret}")

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        secret = os.environ["LEAK"]
        if method == "resources/read":
            return error(-32603, f"cannot read with {secret}", {"token": secret})
        if method == "server/discover":
            return error(-32601, f"no method, but {secret}")
        if method == "initialize" and self.n:
            return error(-32603, f"refused, since {secret}")
        return super().answer(method, params, id)

    def tools(self, cursor: str | None) -> Message:
        secret = os.environ["LEAK"]
        return {"tools": [tool("echo"), {"name": f"bad-{secret}"}]}

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        secret = os.environ["LEAK"]
        match name := name.removesuffix(secret):
            case "malformed_notification":
                params = {"level": 7, "data": f"{'x' * 8}{secret}{'y' * 80}"}
                self.notify("notifications/message", **params)
                self.notify("notifications/resources/updated", uri=[params["data"]])
                return text("notified")
            case "leak":
                self.notify("notifications/message", level="info", logger=secret, data={"why": [secret]})
                return text(f"the secret is {secret}")
            case "refuse":
                return error(-32000, f"{secret} is not enough")
            case "malformed":
                return {"result": [secret]}
            case "die":
                sys.stderr.write(f"dying of {secret}\n")
                sys.exit(5)
            case _:
                return super().call(name, arguments, id)


class LeakyResults(Leaky):
    """Has LEAK as its own name, in its output schemas, and in results that do not fit them."""

    def start(self) -> None:
        self.say(pid=os.getpid())

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        answer = super().answer(method, params, id)
        if method == "initialize" and answer is not None:
            answer["result"]["serverInfo"] = {"name": os.environ["LEAK"], "version": os.environ["LEAK"]}
        return answer

    def tools(self, cursor: str | None) -> Message:
        secret = os.environ["LEAK"]
        schemas = {
            "strict": {"properties": {"s": {"const": f"{'x' * 188}{secret}"}}},
            "dangling": {"$ref": f"#/{secret}"},
            "wrong": {"type": f"{'x' * 188}{secret}"},
            f"none-{secret}": secret,
        }
        return {"tools": [tool(name, outputSchema=schema) for name, schema in schemas.items()]}

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        secret = os.environ["LEAK"]
        result = {"content": [secret], "structuredContent": {"s": f"{'y' * 180}{secret}"}}
        return {"result": result | ({"isError": True} if name == "fail" else {})}


class LeakyStart(Leaky):
    """Says LEAK on stderr and exits; with `--n 1` it speaks a version of that name."""

    def start(self) -> None:
        if not self.n:
            sys.stderr.write(f"no access with {os.environ['LEAK']}\n")
            sys.exit(3)

    def answer(self, method: str, params: Message, id: Any) -> Message | None:
        if method == "initialize":
            return {
                "result": {
                    "protocolVersion": os.environ["LEAK"],
                    "capabilities": {},
                    "serverInfo": {"name": "odd", "version": "1"},
                }
            }
        return super().answer(method, params, id)


def _mode(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name).lstrip("_")


def _modes(root: type[Honest]) -> dict[str, Callable[[Path | None, float], Honest]]:
    found: dict[str, Callable[[Path | None, float], Honest]] = {_mode(root.__name__): root}
    for each in root.__subclasses__():
        found |= _modes(each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=(modes := _modes(Honest)))
    parser.add_argument("--log", type=Path)
    parser.add_argument("--n", type=float, default=0)
    options = parser.parse_args()
    try:
        modes[options.mode](options.log, options.n).run()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)


if __name__ == "__main__":
    main()
