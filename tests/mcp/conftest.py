"""What tests of kind `mcp` share."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from toolpost.mcp import connection, subscriptions


class _Anyio:
    """anyio, with a `sleep` of its own."""

    def __init__(self, waits: list[float]) -> None:
        self._waits = waits

    async def sleep(self, seconds: float) -> None:
        self._waits.append(seconds)
        await anyio.lowlevel.checkpoint()

    def __getattr__(self, name: str) -> object:
        return getattr(anyio, name)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts to connect or to subscribe; each is noted and not waited."""
    noted: list[float] = []
    monkeypatch.setattr(connection, "anyio", _Anyio(noted))
    monkeypatch.setattr(subscriptions, "anyio", _Anyio(noted))
    return noted
