"""Where everything wrong with a configuration is gathered, so that one run tells all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import TypeAlias

from toolpost.secret import mask

Path: TypeAlias = tuple[str | int, ...]
"""The keys and list indices that lead to a value."""

_ALIKE = 0.6  # as in `difflib.get_close_matches`
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Problems:
    """The problems and warnings of one configuration, one line each.

    Args:
        label: The file's name, first in each line.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.warnings: list[str] = []
        self._found: list[str] = []
        self._origins: dict[Path, str] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, path: Path, text: str) -> None:
        """Note a problem of the value at `path`."""
        self._found.append(self._line(path, text))

    def add_below(self, path: Path, key: str, text: str) -> None:
        """Note a problem of what `key` names in the table at `path`: dotted already, or empty."""
        top = re.split(r"[.\[]", key)[0]
        variable = self.origin((*path, top))
        place = f"{dotted(path)}.{key}" if key else dotted(path)
        self._found.append(f"{self.label}: {place}{_from(variable)}: {text}")

    def add_line(self, line: str) -> None:
        """Note a problem that has no place in the file."""
        self._found.append(line)

    def warn(self, path: Path, text: str) -> None:
        """Note what is allowed and still worth telling."""
        self.warnings.append(self._line(path, text))

    def came_from(self, path: Path, variable: str) -> None:
        """Remember that an environment variable gave the value at `path`."""
        self._origins[path] = variable

    def given_by(self, path: Path) -> str | None:
        """The environment variable that gave the value at exactly this path."""
        return self._origins.get(path)

    def origin(self, path: Path) -> str | None:
        """The environment variable that gave the value at `path`, or what it lies in."""
        for length in range(len(path), 0, -1):
            if variable := self._origins.get(path[:length]):
                return variable
        return None

    def lines(self) -> list[str]:
        """Every problem once, in the order found, with the secrets that live now masked."""
        return [mask(line) for line in dict.fromkeys(self._found)]

    def _line(self, path: Path, text: str) -> str:
        return f"{self.label}: {dotted(path)}{_from(self.origin(path))}: {text}"


def _from(variable: str | None) -> str:
    return f" (from {variable})" if variable else ""


def dotted(path: Path) -> str:
    """The path as TOML writes it: `tooling.web.args[0]`, with quotes where a key needs them."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{quoted(part)}"
    return text.removeprefix(".")


def quoted(key: str) -> str:
    """A key as TOML writes it.

    Of `NAME=value`, a habit from other tools, only the name: the rest may be a secret.
    """
    name, _, value = key.partition("=")
    key = f"{name}=…" if value else key
    if _BARE.fullmatch(key):
        return key
    return json.dumps(key, ensure_ascii=not key.isprintable())


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names as a list to read: those that look like `name` first, then the others, sorted."""

    def order(each: str) -> tuple[float, str]:
        likeness = SequenceMatcher(None, folded(name), folded(each)).ratio()
        return (-likeness if likeness >= _ALIKE else 0.0), each

    return ", ".join(quoted(each) for each in sorted(known, key=order)) or "none"


def folded(name: str) -> str:
    """The name without what does not count in the environment: case, and `-` against `_`."""
    return name.lower().replace("-", "_")
