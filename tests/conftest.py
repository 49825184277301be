"""What every test gets: the event loop, Hypothesis profiles, and `needs_node`."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

from tests import real

# No deadline: one example's time says more about the machine than about the code.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if real.CI else "here")

# A shell's background jobs ignore Ctrl-C, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """toolpost runs on asyncio only, and so do its tests."""
    return "asyncio"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a `needs_node` test where there is no Node.js (under CI: fail it)."""
    if item.get_closest_marker("needs_node"):
        real.require_node()
