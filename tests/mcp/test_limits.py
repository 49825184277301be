"""Limits that share timers: each runs out at its own time, and not before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolpost.host.simulation import SimulatedLoop
from toolpost.mcp.clock import EXTENDS, Clock, Limits

limits = st.sampled_from((1.0, 2.0, 2.0, 2.0, 5.0))
steps = st.one_of(
    st.tuples(st.just("start"), limits, st.sampled_from((0.0, 0.0, 0.5, 3.0))),
    st.tuples(st.just("stop"), st.integers(0, 9), st.none()),
    st.tuples(st.just("restart"), st.integers(0, 9), st.none()),
    st.tuples(st.just("wait"), st.sampled_from((0.25, 1.0, 3.0)), st.none()),
)


class Timed:
    def __init__(self, limit: float, started: float) -> None:
        self.clock = Clock(limit, started)
        self.expired_at: float | None = None
        self.due: float | None = max(self.clock.deadline, asyncio.get_running_loop().time())
        """None once it is stopped."""

    def expire(self) -> None:
        assert self.expired_at is None, "once"
        self.expired_at = asyncio.get_running_loop().time()


async def play(script: list[tuple[str, Any, Any]]) -> None:
    all_of_them: list[Timed] = []
    loop, kept = asyncio.get_running_loop(), Limits(2.0)
    for what, which, earlier in script:
        if what == "start":
            each = Timed(which, loop.time() - earlier)
            all_of_them.append(each)
            kept.start(each)
        elif what == "wait":
            await asyncio.sleep(which)
        elif all_of_them:
            each = all_of_them[int(which) % len(all_of_them)]
            if each.expired_at is not None or each.due is None:
                continue
            if what == "stop":
                each.due = None
                kept.stop(each)
            else:
                kept.restart(each)
                each.due = each.clock.deadline
                assert each.due <= each.clock.started + EXTENDS * each.clock.limit
    await asyncio.sleep(100)
    for each in all_of_them:
        assert each.expired_at == (None if each.due is None else pytest.approx(each.due))


@given(st.lists(steps, max_size=30))
def test_each_runs_out_at_its_own_time_whatever_the_others_do(script: list[tuple[str, Any, Any]]) -> None:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(play(script))


async def test_no_limit_needs_no_timer_and_what_is_closed_never_runs_out() -> None:
    kept, loop = Limits(0.01), asyncio.get_running_loop()
    endless, closed, before = (
        Timed(float("inf"), loop.time()),
        Timed(0.01, loop.time()),
        Timed(0.01, loop.time() - 0.005),
    )
    for each in (endless, closed, before):
        kept.start(each)
    kept.close()
    await asyncio.sleep(0.03)
    assert [each.expired_at for each in (endless, closed, before)] == [None, None, None]
