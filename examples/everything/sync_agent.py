"""The agent `worker`: tools in place and queued, 32 calls open at once, and one that is cancelled."""

from __future__ import annotations

from toolpost import Error, SyncHost, ToolResult

CALLS = 32


def run(host: SyncHost) -> str:
    everything = host.tooling.get("everything")

    tools = [tool.name for tool in everything.list_tools()]
    total = everything.call_tool_blocking("get-sum", {"a": 2, "b": 3}).value
    print(f"[worker]  {len(tools)} tools; called in place: {total}")

    # The first of them takes longest, so the answers come in another order than the calls were made in.
    queued: list[str] = []
    for number in range(CALLS):
        arguments = {"duration": 1.5 - number * 0.03, "steps": 1}
        queued.append(everything.call_tool("trigger-long-running-operation", arguments))
    at_once = sum(everything.is_open(uuid) for uuid in queued)
    print(f"[worker]  {at_once} calls are open at once")

    # This one is given up: the server is told, and nothing of it comes to the inbox.
    given_up = everything.call_tool("trigger-long-running-operation", {"duration": 0.7, "steps": 1})
    everything.cancel(given_up)

    answered: list[str] = []
    while len(answered) < CALLS:
        envelope = host.recv(timeout=30)
        match envelope.event:
            case ToolResult(is_error=False):
                answered.append(envelope.id)
            case ToolResult(value=text) | Error(text=text):
                raise RuntimeError(f"a call failed: {text}")
            case _:
                raise RuntimeError(f"nobody asked for {envelope}")
    assert sorted(answered) == sorted(queued), "one answer for each call"
    assert given_up not in answered, "and none for the cancelled one"
    order = "another order" if answered != queued else "the same order"
    print(f"[worker]  {len(answered)} answers, in {order}; the cancelled call stayed silent")
    return f"{len(answered)} calls answered"
