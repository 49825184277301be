"""The walk over a configuration's tables: each key against its type, every problem noted.

msgspec converts single values; it would stop at the first problem of a table, and would print secrets.
The types to walk are msgspec Structs, of the built-in kinds and of a program's own alike. What they ask
for is data in `Meta(extra={…})`, and counts for everything inside the key:

    expand     True: `${VAR}` is replaced; values that the environment layer gave are literal already
    public     what the values are shown in: a `${VAR}` there is worth a warning
    path       True: relative to the config's folder, made absolute
    keep_case  True: an environment variable gives the names in this table as they are
    infinite   True: `inf` is allowed
    check      function from a string to a problem or None, for each string in the key
    check_key  the same for each name in the table
    hints      a table from a wrong value to the words that mend it

`Secret` in a type is what makes a value secret: it is made here, and no problem shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final, cast, get_origin

import msgspec

from toolpost.config.describe import expected, found
from toolpost.config.expand import expand
from toolpost.config.hints import (
    Marks,
    bare,
    fields_of,
    has_parts,
    has_secrets,
    is_struct,
    item_hint,
    member_for,
)
from toolpost.config.problems import Path, Problems, nearest
from toolpost.errors import UsageError
from toolpost.secret import Secret

BROKEN: Final[Any] = object()
"""What a value with a problem gives: the problem is noted, and the walk goes on."""

_NO_MARKS: Final[Marks] = {}


@dataclass(kw_only=True)
class Walk:
    """One walk: where problems go, and what conversion needs."""

    problems: Problems
    folder: FilePath
    environ: Mapping[str, str]
    make_secret: Callable[[str, Path], Any]
    """Gives `BROKEN` where it noted a problem."""
    literal: bool = False
    """Expand nothing."""

    def struct(self, cls: type[msgspec.Struct], raw: object, path: Path) -> Any:
        """An instance of `cls` from a table, or `BROKEN`."""
        values = self.fields(cls, raw, path)
        if values is BROKEN or any(each is BROKEN for each in values.values()):
            return BROKEN
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:  # from the Struct's own `__post_init__`
            self.problems.add(path, str(error))
            return BROKEN

    def fields(self, cls: type[msgspec.Struct], raw: object, path: Path) -> Any:
        """The values by attribute, each possibly `BROKEN`; `BROKEN` itself if `raw` is no table."""
        table = self.table(raw, path)
        if table is BROKEN:
            return BROKEN
        fields = fields_of(cls)
        values: dict[str, Any] = {}
        for key, each in table.items():
            if key not in fields:
                self.problems.add((*path, key), f"unknown key; known keys: {nearest(key, fields)}")
                values["?"] = BROKEN
            elif each is not None:
                values[fields[key].name] = self.value(fields[key].type, each, (*path, key))
        for key, info in fields.items():
            if info.required and info.name not in values:
                self.problems.add((*path, key), f"missing; expected {expected(info.type)}")
                values[info.name] = BROKEN
        return values

    def fits(self, hint: Any, raw: Any) -> bool:
        """Whether `raw`, taken literally, is what a key of type `hint` expects; makes no secret of it."""
        trial = replace(self, problems=Problems(""), literal=True, make_secret=_no_secret)
        trial.value(hint, raw, ())
        return not trial.problems

    def check_name(self, name: str, path: Path) -> None:
        """Note a table that is named by nothing."""
        if not name.strip():
            self.problems.add(path, "expected a name, found an empty one")

    def table(self, raw: object, path: Path) -> Any:
        """`raw` if it is a table with string keys, or `BROKEN`."""
        if not isinstance(raw, dict):
            return self._misfit(dict, raw, path, "")
        return cast("dict[str, Any]", raw)

    def value(self, hint: Any, raw: Any, path: Path, marks: Marks = _NO_MARKS) -> Any:
        """The value that a key of type `hint` has, or `BROKEN`."""
        shape, marks = bare(hint, marks)
        shape = member_for(shape, raw)
        shape, marks = bare(shape, marks)
        if shape is Secret:
            return self._secret(raw, path, marks)
        if is_struct(shape):
            return self.struct(shape, raw, path)
        if isinstance(raw, str):
            return self._text(hint, raw, path, marks)
        if isinstance(raw, list) and get_origin(shape) is list:
            return self._list(hint, shape, cast("list[Any]", raw), path, marks)
        if isinstance(raw, dict) and get_origin(shape) is dict:
            return self._dict(hint, shape, cast("dict[str, Any]", raw), path, marks)
        return self._leaf(hint, raw, path, marks)

    def _list(self, hint: Any, shape: Any, raw: list[Any], path: Path, marks: Marks) -> Any:
        item = item_hint(shape)
        items = [self.value(item, each, (*path, at), marks) for at, each in enumerate(raw)]
        return self._whole(hint, items, items, path, marks)

    def _dict(self, hint: Any, shape: Any, raw: dict[str, Any], path: Path, marks: Marks) -> Any:
        item, check = item_hint(shape), marks.get("check_key")
        values: dict[str, Any] = {}
        for key, each in raw.items():
            values[key] = self.value(item, each, (*path, key), marks)
            if check and (problem := check(key)):
                self.problems.add((*path, key), problem)
                values[key] = BROKEN
        return self._whole(hint, values, list(values.values()), path, marks)

    def _whole(self, hint: Any, value: Any, parts: list[Any], path: Path, marks: Marks) -> Any:
        if any(each is BROKEN for each in parts):
            return BROKEN
        return value if has_parts(hint) else self._leaf(hint, value, path, marks)

    def _leaf(self, hint: Any, raw: Any, path: Path, marks: Marks) -> Any:
        try:
            value = msgspec.convert(raw, hint)
        except (msgspec.ValidationError, OverflowError):
            hints: Mapping[Any, str] = marks.get("hints", {})
            advice = hints.get(raw) if isinstance(raw, str) else None
            return self._misfit(hint, raw, path, f"; {advice}" if advice else "")
        if isinstance(value, float) and not _is_usable(value, marks):
            return self._misfit(hint, raw, path, "")
        return value

    def _misfit(self, hint: Any, raw: Any, path: Path, advice: str) -> Any:
        shown = found(raw, show=not self.problems.origin(path) and not has_secrets(hint))
        self.problems.add(path, f"expected {expected(hint)}, found {shown}{advice}")
        return BROKEN

    def _text(self, hint: Any, raw: str, path: Path, marks: Marks) -> Any:
        value = self._leaf(hint, raw, path, marks)
        if not isinstance(value, str):
            return value
        text = self._expanded(value, path, marks)
        if text is BROKEN or self._is_refused(text, path, marks):
            return BROKEN
        return str(self.folder / text) if marks.get("path") else text

    def _secret(self, raw: object, path: Path, marks: Marks) -> Any:
        if isinstance(raw, Secret):
            return self._made_secret(raw, path, marks)
        if not isinstance(raw, str):
            advice = "; put it in quotes" if isinstance(raw, (bool, int, float)) else ""
            self.problems.add(path, f"expected a string, found {found(raw, show=False)}{advice}")
            return BROKEN
        text = self._expanded(raw, path, marks)
        if text is BROKEN or self._is_refused(text, path, marks):
            return BROKEN
        return self.make_secret(text, path)

    def _made_secret(self, secret: Secret, path: Path, marks: Marks) -> Any:
        try:
            return BROKEN if self._is_refused(secret.expose(), path, marks) else secret
        except UsageError as error:
            self.problems.add(path, str(error))
            return BROKEN

    def _expanded(self, text: str, path: Path, marks: Marks) -> Any:
        if self.literal or not marks.get("expand") or self.problems.origin(path):
            return text
        done = expand(text, self.environ)
        for problem in done.problems:
            self.problems.add(path, problem)
        if public := marks.get("public"):
            for name in done.variables:
                self.problems.warn(path, f"${{{name}}} becomes part of {public}")
        return BROKEN if done.problems else done.text

    def _is_refused(self, text: str, path: Path, marks: Marks) -> bool:
        check = marks.get("check")
        problem = check(text) if check else None
        if problem:
            self.problems.add(path, problem)
        return bool(problem)


def _no_secret(_text: str, _path: Path) -> None:
    return None


def _is_usable(value: float, marks: Marks) -> bool:
    return math.isfinite(value) or (value == math.inf and bool(marks.get("infinite")))
