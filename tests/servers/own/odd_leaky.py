"""Servers that write a secret wherever they can."""

from __future__ import annotations

import base64
import os
import sys
from typing import Any

from odd_base import Honest, Message, error, text, tool


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
