import pytest

from toolpost import ResourceUpdated
from toolpost.testing import HostFactory, MockFactory, call


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_change_arrives_once_the_notes_were_read(
    toolpost_mock: MockFactory, toolpost_host: HostFactory
) -> None:
    mock = toolpost_mock("notes").resource("mem://notes", "v1")
    mock.updates("mem://notes", "v2").after(call("read_resource"))

    async with toolpost_host() as host:
        notes = host.tooling.get("notes")
        await notes.subscribe_resource("mem://notes")
        assert (await notes.read_resource("mem://notes")).content == "v1"
        event = (await host.recv()).event

    assert isinstance(event, ResourceUpdated)
    assert event.content == "v2"
