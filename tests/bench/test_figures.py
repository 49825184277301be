"""What `make bench` makes of its figures. The measuring itself is not a test."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench import chart
from bench.bars import verdicts
from bench.page import page
from bench.summary import Summary

ABOUT = {"cores": "2", "Python": "3.11"}


def measured(*rounds: tuple[float, float], metric: str = "many_per_s") -> Summary:
    """Rounds over stdio, of toolpost and of the SDK."""
    both = [{"stdio": {"toolpost": {metric: ours}, "sdk": {metric: sdk}}} for ours, sdk in rounds]
    return Summary(rounds=both, about=ABOUT)


def test_a_ratio_is_taken_within_its_round() -> None:
    # Of the medians alone, 40 and 10, the ratio would be 4.
    summary = measured((50, 10), (40, 8), (5, 1), (30, 20), (40, 20))

    assert summary.ratio("stdio", "toolpost", "many_per_s") == 5


def test_a_round_without_a_figure_does_not_count() -> None:
    summary = measured((50, 10), (40, 10))
    del summary.rounds[0]["stdio"]["sdk"]

    assert summary.ratio("stdio", "toolpost", "many_per_s") == 4
    assert summary.median("stdio", "sdk", "many_per_s") == 10


@pytest.mark.parametrize(("calls", "passed"), [(50, True), (49, False)])
def test_a_bar_is_met_from_its_limit_on(calls: float, passed: bool) -> None:
    summary = measured((calls, 10))

    verdict = next(each for each in verdicts(summary) if each.what == "calls per second, 64 at a time")

    assert verdict.passed is passed


def test_what_was_not_measured_fails() -> None:
    verdict = next(each for each in verdicts(measured((50, 10))) if each.what == "updates lost")

    assert (verdict.value, verdict.passed) == (None, False)


def test_the_page_says_what_is_missing() -> None:
    summary = measured((50, 10))
    summary.notes.append("fastmcp is left out: it is not installed")

    assert "- fastmcp is left out: it is not installed" in page(summary, [], [])


def test_the_chart_has_a_bar_for_each_client_and_transport() -> None:
    drawn = ElementTree.fromstring(chart.draw(measured((50, 10))))

    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 2 * 3
