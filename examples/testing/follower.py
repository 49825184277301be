"""Waits for a resource that was not there before, and follows it until it changes."""

from __future__ import annotations

from toolpost import Host, ResourceListUpdated, ResourceUpdated


async def run(host: Host) -> str:
    desk = host.tooling.get("desk")
    # Subscribe first, then look: in this order no change falls between the two.
    await desk.subscribe_resource_list()
    known = {each.uri for each in await desk.list_resources()}
    match (await host.recv()).event:
        case ResourceListUpdated(resources=listed):
            new = next(each.uri for each in listed if each.uri not in known)
        case other:
            raise RuntimeError(f"not a list: {other}")

    subscription = await desk.subscribe_resource(new)
    before = await desk.read_resource(new)
    match (await host.recv()).event:
        case ResourceUpdated(content=after):
            await desk.unsubscribe_resource(subscription)
            return f"{new}: {before.text()}, then {after}"
        case other:
            raise RuntimeError(f"not a change: {other}")
