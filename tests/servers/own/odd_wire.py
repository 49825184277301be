"""What stands on stdout and stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from odd_base import Honest, Message, error, text


class Noise(Honest):
    """Writes what is no message, and messages in odd clothes: BOM, CRLF, blank lines, two in one write."""

    def start(self) -> None:
        super().start()
        self.write(b"odd server 1.0 starting\n\n\r\n  \n")

    def send_answer(self, message: Message) -> None:
        for noise in (b"\xff\xfe not utf-8", b"17", b'"text"', b"null", b"[]", b"{}", b'{"jsonrpc": "2.0"}'):
            self.write(noise + b"\n")
        self.write(b"\xef\xbb\xbf" + json.dumps(message).encode() + b"\r\n\r\n")


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


class Answers(Honest):
    """Answers a method with what `--answers` has for it: one after the other, and the last for ever.

    A dict is the answer without its id. A text is written as it is, with the id in place of each `ID`.
    """

    def take(self, message: Message) -> None:
        answers = self.answers.get(message.get("method", ""))
        if not answers:
            return super().take(message)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        id = message.get("id")
        if isinstance(answer, str):
            return self.write(answer.replace("ID", json.dumps(id)).encode())
        return self.send({"jsonrpc": "2.0", "id": id, **answer})


class ContentLength(Honest):
    """Frames messages as language servers do."""

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


class NoFinalNewline(Honest):
    """Exits right after its answer to a call, and leaves out the end of the line.

    With `--n 1` a child of it holds stdout open.
    """

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        if self.n:
            self.say(child=subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL).pid)
        answer = {"jsonrpc": "2.0", "id": id, **text(arguments.get("text", ""))}
        self.write(json.dumps(answer).encode())
        sys.exit(0)


class TakesCancelledBadly(Honest):
    """Answers a request that was cancelled with an error; with `--n 1` it exits instead."""

    def take(self, message: Message) -> None:
        if message.get("method") == "notifications/cancelled":
            if self.n:
                sys.exit(1)
            return self.send(
                {"jsonrpc": "2.0", "id": message["params"]["requestId"], **error(0, "cancelled")}
            )
        return super().take(message)


class LogFlood(Honest):
    """Sends `--n` log messages before it answers a call."""

    def call(self, name: str, arguments: Message, id: Any) -> Message | None:
        log = {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "debug", "data": "x" * 100},
        }
        self.write((json.dumps(log).encode() + b"\n") * int(self.n))
        return super().call(name, arguments, id)
