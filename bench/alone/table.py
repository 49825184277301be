"""A table of figures, for the terminal and for the page of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Its first column is text, the others are figures."""

    title: str
    note: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rules = ["---", *("---:" for _ in self.head[1:])]
        lines = [" | ".join(row) for row in (self.head, rules, *self.rows)]
        return "\n".join([f"### {self.title}", "", self.note, "", *(f"| {line} |" for line in lines)])


def rate(per_second: float) -> str:
    """So many per second, of which three figures count."""
    if per_second >= 1e6:
        return f"{per_second / 1e6:.2f} M"
    return f"{float(f'{per_second:.3g}'):,.0f}"


def micros(microseconds: float) -> str:
    """A time, of which three figures count."""
    return f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:,.0f}"
