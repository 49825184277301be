"""The honest server that the odd ones are made of. Standard library only, so it starts at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
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
        self.answers: dict[str, list[Any]] = {}
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
            case "sleep":
                time.sleep(arguments["seconds"])
                return text("slept")
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
