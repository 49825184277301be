from toolpost import Error, Host, ResourceUpdated

GRAPH = "memory://knowledge-graph"


async def run(host: Host) -> str:
    memory = host.tooling.get("memory")
    following = await memory.subscribe_resource(GRAPH)
    before = await memory.read_resource(GRAPH)
    host.log(f"it starts with {len(before.content)} characters")

    # Somebody else would do this; here the agent does it itself.
    grace = {"name": "Grace", "entityType": "person", "observations": ["wrote a compiler"]}
    await memory.call_tool_blocking("create_entities", {"entities": [grace]})

    envelope = await host.recv(timeout=10)  # seconds
    match envelope.event:
        case ResourceUpdated(uri=uri, content=content) if envelope.id == following:
            host.log(f"{uri} has changed; Grace is in it: {'Grace' in content}")
        case Error(text=text):
            host.log(text, level="warning")
        case other:
            raise RuntimeError(f"nobody asked for {other}")
    await memory.unsubscribe_resource(following)
    return "told of the change"
