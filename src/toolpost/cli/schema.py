"""`toolpost schema`: the JSON Schema of the config, for editors."""

from __future__ import annotations

import typer

from toolpost.cli.options import LevelOption, VerboseOption
from toolpost.cli.session import DONE, Session
from toolpost.cli.terminal import write

EXAMPLES = """
Example:

toolpost schema > .toolpost.schema.json
"""


def schema(ctx: typer.Context, verbose: VerboseOption = 0, log_level: LevelOption = None) -> None:
    """Print the JSON Schema of the config.

    Editors complete and check a config whose first line names it:

    #:schema .toolpost.schema.json
    """
    Session.of(ctx, None, verbose, log_level).finish(_schema)


def _schema(_session: Session) -> int:
    from toolpost.config.schema import schema_text

    write(schema_text())
    return DONE
