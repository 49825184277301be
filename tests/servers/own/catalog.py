"""A server with something of everything that the command line shows. Standard library only.

    catalog.py [--log FILE]

Its tools answer with the arguments that they got, and have schemas of every kind. Its resources are texts,
binary and several at once. SIGUSR1 makes it say that `shop://readme.md` changed, SIGUSR2 that the list did.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n\x00\xff").decode()
BIG = 5_000_000

POINT: Object = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"$ref": "#/$defs/size"}}}
SCHEMAS: dict[str, Object] = {
    "add": {
        "type": "object",
        "properties": {
            "a": {"type": "number", "description": "First number"},
            "b": {"type": "number", "title": "Second number"},
        },
        "required": ["a", "b"],
    },
    "book": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "guests": {"type": "integer", "minimum": 1},
            "quiet": {"type": "boolean"},
            "size": {"enum": ["small", "large"], "description": "How large the table is"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
            },
        },
        "required": ["title"],
        "additionalProperties": False,
    },
    "refer": {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/point"}},
        "required": ["at"],
        "$defs": {"point": POINT, "size": {"type": "integer"}},
    },
    "either": {
        "type": "object",
        "oneOf": [
            {"properties": {"by": {"const": "name"}, "name": {"type": "string"}}, "required": ["by", "name"]},
            {"properties": {"by": {"const": "id"}, "id": {"type": "integer"}}, "required": ["by", "id"]},
        ],
    },
    "bare": {"type": "object"},
    "strange": {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/a.json"}}},
    "pictures": {"type": "object", "properties": {}},
    "steps": {"type": "object", "properties": {}},
    "big": {"type": "object", "properties": {}},
}


def contents(uri: str) -> list[Object]:
    """What a resource holds; nothing where there is none."""
    match uri:
        case "shop://readme.md":
            return [text(uri, "# The shop\n\nOpen **daily**, 8 €.\n", "text/markdown")]
        case "shop://two.txt":
            return [text(uri, "one", "text/plain"), text(f"{uri}/2", "two", "text/plain")]
        case "shop://sign.png":
            return [blob(uri, "image/png")]
        case "shop://mixed":
            return [blob(uri, "image/png"), text(f"{uri}/about.txt", "about", "text/plain")]
        case "shop://escapes":
            return [text(uri, "a\x1b[2Jb\n", "text/plain")]
        case "shop://big":
            return [text(uri, "x" * BIG, "application/json")]
        case _:
            return []


def text(uri: str, value: str, mime_type: str) -> Object:
    return {"uri": uri, "text": value, "mimeType": mime_type}


def blob(uri: str, mime_type: str) -> Object:
    return {"uri": uri, "blob": PIXEL, "mimeType": mime_type}


URIS = [
    "shop://readme.md",
    "shop://two.txt",
    "shop://sign.png",
    "shop://mixed",
    "shop://escapes",
    "shop://big",
]
PROMPTS: list[Object] = [
    {
        "name": "greet",
        "description": "Greets",
        "arguments": [{"name": "who", "required": True}, {"name": "how"}],
    },
    {"name": "close", "title": "Closing time"},
]
TEMPLATES: list[Object] = [
    {"uriTemplate": "shop://shelf/{number}", "name": "shelf", "mimeType": "text/plain"},
    {"uriTemplate": "shop://bill/{id}", "name": "bill", "description": "A bill"},
]


class Server:
    """One run."""

    def __init__(self, log: Path | None) -> None:
        self.log = log
        self.uris = list(URIS)

    def answer(self, method: str, params: Object) -> Object:
        match method:
            case "initialize":
                resources = {"subscribe": True, "listChanged": True}
                return {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}, "resources": resources, "prompts": {}},
                    "serverInfo": {"name": "catalog", "version": "1"},
                }
            case "tools/list":
                return {"tools": [{"name": name, "inputSchema": each} for name, each in SCHEMAS.items()]}
            case "tools/call":
                return {"content": self.call(params["name"], params)}
            case "resources/list":
                return {"resources": [{"uri": each, "name": each} for each in self.uris]}
            case "resources/templates/list":
                return page("resourceTemplates", TEMPLATES, params)
            case "prompts/list":
                return page("prompts", PROMPTS, params)
            case "resources/read":
                if found := contents(params["uri"]):
                    return {"contents": found}
                raise LookupError(f"no resource {params['uri']}")
            case "ping" | "resources/subscribe" | "resources/unsubscribe":
                return {}
            case _:
                raise NotImplementedError(method)

    def call(self, name: str, params: Object) -> list[Object]:
        match name:
            case "pictures":
                return [
                    {"type": "text", "text": "two pictures and a bill"},
                    {"type": "image", "data": PIXEL, "mimeType": "image/png"},
                    {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
                    {"type": "resource", "resource": text("shop://bill/7.txt", "7 €", "text/plain")},
                ]
            case "steps":
                token = params["_meta"]["progressToken"]
                for step in range(1, 5):
                    progress = {"progressToken": token, "progress": step, "message": f"step {step}"}
                    self.notify("notifications/progress", progress | ({"total": 4} if step > 1 else {}))
                return [{"type": "text", "text": "done"}]
            case "big":
                return [{"type": "text", "text": "x" * BIG}]
            case _:
                return [{"type": "text", "text": json.dumps(params["arguments"], ensure_ascii=False)}]

    def on_changed(self, *_: object) -> None:
        self.notify("notifications/resources/updated", {"uri": "shop://readme.md"})

    def on_list_changed(self, *_: object) -> None:
        self.uris = ["shop://new", *self.uris[1:]]
        self.notify("notifications/resources/list_changed", {})

    def notify(self, method: str, params: Object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: Object) -> None:
        rest = json.dumps(message).encode() + b"\n"
        while rest:
            rest = rest[os.write(1, rest) :]

    def record(self, entry: Object) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def run(self) -> None:
        signal.signal(signal.SIGUSR1, self.on_changed)
        signal.signal(signal.SIGUSR2, self.on_list_changed)
        self.record({"self": {"pid": os.getpid()}})
        for line in sys.stdin:
            message = json.loads(line)
            if "id" not in message:
                continue
            try:
                result = {"result": self.answer(message["method"], message.get("params") or {})}
            except NotImplementedError as error:
                result = {"error": {"code": -32601, "message": f"Method not found: {error}"}}
            except LookupError as error:
                result = {"error": {"code": -32002, "message": str(error)}}
            self.send({"jsonrpc": "2.0", "id": message["id"], **result})
            self.record(message)  # after the answer: who sees it here knows that it is answered


def page(key: str, items: list[Object], params: Object) -> Object:
    """One item a page."""
    at = int(params.get("cursor") or 0)
    return {key: items[at : at + 1]} | ({"nextCursor": str(at + 1)} if at + 1 < len(items) else {})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    Server(parser.parse_args().log).run()
