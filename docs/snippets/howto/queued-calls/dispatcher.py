from toolpost import Error, SyncHost, ToolResult

SLOW = "trigger-long-running-operation"


def run(host: SyncHost) -> str:
    everything = host.tooling.get("everything")
    everything.list_tools()  # starts the server; a limit of a call would have to cover that too
    jobs: dict[str, str] = {}
    for name, seconds in (("long", 2.0), ("short", 0.1)):
        jobs[everything.call_tool(SLOW, {"duration": seconds, "steps": 1})] = name
    jobs[everything.call_tool(SLOW, {"duration": 60, "steps": 1}, timeout=1)] = "too long"
    unwanted = everything.call_tool(SLOW, {"duration": 60, "steps": 1})
    everything.cancel(unwanted)  # the server is told, and nothing of it arrives

    while jobs:
        envelope = host.recv()
        name = jobs.pop(envelope.id)
        match envelope.event:
            case ToolResult(is_error=False):
                host.log(f"{name}: done")
            case ToolResult(value=text) | Error(text=text):
                host.log(f"{name}: {text}")
            case other:
                raise RuntimeError(f"nobody asked for {other}")
    return "every answer is in"
