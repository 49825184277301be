from toolpost import Host, ResourceUpdated


async def run(host: Host) -> str:
    notes = host.tooling.get("notes")
    uuid = await notes.subscribe_resource("mem://notes")
    envelope = await host.recv()
    await notes.cancel(uuid)
    match envelope.event:
        case ResourceUpdated(content=text):
            return text
        case other:
            raise RuntimeError(f"nobody asked for {other}")
