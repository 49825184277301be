"""How often a subscription is lost before it is given up."""

from __future__ import annotations

from toolpost.mcp.losses import STABLE_SECS, Losses


def test_the_waits_double_as_those_of_a_dial_and_stop_where_the_next_would_reach_the_cap() -> None:
    losses = Losses(start=0.1, cap=1)

    assert [losses.pause(0) for _ in range(5)] == [0.1, 0.2, 0.4, 0.8, None]
    assert str(losses) == "5 times in a row, each time within 2 s"


def test_what_held_for_a_while_or_brought_something_makes_the_next_loss_the_first() -> None:
    losses = Losses(start=1, cap=3)

    assert [losses.pause(0), losses.pause(0), losses.pause(STABLE_SECS)] == [1, 2, 1]
    assert [losses.pause(0), losses.pause(0), losses.pause(0, news=True)] == [1, 2, 1]
    assert [losses.pause(0), losses.pause(0), losses.pause(0)] == [1, 2, None]


def test_whatever_the_cap_the_first_loss_is_mended() -> None:
    losses = Losses(start=0.1, cap=0)

    assert [losses.pause(0), losses.pause(0)] == [0.1, None]
    assert [losses.pause(STABLE_SECS), losses.pause(STABLE_SECS), losses.pause(0)] == [0.1, 0.1, 0.1]
