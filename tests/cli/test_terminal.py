"""What people at a terminal see: progress, colours, wrapped tables, and no foreign escape sequences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.support import at_terminal, odd, write_config
from toolpost.cli import terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path, {"tooling": {"it": odd()}})


def test_a_connection_that_is_made_is_shown_and_wiped_away(config: Path) -> None:
    status, screen = at_terminal("call", "it", "echo", "text=hi", "-c", config)

    assert status == 0
    assert screen == "connecting to 'it' …\r\x1b[2Khi\n"


def test_a_terminal_that_cannot_move_its_cursor_gets_no_progress(config: Path) -> None:
    assert at_terminal("call", "it", "echo", "text=hi", "-c", config, TERM="dumb") == (0, "hi\n")


def test_errors_are_coloured_unless_no_color_is_set(config: Path) -> None:
    _, coloured = at_terminal("tools", "ti", "-c", config)
    _, plain = at_terminal("tools", "ti", "-c", config, NO_COLOR="1")

    assert COLOUR.search(coloured)
    assert COLOUR.sub("", coloured) == plain
    assert plain.startswith("error: ")


def test_help_has_no_colour_where_no_color_is_set() -> None:
    _, screen = at_terminal("--help", NO_COLOR="1")

    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", screen)


def test_the_log_is_for_people(tmp_path: Path) -> None:
    code = """
import logging

def run(host):
    host.log("hello")
    host.log("careful", level="warning")
    logging.getLogger("somebody").warning("mind \\x1b[31mthis")
    host.tooling.get("none")
"""
    config = write_config(tmp_path, {"agents": {"one": {"script": "one.py"}}}, one=code)

    status, screen = at_terminal("run", "-c", config, NO_COLOR="1")
    _, verbose = at_terminal("run", "-v", "-c", config, NO_COLOR="1")

    assert status == 1
    assert screen.splitlines()[:3] == [
        "one: hello",
        "one: warning: careful",
        "warning: mind �[31mthis (somebody)",
    ]
    # an error that toolpost raises on purpose says all: its way is for those who ask
    assert "UnknownTooling: unknown tooling 'none'" in screen
    assert "Traceback" not in screen
    assert "Traceback" in verbose


@pytest.mark.parametrize("columns", [10, 40])
@pytest.mark.parametrize("words", [["tools", "it"], ["check"], ["check", "--connect"], ["--help"]])
def test_narrow_terminals_are_enough(words: list[str], columns: int, config: Path) -> None:
    status, screen = at_terminal("-c", config, *words, columns=columns, NO_COLOR="1")

    assert status == 0
    assert "Traceback" not in screen


ROWS = [
    ("echo", "Says it again, and again, and again"),
    ("b", "First line\nsecond line"),
    ("none", ""),
    ("\x1b[2Jx", "clears\tthe screen"),
]


def test_a_row_is_a_line_on_a_pipe() -> None:
    assert terminal.table(ROWS, indent=2).splitlines() == [
        "  echo   Says it again, and again, and again",
        "  b      First line",
        "  none",
        "  �[2Jx  clears the screen",
    ]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (
            30,
            [
                "  echo   Says it again, and",
                "         again, and again",
                "  b      First line",
                "  none",
                "  �[2Jx  clears the screen",
            ],
        ),
        (
            28,
            [
                "  echo",
                "      Says it again, and",
                "      again, and again",
                "  b",
                "      First line",
                "  none",
                "  �[2Jx",
                "      clears the screen",
            ],
        ),
    ],
)
def test_the_last_column_is_wrapped_on_a_terminal(
    columns: int, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    assert terminal.table(ROWS, indent=2).splitlines() == shown
