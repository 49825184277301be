"""All toolings side by side: the table of `check --connect`, which fills in while servers answer.

A row is a tooling; what is not known yet is an ellipsis. On a narrow terminal each tooling is a few lines
instead, one under the other, and on a pipe one line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from toolpost.cli.terminal import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from toolpost.cli.session import Session
    from toolpost.model import JsonObject

WIDE = 90
"""From so many columns on, the columns of the table have room beside each other."""
PENDING = "…"
_NUMBERS = ("tools", "resources", "ms")


@contextmanager
def live(session: Session, toolings: Mapping[str, JsonObject]) -> Generator[Callable[[], None]]:
    """Show the table; what is given draws it anew, after a change. Its last state stays."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, highlight=False)
    console.print()
    with Live(
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        # the log goes on above the table; a log that goes elsewhere is let alone
        redirect_stderr=session.talk.is_terminal,
    ) as drawn:

        def show() -> None:
            drawn.update(rendered(toolings, console.width), refresh=True)

        show()
        yield show


def rendered(toolings: Mapping[str, JsonObject], width: int) -> RenderableType:
    """The table for a terminal so wide. What failed is told below it, where there is room for it."""
    from rich.console import Group
    from rich.text import Text

    if width < WIDE:
        return _stack(toolings)
    failed = [name for name, tooling in toolings.items() if "error" in tooling]
    told_below = [
        Text(f"\n{printable(name)}: {_beside(name, toolings[name]).removeprefix('FAILED: ')}", "red")
        for name in failed
    ]
    return Group(_table(toolings), *told_below)


def _table(toolings: Mapping[str, JsonObject]) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("tooling", "kind", "server", "protocol", "capabilities", *_NUMBERS):
        table.add_column(
            heading,
            justify="right" if heading in _NUMBERS else "left",
            no_wrap=heading in ("kind", "protocol", *_NUMBERS),
            overflow="fold",
        )
    for name, tooling in toolings.items():
        texts = [Text(each) for each in cells_of(name, tooling)]
        if "error" in tooling:
            texts[2].stylize("red")
        table.add_row(*texts)
    return table


def _stack(toolings: Mapping[str, JsonObject]) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for name, tooling in toolings.items():
        style = "red" if "error" in tooling else ""
        parts.append(Text(f"{printable(name)}  {kind_of(tooling)}", overflow="fold"))
        parts.append(
            Padding(Text(_beside(name, tooling) or PENDING, style=style, overflow="fold"), (0, 0, 0, 2))
        )
    return Group(*parts)


# -- words -----------------------------------------------------------------------------------------


def cells_of(name: str, tooling: JsonObject) -> tuple[str, ...]:
    """The cells of a row."""
    first = (printable(name), kind_of(tooling))
    if "error" in tooling:
        return (*first, "FAILED", *[""] * 5)
    if "tools" not in tooling:
        return (*first, PENDING, *[""] * 5)
    return (
        *first,
        _server(tooling),
        str(tooling.get("protocol") or ""),
        capabilities(tooling),
        str(tooling["tools"]),
        str(tooling["resources"]),
        str(tooling["milliseconds"]),
    )


def told(tooling: JsonObject) -> str:
    """What a tooling is, or why it is not there, as one line; empty where it was not asked."""
    if "error" in tooling:
        return _one(f"FAILED: {tooling['error']}")
    if "tools" not in tooling:
        return ""
    counts = f"{_count(tooling['tools'], 'tool')}, {_count(tooling['resources'], 'resource')}"
    if "protocol" not in tooling:
        return f"{counts}, {tooling['milliseconds']} ms"
    able = capabilities(tooling)
    return (
        f"{_server(tooling) or 'a server'}, protocol {tooling['protocol']}, {counts}"
        f"{f', can: {able}' if able else ''}, {tooling['milliseconds']} ms"
    )


def _beside(name: str, tooling: JsonObject) -> str:
    """What it is, for a place where its name stands already."""
    return told(tooling).replace(f"tooling {name!r}: ", "", 1)


def kind_of(tooling: JsonObject) -> str:
    """The kind, and how the server is reached."""
    transport = tooling.get("transport")
    return f"{tooling['kind']} ({transport})" if transport else str(tooling["kind"])


def capabilities(tooling: JsonObject) -> str:
    """What the server declares, with what it tells of by itself: `resources+subscribe, tools`."""
    declared: Any = tooling.get("capabilities") or {}
    words: list[str] = []
    for name, details in sorted(declared.items()):
        subscribes = isinstance(details, dict) and cast("JsonObject", details).get("subscribe") is True
        words.append(name + ("+subscribe" if subscribes else ""))
    return _one(", ".join(words))


def _server(tooling: JsonObject) -> str:
    return _one(f"{tooling.get('server') or ''} {tooling.get('version') or ''}")


def _one(text: str) -> str:
    return printable(" ".join(text.split()))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
