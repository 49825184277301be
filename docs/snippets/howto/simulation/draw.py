import toolpost

CONFIG = {"tooling": {"shop": {"kind": "mock", "tool_calls": [{"name": "take", "result": "the last one"}]}}}


async def customer(host: toolpost.Host) -> str:
    try:
        result = await host.tooling.get("shop").call_tool_blocking("take")
    except toolpost.ScriptError:
        return "too late"
    return result.value


def winner(seed: int) -> str:
    agents = {"ada": customer, "bob": customer}
    outcomes = toolpost.run(CONFIG, agents=agents, simulate=True, seed=seed)
    return next(name for name, outcome in outcomes.items() if outcome.text == "the last one")


print(winner(0))
print(sorted({winner(seed) for seed in range(100)}))
