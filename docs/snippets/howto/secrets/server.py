"""A server that has a key, and is careless with it."""

import os
import sys

from mcp.server import MCPServer

server = MCPServer("vault")
KEY = os.environ.get("API_KEY", "")


@server.tool()
def who() -> str:
    """Whose key this is."""
    return f"a key of {len(KEY)} characters" if KEY else "no key"


if __name__ == "__main__":
    if KEY.startswith("wrong"):
        sys.exit(f"cannot sign in with {KEY}")
    server.run("stdio")
