"""`toolpost completion SHELL`: what makes a shell complete commands, toolings and tools."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

EXAMPLES = """
Examples:

source <(toolpost completion bash)

toolpost completion zsh > ~/.zfunc/_toolpost

toolpost completion fish > ~/.config/fish/completions/toolpost.fish
"""

VARIABLE = "_TOOLPOST_COMPLETE"
"""Set by the script when it asks, which the program answers instead of doing anything."""


class Shell(StrEnum):
    """The shells that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print the script that makes a shell complete.

    Completed are commands and options, the toolings of the config, and the tools of servers that answered
    before: their names are kept in the cache folder of the user. Completing starts no server.
    """
    import typer.completion as typers

    print(typers.get_completion_script(prog_name="toolpost", complete_var=VARIABLE, shell=shell.value))  # pyright: ignore[reportPrivateImportUsage]: typer has no public way to its scripts


def prepare() -> None:
    """Make typer answer the shell in the way its scripts ask."""
    from typer.completion import get_completion_inspect_parameters

    get_completion_inspect_parameters()  # what it gives are options; what it does besides is the point
