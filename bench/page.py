"""The page of results, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.alone.table import Table
from bench.bars import Verdict, verdicts
from bench.cells import TRANSPORTS
from bench.chart import TITLES, name_of
from bench.summary import BASE, Summary

_COLUMNS = (
    ("import, ms", "import_ms"),
    ("cold start, ms", "cold_ms"),
    ("one at a time /s", "one_per_s"),
    ("64 at a time /s", "many_per_s"),
    ("CPU per call, µs: one", "one_cpu_us"),
    ("64", "many_cpu_us"),
    ("64 KiB /s", "big_per_s"),
    ("updates /s", "updates_per_s"),
    ("8 threads /s", "threads_per_s"),
    ("memory, MB", "rss_mb"),
)
_WITHOUT_RATIO = {"import_ms", "cold_ms", "rss_mb"}
_HOW = """\
Every figure is the median of {rounds}, each of which visits every client once, in changing order and
each time in a process of its own. In brackets: how many times the SDK's `Client` in the same round, again the
median. All on loopback, against one server on Node.js without an SDK. CPU is the client's process alone, and
the steadiest figure. Memory is taken after a thousand small calls. An update is counted where the client is
told of it. `raw` is the floor: JSON-RPC by hand, without models, checks, time-outs or cancellation.
`toolpost, untraced` is `open_host(…, trace=False)`."""


def page(summary: Summary, alone: Iterable[Table], captured: Iterable[tuple[str, str]]) -> str:
    """All of it; `captured` is what other measurements print, with their titles."""
    about = ", ".join(f"{name} {version}" for name, version in summary.about.items() if name != "cores")
    parts = [
        "# Results",
        "`make bench` wrote this page.",
        f"Machine: {summary.about['cores']} cores. {about}.",
        "## Bars",
        f"Ratios (×) are to the SDK's `Client` in the same round.\n\n{_verdicts(verdicts(summary))}",
        "## Beside its peers",
        _HOW.format(rounds=_counted(len(summary.rounds))),
        *(_transport(summary, transport) for transport in TRANSPORTS),
    ]
    if summary.notes:
        parts += ["### What is missing", "\n".join(f"- {note}" for note in summary.notes)]
    parts += ["## Alone", *(table.markdown() for table in alone)]
    for title, text in captured:
        parts += [f"### {title}", f"```text\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def _counted(rounds: int) -> str:
    return "1 round" if rounds == 1 else f"{rounds} rounds"


def _verdicts(all_of_them: Iterable[Verdict]) -> str:
    lines = ["| | transport | bar | measured | |", "|---|---|---:|---:|---|"]
    for each in all_of_them:
        value = "not measured" if each.value is None else f"{each.value:.3g}"
        verdict = "pass" if each.passed else "**fail**"
        lines.append(f"| {each.what} | {TITLES[each.transport]} | {each.limit} | {value} | {verdict} |")
    return "\n".join(lines)


def _transport(summary: Summary, transport: str) -> str:
    lines = [
        f"### {TITLES[transport]}",
        "",
        _line(["client", *(title for title, _ in _COLUMNS)]),
        _line(["---", *("---:" for _ in _COLUMNS)]),
    ]
    for client in summary.clients(transport):
        cells = [_cell(summary, transport, client, metric) for _, metric in _COLUMNS]
        lines.append(_line([name_of(client), *cells]))
    return "\n".join([*lines, "", _remarks(summary, transport)])


def _cell(summary: Summary, transport: str, client: str, metric: str) -> str:
    value = summary.median(transport, client, metric)
    if value is None:
        return "–"
    shown = f"{value:,.0f}"
    ratio = summary.ratio(transport, client, metric)
    if ratio is None or client == BASE or metric in _WITHOUT_RATIO:
        return shown
    return f"{shown} ({ratio:.3g})" if ratio >= 10 else f"{shown} ({ratio:.2g})"


def _remarks(summary: Summary, transport: str) -> str:
    """What is told of a transport in sentences."""
    said: list[str] = []
    shares = [(summary.median(transport, each, "server_share"), each) for each in summary.clients(transport)]
    known = [(share, client) for share, client in shares if share is not None]
    if known:
        most, client = max(known)
        said.append(
            f"The server's share of a core at 64 at a time: at most {most:.0%}, with {name_of(client)}."
        )
    for client in summary.clients(transport):
        queued = summary.median(transport, client, "queued_per_s")
        envelopes = summary.median(transport, client, "envelopes_per_s")
        if queued is not None and envelopes is not None:
            said.append(
                f"{name_of(client)}: {queued:,.0f} calls/s queued and received through the inbox,"
                f" {summary.median(transport, client, 'queued_cpu_us'):,.0f} µs CPU per call;"
                f" {envelopes:,.0f} envelopes/s while the updates come, which fold."
            )
    opened = [
        f"{name_of(client)} {count:,.0f}"
        for client in summary.clients(transport)
        if (count := summary.median(transport, client, "connections")) is not None
    ]
    if opened:
        said.append(f"TCP connections opened during 1,000 calls, one after the other: {', '.join(opened)}.")
    return "\n".join(f"- {each}" for each in said)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
