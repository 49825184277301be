"""The table of `check --connect`: side by side where there is room, one under the other where not."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.cli.support import at_terminal, catalog, odd, write_config
from toolpost.cli import overview

TOOLINGS: dict[str, Any] = {
    "shop": {
        "kind": "mcp",
        "transport": "stdio",
        "server": "catalog",
        "version": "1",
        "protocol": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "odd": None},
        "tools": 9,
        "resources": 1,
        "milliseconds": 312,
    },
    "own": {"kind": "abacus", "tools": 1, "resources": 0, "milliseconds": 1},
    "late": {"kind": "mcp", "transport": "stdio"},
    "bad": {"kind": "mcp", "transport": "http", "error": "tooling 'bad': cannot\n connect: \x1b[2J [red]no"},
}


COLUMNS = {"kind": "mcp", "server": "catalog", "protocol": "2025-11-25", "capabilities": "odd, "}


def drawn(width: int) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, color_system=None)
    console.print(overview.rendered(TOOLINGS, width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_wide_terminal_has_the_toolings_side_by_side() -> None:
    heading, shop, own, late, bad, _, below = drawn(130)

    assert heading.split() == ["tooling", "kind", "server", "protocol", "capabilities", *overview._NUMBERS]  # pyright: ignore[reportPrivateUsage]: the headings
    assert shop.split("  ")[0] == "shop"
    assert shop.endswith("2025-11-25  odd, resources+subscribe, tools      9          1  312")
    assert own.endswith("1          0    1")
    assert late.endswith("mcp (stdio)  …")
    assert bad.endswith("mcp (http)   FAILED")
    assert below == "bad: cannot connect: �[2J [red]no"
    assert all(heading.index(column) == shop.index(cell) for column, cell in COLUMNS.items())


@pytest.mark.parametrize("width", [10, 40, 89])
def test_a_narrow_terminal_has_one_under_the_other(width: int) -> None:
    lines = drawn(width)

    assert max(map(len, lines)) <= width
    assert "shop" in lines[0]
    assert "".join(lines).replace(" ", "").count("catalog1,protocol2025-11-25,9tools,1resource") == 1


def test_a_pipe_has_a_line_for_each() -> None:
    assert [overview.told(each) for each in TOOLINGS.values()] == [
        "catalog 1, protocol 2025-11-25, 9 tools, 1 resource, can: odd, resources+subscribe, tools, 312 ms",
        "1 tool, 0 resources, 1 ms",
        "",
        "FAILED: tooling 'bad': cannot connect: �[2J [red]no",
    ]


@pytest.mark.parametrize("columns", [40, 120])
def test_rows_fill_in_and_the_last_table_stays(columns: int, tmp_path: Path) -> None:
    tables = {"tooling": {"shop": catalog(), "bad": odd(command="no-such-command")}}
    config = write_config(tmp_path, tables)

    status, screen = at_terminal("check", "--connect", "-c", config, columns=columns, NO_COLOR="1")
    last = screen.rpartition("\x1b[1A")[2].replace("\n", " ")

    assert status == 1
    assert "…" in screen  # before the first answer
    assert "catalog 1" in last
    assert "cannot connect: command 'no-such-command' was not found" in " ".join(last.split())
    assert "1 of 2 toolings cannot be used" in last
    assert "\x1b[31" not in screen
