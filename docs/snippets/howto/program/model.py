import toolpost

with toolpost.open_host_sync("toolpost.toml") as host:
    notes = host.tooling.get("notes")
    tools = toolpost.model_names(notes.list_tools())
    offered = [
        {"name": name, "description": tool.description, "parameters": tool.input_schema}
        for name, tool in tools.items()
    ]
    print([each["name"] for each in offered])

    chosen, arguments = "find", '{"word": "milk"}'  # what the model answers
    print(notes.call_tool_blocking(tools[chosen].name, arguments).value)
