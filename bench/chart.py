"""The chart of the README: calls per second, a panel for each transport. Readable on light and on dark."""

from __future__ import annotations

from bench.cells import TRANSPORTS
from bench.summary import OURS, Summary

TITLES = {"stdio": "stdio", "json": "HTTP, JSON answers", "sse": "HTTP, SSE answers"}
NAMES = {"sdk": "SDK Client", "mcp_use": "mcp-use", "langchain_mcp_adapters": "langchain-mcp-adapters"}
"""Where a client is not called as its module with dashes."""

_LABELS, _PANEL, _GAP, _ROW, _TOP = 168, 196, 30, 26, 62
_NUMBERS = 62
"""Room for the number behind the longest bar."""
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .small { font-size: 12px; fill: #57606a }
  .title { font-size: 15px; font-weight: 600 }
  .bar { fill: #8c959f } .ours { fill: #0969da } .strong { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .bar { fill: #6e7681 } .ours { fill: #4493f8 }
  }
"""


def name_of(client: str) -> str:
    """How a client is called in tables."""
    module, _, mode = client.partition(":")
    name = NAMES.get(module, module.replace("_", "-"))
    return f"{name}, {mode}" if mode else name


def draw(summary: Summary) -> str:
    """The chart as SVG."""
    clients = [each for each in summary.clients("stdio") if each != "raw" and ":" not in each]
    clients.sort(key=lambda each: -(summary.median("stdio", each, "many_per_s") or 0))
    height = _TOP + _ROW * len(clients) + 12
    width = _LABELS + (_PANEL + _GAP) * len(TRANSPORTS)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>{_STYLE}</style>",
        '<text class="title" x="0" y="18">Calls per second, 64 at a time</text>',
    ]
    for row, client in enumerate(clients):
        strong = ' class="strong"' if client == OURS else ""
        place = f'x="{_LABELS - 12}" y="{_TOP + row * _ROW + 13}" text-anchor="end"'
        lines.append(f"<text{strong} {place}>{name_of(client)}</text>")
    for column, transport in enumerate(TRANSPORTS):
        left = _LABELS + column * (_PANEL + _GAP)
        lines.append(f'<text class="small" x="{left}" y="{_TOP - 14}">{TITLES[transport]}</text>')
        lines += _bars(summary, transport, clients, left)
    return "\n".join([*lines, "</svg>", ""])


def _bars(summary: Summary, transport: str, clients: list[str], left: int) -> list[str]:
    values = {client: summary.median(transport, client, "many_per_s") or 0.0 for client in clients}
    most = max(values.values(), default=0.0) or 1.0
    lines: list[str] = []
    for row, client in enumerate(clients):
        length = max(1.0, values[client] / most * (_PANEL - _NUMBERS))
        y = _TOP + row * _ROW
        ours = " ours" if client == OURS else ""
        strong = ' class="strong"' if client == OURS else ""
        shown = f"{values[client]:,.0f}" if values[client] else "–"
        lines += [
            f'<rect class="bar{ours}" x="{left}" y="{y}" width="{length:.1f}" height="18" rx="2"/>',
            f'<text{strong} x="{left + length + 6:.1f}" y="{y + 13}">{shown}</text>',
        ]
    return lines
