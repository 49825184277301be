"""A server without a config: `--stdio COMMAND`, `--http URL`. It becomes a config of one tooling.

That tooling is called `stdio` or `http`, as the option is. Secrets stay out of the command line, which
every user of a machine can read: the options name environment variables.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolpost.cli.options import Direct
from toolpost.errors import UsageError

if TYPE_CHECKING:
    from toolpost.config import Config

_PREFIX = "TOOLPOST__"
_KEPT = "TOOLPOST__TUNABLES__"


def name_of(direct: Direct) -> str | None:
    """The name of the tooling that the options make; None where there are none.

    Raises:
        UsageError: They contradict each other.
    """
    if direct.stdio is not None and direct.http is not None:
        raise UsageError("--stdio and --http name a server each; give one of them")
    if direct.token_env is not None and direct.http is None:
        raise UsageError("--token-env belongs to --http; a server of --stdio gets variables with --pass-env")
    if direct.pass_env and direct.stdio is None:
        raise UsageError("--pass-env belongs to --stdio; in a config, the keys env and inherit_env do this")
    if direct.stdio is not None:
        return "stdio"
    return None if direct.http is None else "http"


def config_of(direct: Direct, environ: Mapping[str, str]) -> Config:
    """The config of that one tooling. Of the environment's layer it takes the tunables.

    Raises:
        UsageError: The options do not name a server.
        ConfigError: They name one that cannot be used.
    """
    from toolpost.config import load_config

    name = name_of(direct)
    assert name is not None, "asked for only where there is one"
    table = _stdio(direct, environ) if name == "stdio" else _http(direct, environ)
    layer = {key: each for key, each in environ.items() if _is_kept(key)}
    return replace(load_config({"tooling": {name: table}}, environ=layer), label=f"--{name}")


def _stdio(direct: Direct, environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        words = shlex.split(direct.stdio or "")
    except ValueError as error:
        raise UsageError(f"--stdio {direct.stdio!r} is no command line: {error}") from None
    if not words:
        raise UsageError("--stdio is empty; give the server's command line, such as --stdio 'npx -y …'")
    for variable in direct.pass_env or ():
        _value(variable, "--pass-env", environ)
    command, *args = map(_literal, words)
    table: dict[str, Any] = {"kind": "mcp", "transport": "stdio", "command": command, "args": args}
    return table | ({"inherit_env": list(direct.pass_env)} if direct.pass_env else {})


def _http(direct: Direct, environ: Mapping[str, str]) -> dict[str, Any]:
    table: dict[str, Any] = {"kind": "mcp", "transport": "http", "url": _literal(direct.http or "")}
    if direct.token_env is not None:
        _value(direct.token_env, "--token-env", environ)
        table["auth_token"] = f"${{{direct.token_env}}}"
    return table


def _value(variable: str, option: str, environ: Mapping[str, str]) -> None:
    if not environ.get(variable):
        raise UsageError(
            f"{option} names {variable!r}, which is no variable of the environment, or an empty one;"
            " it takes a variable's name, not its value"
        )


def _literal(word: str) -> str:
    """The word for a key in which `${…}` is filled in: a shell has done that already where it was meant."""
    return word.replace("${", "$${")


def _is_kept(variable: str) -> bool:
    upper = variable.upper()
    return not upper.startswith(_PREFIX) or upper.startswith(_KEPT)
