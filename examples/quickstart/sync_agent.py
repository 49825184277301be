"""The agent `finder`: plain blocking code. It lists tools, calls one in place, and queues two calls."""

from __future__ import annotations

from toolpost import SyncHost, ToolResult


def run(host: SyncHost) -> str:
    notebook = host.tooling.get("notebook")  # connects to nothing yet

    # The first call that needs the server starts it. Both agents share that one server.
    tools = notebook.list_tools()
    print(f"[finder]  the notebook has the tools {', '.join(tool.name for tool in tools)}")

    # A call in place: it waits for the result.
    result = notebook.call_tool_blocking("find_notes", {"word": "is"})
    print(f"[finder]  called in place: {result.value!r}")

    # Queued calls: each gives its id at once, and its result comes to the inbox under that id.
    words: list[str] = host.params["words"]
    asked = {notebook.call_tool("find_notes", {"word": word}): word for word in words}
    print(f"[finder]  queued {len(asked)} calls; now the inbox is read")
    for _ in words:
        envelope = host.recv(timeout=30)
        match envelope.event:
            case ToolResult(value=value):
                print(f"[finder]  the answer for {asked[envelope.id]!r} is in the inbox: {value!r}")
            case other:
                raise RuntimeError(f"not a result: {other}")
    return f"found notes for {len(words)} words"  # the agent's outcome; None would do as well
