import toolpost


def run(host: toolpost.SyncHost) -> str:
    desk = host.tooling.get("desk")
    start = host.now()
    opinion = desk.call_tool_blocking("review", {"chapter": 1}).value
    host.sleep(3600)
    return f"{opinion}, after {host.now() - start:.0f} s"
