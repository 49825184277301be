from toolpost.testing import HostFactory, MockFactory


def test_the_agents_of_the_config_buy(toolpost_mock: MockFactory, toolpost_host: HostFactory) -> None:
    toolpost_mock("shop").tool("stock").returns("2")

    outcomes = toolpost_host("toolpost.toml").run()

    assert outcomes["buyer"].text == "enough is left"
