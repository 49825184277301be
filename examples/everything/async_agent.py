"""The agent `watcher`: subscriptions to one resource and to the list of them; events carry content."""

from __future__ import annotations

from toolpost import Host, ResourceListUpdated, ResourceUpdated

DOCUMENT = "demo://resource/static/document/features.md"


async def run(host: Host) -> str:
    everything = host.tooling.get("everything")
    # Subscribe first, then read: in this order no change falls between the two.
    to_document = await everything.subscribe_resource(DOCUMENT)
    to_list = await everything.subscribe_resource_list()
    document = await everything.read_resource(DOCUMENT)
    before = await everything.list_resources()
    print(f"[watcher] {len(before)} resources; watching {document.uri}")

    # This server pretends that subscribed resources change, once it has been asked to.
    await everything.call_tool_blocking("toggle-subscriber-updates")
    # And this adds a resource, so the list changes for real.
    arguments = {"name": "note.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
    await everything.call_tool_blocking("gzip-file-as-resource", arguments)

    told: set[str] = set()
    while told != {to_document, to_list}:
        envelope = await host.recv(timeout=60)
        match envelope.event:
            case ResourceUpdated(uri=uri, content=content):
                if envelope.id not in told:
                    print(f"[watcher] {uri} was updated: {len(content)} characters")
            case ResourceListUpdated(resources=after):
                new = {each.uri for each in after} - {each.uri for each in before}
                if envelope.id not in told:
                    print(f"[watcher] the list has changed; new in it: {', '.join(sorted(new))}")
            case other:
                raise RuntimeError(f"not an update: {other}")
        told.add(envelope.id)

    await everything.unsubscribe_resource(to_document)
    await everything.unsubscribe_resource_list(to_list)
    await everything.call_tool_blocking("toggle-subscriber-updates")
    return "told of both changes"
