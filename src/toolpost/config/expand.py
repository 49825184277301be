"""`${VAR}`, `${VAR:-default}` and `$${` in a text. Everything else with a dollar stays as it is.

One name needs no variable: `${TOOLPOST_PYTHON}` is the Python that runs toolpost, for servers that are
installed beside it; neither `python` nor `python3` on the PATH need be that one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_PLACE = re.compile(r"\$\$\{|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)

_KNOWN = {"TOOLPOST_PYTHON": sys.executable}
"""What names stand for where the environment has no variable of that name."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text after expansion."""

    text: str
    problems: list[str]
    variables: list[str]
    """The variables whose values are in the text."""


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """Put the environment's values where the text names them. As in a shell, `:-` covers empty ones too."""
    problems: list[str] = []
    variables: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        inside = match["inside"]
        if inside is None:
            return "${"
        if not match["end"]:
            problems.append("a `${` without its `}`; a literal one is written `$${`")
            return ""
        named = _INSIDE.fullmatch(inside)
        if named is None:
            problems.append("expected ${VAR} or ${VAR:-default}; a literal `${` is written `$${`")
            return ""
        name, default = named["name"], named["default"]
        value = environ.get(name, _KNOWN.get(name))
        if value is None and default is None:
            problems.append(
                f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
            return ""
        if default is not None and not value:
            return default
        variables.append(name)
        return value or ""

    return Expanded(_PLACE.sub(value_of, text), problems, variables)
