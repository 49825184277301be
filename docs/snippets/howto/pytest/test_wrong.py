import buyer

from toolpost.testing import HostFactory, MockFactory, TraceView, call


def test_a_dozen_is_ordered(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    shop = toolpost_mock("shop")
    shop.tool("stock").returns("0")
    shop.tool("order").returns("on its way")

    toolpost_host().run(buyer.run)

    toolpost_trace.expect([call("call_tool", arguments={"item": "milk", "count": 12})])
