"""A short soak in the suite; `make soak` runs a long one."""

from __future__ import annotations

import sys

import pytest

from tests.soak.plan import Options
from tests.soak.run import soak

SHORT = Options(seed=1, calls=500, agents=10, subscriptions=40, seconds=5, faults=20, window=8, limit_secs=2)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.timeout(400)  # more than all its own bounds
def test_calls_and_subscriptions_keep_their_promises_on_servers_that_die_stop_stall_and_come_back() -> None:
    report = soak(SHORT)
    assert list(report.broken()) == []
    assert report.calls == SHORT.calls
    assert report.answered
    assert report.lost, "no fault has met a call"
    assert report.updates
    assert report.connections > 5, "no server was started again"
