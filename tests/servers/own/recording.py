"""Runs a server and writes down what passes: `recording.py FILE COMMAND [ARG …]`. Standard library only.

Each line of FILE is a message with its direction: `{"to_server": …}` or `{"to_client": …}`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def main() -> int:
    file, *command = sys.argv[1:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    lock = threading.Lock()

    def record(direction: str, line: bytes) -> None:
        try:
            entry = json.dumps({direction: json.loads(line)})
        except ValueError:
            return
        with lock, Path(file).open("a") as log:
            log.write(entry + "\n")

    def pass_on(source: IO[bytes], sink: IO[bytes], direction: str) -> None:
        try:
            for line in source:
                record(direction, line)
                sink.write(line)
                sink.flush()
            sink.close()
        except (BrokenPipeError, ValueError):
            pass

    to_server = (sys.stdin.buffer, child.stdin, "to_server")
    threading.Thread(target=pass_on, args=to_server, daemon=True).start()
    pass_on(child.stdout, sys.stdout.buffer, "to_client")
    return child.wait()


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status if status >= 0 else 128 - status)  # the other thread may wait in a read
