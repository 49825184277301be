"""The options that every command has, before its name or after it, and what comes of the two."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from toolpost.cli import names


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

ToolingArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME",
        help="A tooling of the config; left out with --stdio or --http.",
        autocompletion=names.complete_tooling,
        show_default=False,
    ),
]
StdioOption = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Use this server, of no config: its command line."),
]
HttpOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Use the server at this address, of no config.")
]
TokenEnvOption = Annotated[
    str | None,
    typer.Option(metavar="VAR", help="With --http: the environment variable that holds its token."),
]
PassEnvOption = Annotated[
    list[str] | None,
    typer.Option(metavar="VAR", help="With --stdio: a variable to pass on to the server; repeat for more."),
]
OutputOption = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="PATH", show_default=False, help="Save to this file or folder."),
]


@dataclass(frozen=True, kw_only=True)
class Direct:
    """A server that the command line itself names."""

    stdio: str | None = None
    http: str | None = None
    token_env: str | None = None
    pass_env: list[str] | None = None


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
