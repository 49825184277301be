from toolpost import Error, Host, ToolResult


async def run(host: Host) -> str:
    """Order milk if none is left."""
    shop = host.tooling.get("shop")
    stock = await shop.call_tool_blocking("stock", {"item": "milk"})
    if stock.value != "0":
        return "enough is left"
    await shop.call_tool("order", {"item": "milk", "count": 6})
    match (await host.recv()).event:
        case ToolResult(value=said):
            return said
        case Error(text=why):
            return f"not ordered: {why}"
        case other:
            return f"not ordered, but {other.kind}"
