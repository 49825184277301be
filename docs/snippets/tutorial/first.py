import toolpost


def run(host: toolpost.SyncHost) -> str:
    memory = host.tooling.get("memory")
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    memory.call_tool_blocking("create_entities", {"entities": [ada]})

    found = memory.call_tool_blocking("search_nodes", {"query": "program"})
    print(found.value)
    return "Ada is remembered"
