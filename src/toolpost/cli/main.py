"""The entry point: signals first, then the application, and an exit status whatever happens.

typer is imported inside, so that Ctrl-C ends even the start without a traceback.
"""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from toolpost.cli import interrupts


def main() -> NoReturn:
    """Run the command line and exit: 0 done, 1 something failed, 2 usage or config, 130 interrupted."""
    interrupts.install()
    try:
        _make_streams_safe()
        from toolpost.cli import completion
        from toolpost.cli.app import app

        if completion.VARIABLE in os.environ:
            completion.prepare()
        app(prog_name="toolpost")
    except KeyboardInterrupt:
        sys.exit(interrupts.STATUS)
    finally:
        interrupts.ignore()  # what is left is the interpreter's own end, which an interrupt would only litter
    raise AssertionError("typer exits")


def _make_streams_safe() -> None:
    """What a terminal's encoding cannot show is shown as an escape; a closed stream swallows what it gets."""
    for name in ("stdout", "stderr"):
        stream: object = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
