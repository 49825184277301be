"""The environment's layer: `TOOLPOST__TUNABLES__INBOX_BOUND=8` sets `tunables.inbox_bound`.

`__` separates the keys. They match without regard to case, with `-` = `_`; names in a table that keeps
their case (`env`, `headers`) are taken as they are, further `__` included. A value is read as TOML where
that gives what the key expects, else it is the string itself. A variable changes keys of tables that
exist: it makes no tooling and no agent. One that leads nowhere is a problem. No value is ever shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_origin

import tomli

from toolpost.config.hints import Marks, bare, fields_of, is_struct, item_hint, member_for
from toolpost.config.problems import Path, Problems, dotted, folded, nearest

PREFIX = "TOOLPOST__"
_WHOLE = "it names a whole table; name one key of it"

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the layer."""

    name: str
    value: str
    keys: list[str]


def without_overrides(environ: Mapping[str, str], *, but: Iterable[str]) -> dict[str, str]:
    """The environment without the variables of the layer, but for those of some toolings.

    So a test is the same whoever runs it, and still gets the token of a real server.

    Args:
        environ: The environment.
        but: The names of these toolings.
    """
    kept, but = dict[str, str](), list(but)
    for name, value in environ.items():
        if name.upper().startswith(PREFIX):
            top, *keys = name[len(PREFIX) :].split("__")
            if folded(top) != "tooling" or not keys or not match(keys[0], but):
                continue
        kept[name] = value
    return kept


class _LeadsNowhere(Exception):
    """Says why."""


class Layer:
    """The variables of one environment, each put into the table that it names.

    Args:
        problems: Told of those that lead nowhere, and of where values came from.
        fits: Whether a key of some type expects a value.
        environ: The environment.
    """

    def __init__(
        self, problems: Problems, fits: Callable[[Any, Any], bool], environ: Mapping[str, str]
    ) -> None:
        self._problems = problems
        self._fits = fits
        self._left = [  # sorted, so that a whole table comes before what is in it
            Variable(name, environ[name], name[len(PREFIX) :].split("__"))
            for name in sorted(environ)
            if name.upper().startswith(PREFIX)
        ]

    def names(self, top: str) -> bool:
        """Whether a variable is left for the table."""
        return any(folded(each.keys[0]) == top for each in self._left)

    def put_single(self, top: str, table: Any, hint: Any) -> None:
        """Put all for the table `[<top>]`."""
        for variable in self._take(top):
            if len(variable.keys) < 2:
                self._refuse(variable, _WHOLE)
            elif isinstance(table, dict):
                self._try_put(variable, variable.keys[1:], cast("Table", table), hint, (top,))

    def put_named(
        self,
        top: str,
        tables: Table,
        hint_of: Callable[[Table, list[str]], Any],
        *,
        only: str | None = None,
    ) -> None:
        """Put all for the tables `[<top>.<name>]`; with `only`, those that set that key.

        A None from `hint_of` leaves the variable out.
        """
        for variable in self._take(top, only):
            if len(variable.keys) < 3:
                self._refuse(variable, _WHOLE)
                continue
            found = match(variable.keys[1], tables)
            if len(found) != 1:
                self._refuse(variable, _not_one(top, variable.keys[1], found, tables))
                continue
            table, keys = tables[found[0]], variable.keys[2:]
            if isinstance(table, dict):
                hint = hint_of(cast("Table", table), keys)
                if hint is not None:
                    self._try_put(variable, keys, cast("Table", table), hint, (top, found[0]))

    def refuse_rest(self, known: Iterable[str]) -> None:
        """Note every variable that is left."""
        for variable in self._left:
            top = variable.keys[0].lower()
            self._refuse(variable, f"unknown table {top!r}; known tables: {nearest(top, known)}")

    def _take(self, top: str, only: str | None = None) -> list[Variable]:
        taken = [
            each
            for each in self._left
            if folded(each.keys[0]) == top and only in (None, *map(folded, each.keys[2:3]))
        ]
        self._left = [each for each in self._left if each not in taken]
        return taken

    def _refuse(self, variable: Variable, why: str) -> None:
        self._problems.add_line(f"environment: {variable.name} leads nowhere: {why}")

    def _try_put(self, variable: Variable, keys: list[str], table: Table, hint: Any, path: Path) -> None:
        try:
            self._put(variable, keys, table, hint, path, {})
        except _LeadsNowhere as error:
            self._refuse(variable, str(error))

    def _put(
        self, variable: Variable, keys: list[str], table: Table, hint: Any, path: Path, marks: Marks
    ) -> None:
        shape, marks = bare(hint, marks)
        key, inner, rest = _step(keys, table, shape, marks)
        here = (*path, key)
        if not rest:
            self._set(variable, table, key, inner, here)
            return
        inner, marks = bare(inner, marks)
        inner = member_for(inner, {})
        if not (inner is Any or is_struct(inner) or get_origin(inner) is dict):
            raise _LeadsNowhere(f"{dotted(here)} has no keys in it")
        below = table.setdefault(key, {})
        if not isinstance(below, dict):
            raise _LeadsNowhere(f"{dotted(here)} is no table")
        self._put(variable, rest, cast("Table", below), inner, here, marks)

    def _set(self, variable: Variable, table: Table, key: str, hint: Any, path: Path) -> None:
        if (other := self._problems.given_by(path)) is not None:
            self._problems.add_line(f"environment: {variable.name} and {other} both set {dotted(path)}")
            return
        table[key] = self._read(variable.value, hint)
        self._problems.came_from(path, variable.name)

    def _read(self, text: str, hint: Any) -> Any:
        value = _toml_value(text)
        if value is not None and self._fits(hint, value):
            return value
        if value is None or self._fits(hint, text):
            return text
        return value  # neither fits; the walk will say what was expected


def _not_one(top: str, name: str, found: list[str], tables: Table) -> str:
    if found:
        return f"{name} may be {' or '.join(found)}"
    what = top.removesuffix("s")
    return f"no {what} {name.lower()!r}; known {what}s: {nearest(name, tables)}"


def match(name: str, known: Iterable[str]) -> list[str]:
    """The known names that a variable's name may mean: one that is equal, else all that are alike."""
    known = list(known)
    if name in known:
        return [name]
    return [each for each in known if folded(each) == folded(name)]


def _step(keys: list[str], table: Table, shape: Any, marks: Marks) -> tuple[str, Any, list[str]]:
    """The key that the first name means, the type of its value, and the names that are left."""
    if marks.get("keep_case"):
        return _name("__".join(keys)), item_hint(shape), []
    name, rest = _name(keys[0]), keys[1:]
    known = fields_of(shape) if is_struct(shape) else table
    matches = match(name, known)
    if len(matches) > 1:
        raise _LeadsNowhere(f"{name} may be {' or '.join(matches)}")
    if is_struct(shape):
        if not matches:
            raise _LeadsNowhere(f"unknown key {name.lower()!r}; known keys: {nearest(name, known)}")
        return matches[0], fields_of(shape)[matches[0]].type, rest
    return (matches[0] if matches else name.lower()), item_hint(shape), rest


def _name(name: str) -> str:
    if not name:
        raise _LeadsNowhere("a name in it is empty")
    return name


def _toml_value(text: str) -> Any:
    """What the text is as one TOML value; None if it is none."""
    try:
        read = tomli.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return read["value"] if len(read) == 1 else None  # more: the text went on with keys of its own
