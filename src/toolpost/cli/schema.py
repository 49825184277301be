"""`toolpost schema`: the JSON Schema of the config, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from toolpost.cli.options import LevelOption, VerboseOption
from toolpost.cli.session import DONE, Session
from toolpost.cli.terminal import write

EXAMPLES = """
Examples:

toolpost schema > .toolpost.schema.json

toolpost schema --test > .toolpost.test.schema.json
"""


def schema(
    ctx: typer.Context,
    test: Annotated[bool, typer.Option("--test", help="That of test files (*.test.toml) instead.")] = False,
    verbose: VerboseOption = 0,
    log_level: LevelOption = None,
) -> None:
    """Print the JSON Schema of the config.

    Editors complete and check a config whose first line names it:

    #:schema .toolpost.schema.json
    """
    Session.of(ctx, None, verbose, log_level).finish(lambda _: _schema(is_case=test))


def _schema(*, is_case: bool) -> int:
    from toolpost.config.schema import schema_text

    write(schema_text(is_case=is_case))
    return DONE
