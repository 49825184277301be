import buyer

from toolpost.testing import HostFactory, MockFactory, TraceView, call, inbound


def test_what_is_gone_is_ordered(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    shop = toolpost_mock("shop")
    shop.tool("stock", arguments={"item": "^milk$"}).returns("0")
    shop.tool("order").returns("on its way")

    outcome = toolpost_host().run(buyer.run)

    assert outcome.text == "on its way"
    toolpost_trace.expect(
        [
            call("call_tool", name="order", arguments={"count": 6}),
            inbound("tool-result"),
        ]
    )


def test_a_refusal_is_told(toolpost_mock: MockFactory, toolpost_host: HostFactory) -> None:
    shop = toolpost_mock("shop")
    shop.tool("stock").returns("0")
    shop.tool("order").fails("closed on Sundays")

    assert "closed on Sundays" in str(toolpost_host().run(buyer.run).text)


def test_nothing_is_ordered_while_some_is_left(
    toolpost_mock: MockFactory, toolpost_host: HostFactory, toolpost_trace: TraceView
) -> None:
    toolpost_mock("shop").tool("stock").returns("2")

    toolpost_host().run(buyer.run)

    assert toolpost_trace.calls("call_tool") == []
