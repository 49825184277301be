"""The file toolpost.wit, read: its functions, with their types as texts.

A component does not tell the names of its types, so here each stands written out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

WIT = Path(__file__).with_name("toolpost.wit")
PACKAGE = "toolpost:agent"
VERSION = "0.1.0"
"""Of toolpost.wit. Until 1.0 a guest needs a host of its own minor version."""
WORLD = "agent"
RESOURCE = "tooling"
"""The only one."""

# What the file uses of WIT, once it is without comments and on one line.
_COMMENT = re.compile(r"///.*")
_TYPE = re.compile(r"(record|enum|variant) ([\w-]+) \{ ([^}]*), \}")
_BLOCK = re.compile(r"(?:interface|world) ([\w-]+) \{((?:[^{}]|\{[^}]*\})*)\}")
_METHODS = re.compile(rf"resource {RESOURCE} \{{([^}}]*)\}}")
_FUNCTION = re.compile(r"([\w-]+): (func\([^;]*);")
_NAME_OF_TYPE = re.compile(r"(?:(?<=[(<])|(?<=: )|(?<=-> ))[\w-]+")


@cache
def functions() -> Mapping[str, Mapping[str, str]]:
    """The types of the functions of each interface, and of the world: those that it exports."""
    named: dict[str, str] = {}

    def written_out(text: str) -> str:
        return _NAME_OF_TYPE.sub(lambda name: named.get(name[0], name[0]), text)

    def note(type_: re.Match[str]) -> str:
        named[type_[2]] = f"{type_[1]} {{ {written_out(type_[3])} }}"
        return ""

    text = _TYPE.sub(note, " ".join(_COMMENT.sub("", WIT.read_text()).split()))
    found: dict[str, dict[str, str]] = {}
    for name, block in _BLOCK.findall(text):
        methods = "".join(_METHODS.findall(block))
        plain = _FUNCTION.findall(_METHODS.sub("", block))
        found[name] = {function: written_out(type_) for function, type_ in plain}
        for method, type_ in _FUNCTION.findall(methods):
            with_self = type_.replace("func(", f"func(self: borrow<{RESOURCE}>, ").replace(", )", ")")
            found[name][f"[method]{RESOURCE}.{method}"] = written_out(with_self)
    return found
