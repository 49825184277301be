"""For the tests of the house."""

from __future__ import annotations

import pytest

from tests.memory import Memory


@pytest.fixture(params=[False, True], ids=["driven", "futures"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with calls that somebody has to drive, once with futures, which are under way as they are."""
    monkeypatch.setattr(Memory, "drives_calls", request.param)
