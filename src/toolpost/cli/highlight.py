"""Text in colours, for a terminal that has them; everything else passes unchanged."""

from __future__ import annotations

import os
import sys
from pathlib import PurePosixPath
from urllib.parse import urlsplit

BOUND = 200_000
"""Longer texts stay plain: colouring them takes longer than anybody waits."""

_LEXERS = {
    "application/javascript": "javascript",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/x-sh": "bash",
    "text/css": "css",
    "text/html": "html",
    "text/javascript": "javascript",
    "text/markdown": "markdown",
    "text/x-c": "c",
    "text/x-diff": "diff",
    "text/x-python": "python",
    "text/x-rust": "rust",
}
_ENDINGS = ("json", "xml", "yaml", "toml")
"""Of a subtype: `application/json`, `text/xml`, `application/ld+json`, `application/x-yaml`."""


def highlighted(text: str, *, mime_type: str | None, uri: str) -> str:
    """The text, with colours where standard output wants them and the type or the URI says which."""
    if len(text) > BOUND or not _wants_colours():
        return text
    lexer = lexer_of(mime_type, uri, text)
    return text if lexer is None else _coloured(text, lexer)


def _wants_colours() -> bool:
    dumb = os.environ.get("TERM") in (None, "", "dumb")
    return sys.stdout.isatty() and not dumb and not os.environ.get("NO_COLOR")


def lexer_of(mime_type: str | None, uri: str, text: str = "") -> str | None:
    """The name of the language for the highlighter; None where neither type nor URI tells one."""
    plain = (mime_type or "").partition(";")[0].strip().lower()
    if plain in _LEXERS:
        return _LEXERS[plain]
    ending = plain.rpartition("/")[2].rpartition("+")[2].removeprefix("x-")
    return ending if ending in _ENDINGS else _by_name(uri, text)


def _by_name(uri: str, text: str) -> str | None:
    try:
        name = PurePosixPath(urlsplit(uri).path).name
    except ValueError:
        return None
    if not PurePosixPath(name).suffix:
        return None
    from rich.syntax import Syntax

    found = Syntax.guess_lexer(name, text[:1000])
    return None if found in ("default", "text") else found


def _coloured(text: str, lexer: str) -> str:
    from rich.console import Console
    from rich.syntax import Syntax

    # the terminal's own colours, on its own background
    painted = Syntax("", lexer, theme="ansi_dark", background_color="default").highlight(text)
    painted.rstrip()
    console = Console(file=sys.stdout, highlight=False, force_terminal=True)
    with console.capture() as captured:
        console.print(painted, soft_wrap=True)
    return captured.get()
