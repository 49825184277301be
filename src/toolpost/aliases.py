"""Names of tools that any model can be given. Pure.

A server may call a tool what it likes; the interfaces of models take letters, digits, `_` and `-`, 64 of them
at most, and refuse every tool there is for one name that is not made of these.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Container, Iterable

from toolpost.model import Tool

MAX_LENGTH = 64
_SAFE = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_LENGTH}}}")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_DIGITS = 8
"""Of the digest of a name, in hexadecimal."""


def model_names(tools: Iterable[Tool], *, taken: Container[str] = ()) -> dict[str, Tool]:
    """Each tool under a name that any model can be given; its own `name` is what `call_tool` takes.

    A name that is fit as it is stays. Any other becomes a fit beginning with a digest of the whole: `"x.y"`
    is never taken for `"x_y"`, and what a tool is called depends on no other, but where names clash. Of
    several tools with one name only the first is there: a call says only the name, so no other can be meant.

    Args:
        tools: The tools, as they are listed.
        taken: Names that are not to be given, such as those of the tools of another tooling.
    """
    of_name: dict[str, Tool] = {}
    for tool in tools:
        of_name.setdefault(tool.name, tool)
    kept = {name for name in of_name if _SAFE.fullmatch(name) and name not in taken}
    given: dict[str, Tool] = {}
    for name, tool in of_name.items():
        if name in kept:
            given[name] = tool
        else:
            given[_alias(name, lambda alias: alias in kept or alias in given or alias in taken)] = tool
    return given


def _alias(name: str, is_taken: Callable[[str], bool]) -> str:
    beginning = _UNSAFE.sub("_", name)[: MAX_LENGTH - _DIGITS - 1]
    for attempt in itertools.count():
        digest = hashlib.sha256(f"{name}{attempt or ''}".encode(errors="surrogatepass")).hexdigest()
        alias = f"{beginning}_{digest[:_DIGITS]}"
        if not is_taken(alias):
            return alias
    raise AssertionError("there is always another")
