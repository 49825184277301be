import toolpost

with toolpost.open_host_sync("toolpost.toml") as host:
    notes = host.tooling.get("notes")
    queued = notes.call_tool("add", {"text": "buy milk"})
    envelope = host.recv(timeout=10)  # seconds
    assert envelope.id == queued
    print(envelope.event.kind, "-", notes.call_tool_blocking("find", {"word": "milk"}).value)
