"""The bars: what must hold, figure by figure, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.summary import OURS, Summary


@dataclass(frozen=True)
class Bar:
    """One bar of one transport. Ratios are to the SDK's `Client` in the same round."""

    what: str
    metric: str
    limits: dict[str, float]
    """By transport."""
    is_most: bool = False
    """The limit is the most that it may be, not the least."""
    base_metric: str = ""
    is_ratio: bool = True


@dataclass(frozen=True)
class Verdict:
    """How a figure stands to its bar."""

    what: str
    transport: str
    limit: str
    value: float | None
    """None where it was not measured."""
    passed: bool


BARS = (
    Bar(
        "CPU per call, 64 at a time", "many_cpu_us", {"stdio": 0.25, "json": 0.18, "sse": 0.14}, is_most=True
    ),
    Bar("calls per second, 64 at a time", "many_per_s", {"stdio": 5, "json": 6, "sse": 8}),
    Bar(
        "the same, queued and received",
        "queued_per_s",
        {"stdio": 3.5, "json": 5, "sse": 5},
        base_metric="many_per_s",
    ),
    Bar("calls per second, one at a time", "one_per_s", {"stdio": 1.6, "json": 3, "sse": 4}),
    Bar("calls per second, from 8 threads", "threads_per_s", {"stdio": 3, "json": 3, "sse": 3}),
    Bar("results of 64 KiB per second, 64 at a time", "big_per_s", {"stdio": 1.2, "json": 3, "sse": 3}),
    Bar("updates per second", "updates_per_s", {"stdio": 5, "json": 5, "sse": 5}),
    Bar("updates lost", "updates_lost", {"stdio": 0, "json": 0, "sse": 0}, is_most=True, is_ratio=False),
    Bar("connections opened during 1,000 calls", "connections", {"sse": 3}, is_most=True, is_ratio=False),
    Bar("first result of a new process", "cold_ms", {"stdio": 1.1, "json": 1.25, "sse": 1.25}, is_most=True),
    Bar("connect and first result, once imported", "first_ms", {"json": 0.8, "sse": 0.8}, is_most=True),
)


def verdicts(summary: Summary) -> Iterator[Verdict]:
    """A verdict for each bar of each transport."""
    for bar in BARS:
        for transport, limit in bar.limits.items():
            if bar.is_ratio:
                value = summary.ratio(transport, OURS, bar.metric, bar.base_metric)
            else:
                value = summary.median(transport, OURS, bar.metric)
            passed = value is not None and (value <= limit if bar.is_most else value >= limit)
            words = f"{'≤' if bar.is_most else '≥'} {limit:g}{' ×' if bar.is_ratio else ''}"
            yield Verdict(bar.what, transport, words, value, passed)
