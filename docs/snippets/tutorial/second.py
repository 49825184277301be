import toolpost


def run(host: toolpost.SyncHost) -> str:
    memory = host.tooling.get("memory")
    graph = memory.subscribe_resource("memory://knowledge-graph")
    grace = {"name": "Grace", "entityType": "person", "observations": ["wrote a compiler"]}
    call = memory.call_tool("create_entities", {"entities": [grace]})

    told = dict[str, toolpost.Event]()
    while len(told) < 2:
        envelope = host.recv(timeout=10)  # seconds
        told[envelope.id] = envelope.event

    match told[call], told[graph]:
        case toolpost.ToolResult(is_error=False), toolpost.ResourceUpdated(content=content):
            host.log(f"the call is done; Grace is in the graph: {'Grace' in content}")
        case other:
            raise RuntimeError(f"not expected: {other}")
    return "told of both"
