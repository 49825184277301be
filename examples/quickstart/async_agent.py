"""The agent `watcher`: the same calls with `await`. It is told when a resource changes."""

from __future__ import annotations

from toolpost import Host, ResourceUpdated


async def run(host: Host) -> None:
    notebook = host.tooling.get("notebook")
    resources = await notebook.list_resources()
    print(f"[watcher] the notebook has the resources {', '.join(each.uri for each in resources)}")

    # From now on changes of this resource come to the inbox, under this id. Subscribe first, then read:
    # in this order no change falls between the two.
    subscription = await notebook.subscribe_resource("notes://all")
    notes = await notebook.read_resource("notes://all")
    print(f"[watcher] subscribed to notes://all, which has {len(notes.text().splitlines())} lines")

    await notebook.call_tool_blocking("add_note", {"text": "the agents were here"})

    envelope = await host.recv(timeout=30)
    match envelope.event:
        case ResourceUpdated(uri=uri, content=content):
            print(f"[watcher] {uri} has changed, and now ends with {content.splitlines()[-1]!r}")
        case other:
            raise RuntimeError(f"not an update: {other}")

    await notebook.unsubscribe_resource(subscription)
    print(f"[watcher] unsubscribed; is it still open? {notebook.is_open(subscription)}")
