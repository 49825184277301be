"""What the rounds come to: medians, and ratios that are taken within each round."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.cell import Figures

BASE = "sdk"
"""The client that others are compared with."""
OURS = "toolpost"


@dataclass
class Summary:
    """The figures of every cell. A cell that failed has no figures, and a note that says why."""

    rounds: list[dict[str, dict[str, Figures]]] = field(default_factory=list[Any])
    """Of each round, by transport and client."""
    notes: list[str] = field(default_factory=list[str])
    about: dict[str, str] = field(default_factory=dict[str, str])
    """The machine, and the versions of what was measured."""

    def add(self, transport: str, client: str, figures: Figures) -> None:
        """Of the last round."""
        self.rounds[-1].setdefault(transport, {}).setdefault(client, {}).update(figures)

    def values(self, transport: str, client: str, metric: str) -> list[float | None]:
        """One value for each round."""
        return [each.get(transport, {}).get(client, {}).get(metric) for each in self.rounds]

    def median(self, transport: str, client: str, metric: str) -> float | None:
        """None where nothing was measured."""
        known = [value for value in self.values(transport, client, metric) if value is not None]
        return median(known) if known else None

    def ratio(self, transport: str, client: str, metric: str, base_metric: str = "") -> float | None:
        """How many times the base's figure of the same round; the median of the rounds."""
        ours = self.values(transport, client, metric)
        base = self.values(transport, BASE, base_metric or metric)
        known = [one / other for one, other in zip(ours, base, strict=True) if one is not None and other]
        return median(known) if known else None

    def clients(self, transport: str) -> list[str]:
        """Those with figures."""
        return list(dict.fromkeys(client for each in self.rounds for client in each.get(transport, {})))

    def to_json(self) -> dict[str, Any]:
        return {"about": self.about, "notes": self.notes, "rounds": self.rounds}
