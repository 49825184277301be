import toolpost


def run(host: toolpost.SyncHost) -> str:
    memory = host.tooling.get("memory")
    graph = memory.subscribe_resource("memory://knowledge-graph")
    grace = {"name": "Grace", "entityType": "person", "observations": ["wrote a compiler"]}
    call = memory.call_tool("create_entities", {"entities": [grace]})

    open_ids = {call, graph}
    while open_ids:
        envelope = host.recv(timeout=10)  # seconds
        open_ids.discard(envelope.id)
        match envelope.event:
            case toolpost.ToolResult(is_error=False):
                host.log("the call is done")
            case toolpost.ResourceUpdated(content=content):
                host.log(f"the graph has changed; Grace is in it: {'Grace' in content}")
            case other:
                raise RuntimeError(f"not expected: {other}")
    return "told of both"
