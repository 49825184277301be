"""Runs one server of a soak.

    python -m tests.soak.serve stdio 2025-11-25 FOLDER
    python -m tests.soak.serve http 2026-07-28 FOLDER --port 4000 [--streams]

FOLDER is its world. With `--streams` answers come as streams of events, and not as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from tests.soak.server import Server
from tests.soak.world import World


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("transport", choices=["stdio", "http"])
    parser.add_argument("era", choices=["2025-11-25", "2026-07-28"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int)
    parser.add_argument("--streams", action="store_true")
    options = parser.parse_args()
    server = Server(World(options.folder), options.era)
    if options.transport == "stdio":
        from tests.soak import stdio_wire

        asyncio.run(stdio_wire.serve(server))
    else:
        from tests.soak import http_wire  # brings aiohttp, which a start over stdio need not wait for

        asyncio.run(http_wire.serve(server, options.port, answers_in_streams=options.streams))


if __name__ == "__main__":
    main()
