"""The options that every command has, before its name or after it, and what comes of the two."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer


class LogLevel(StrEnum):
    """What `--log-level` accepts."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"toolpost {version('toolpost')}")
        raise typer.Exit


ConfigOption = Annotated[
    str | None,
    typer.Option("-c", "--config", metavar="PATH", help="The config; - is stdin. Default: toolpost.toml."),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        metavar="",
        show_default=False,
        help="Tell more; -vv tells everything.",
    ),
]
LevelOption = Annotated[
    LogLevel | None,
    typer.Option("--log-level", case_sensitive=False, help="What to log; wins over -v."),
]
VersionOption = Annotated[
    bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The shared options of one invocation."""

    config: str | None = None
    verbose: int = 0
    log_level: LogLevel | None = None

    def then(self, *, config: str | None, verbose: int, log_level: LogLevel | None) -> Shared:
        """With those after the command: they win, and each -v counts."""
        return Shared(
            config=self.config if config is None else config,
            verbose=self.verbose + verbose,
            log_level=log_level or self.log_level,
        )
