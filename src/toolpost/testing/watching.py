"""What a change touches: the cases that depend on a file, and test files that come and go.

It looks when it is asked to, and never waits; files are compared by time and size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolpost.testing.result import Result

_Stamp = tuple[int, int] | None
"""Time of the last change in nanoseconds, and size; None is a file that is not there."""

_SOURCES = (".py", ".toml", ".wasm")


@dataclass(frozen=True, slots=True)
class Change:
    """What has changed since the last look."""

    files: list[str]
    """The files that did: changed, new or gone."""
    cases: list[Path]
    """The cases to run anew, in their order."""

    def __bool__(self) -> bool:
        return bool(self.files)


class Watch:
    """The files of some cases."""

    def __init__(self, find: Callable[[], Sequence[Path]]) -> None:
        """Nothing is known yet. `find` gives the cases that there are at the time."""
        self._find = find
        self._needs: dict[str, frozenset[str]] = {}
        """By the name of a case: the files that it depends on."""
        self._unsure: set[str] = set()
        """Of these it is not known: also a file that comes to be may mend them."""
        self._stamps: dict[str, _Stamp] = {}

    @property
    def names(self) -> list[str]:
        """The cases that there were at the last look."""
        return list(self._needs)

    def look(self, left: Collection[str] = ()) -> Change:
        """What has changed, and with that which cases are to be run. At the first look all are.

        Args:
            left: Cases that are to be run with the next change in any case.
        """
        now = {file: _stamp(file) for file in self._stamps}
        changed = {file for file, stamp in now.items() if stamp != self._stamps[file]}
        self._stamps = now
        changed |= self._look_around()
        found = {str(each): each for each in self._find()}  # last: what has gone meanwhile is not to be run
        came = [name for name in found if name not in self._needs]
        gone = [name for name in self._needs if name not in found]
        for name in gone:
            del self._needs[name]
            self._unsure.discard(name)
        for name in came:
            self._needs[name] = frozenset([_absolute(name)])
        touched = [
            found[name] for name in found if name in came or name in left or self._needs[name] & changed
        ]
        files = sorted({*changed, *map(_absolute, came), *map(_absolute, gone)})
        self._stamp_all(keep=now)
        return Change(files, touched)

    def learn(self, results: Iterable[Result], *, since_ns: int) -> None:
        """Take the files that cases depend on from what came of them.

        Args:
            results: Of cases that were just run.
            since_ns: When that began. A file that is new to us and was changed since counts as changed:
                what was run may have been the file before.
        """
        for each in results:
            if each.case not in self._needs:
                continue
            files = {*each.files, _absolute(each.case)}
            if not each.files or each.status == "error":  # it did not come so far as to know them all
                self._unsure.add(each.case)
                files |= {*self._needs[each.case], *_around(Path(each.case))}
            else:
                self._unsure.discard(each.case)
            self._needs[each.case] = frozenset(files)
        known = set(self._stamps)
        self._stamp_all(keep=known)
        for file in self._stamps.keys() - known:
            stamp = self._stamps[file]
            if stamp is not None and stamp[0] >= since_ns:
                self._stamps[file] = (0, 0)

    def _look_around(self) -> set[str]:
        """Add what cases may depend on that could not be run; gives the files that are new."""
        new: set[str] = set()
        for name in self._unsure:
            around = frozenset(_around(Path(name)))
            new |= around - self._needs[name]
            self._needs[name] |= around
        return new

    def _stamp_all(self, keep: Iterable[str] = ()) -> None:
        files = {file for needs in self._needs.values() for file in needs}
        kept = {file: self._stamps[file] for file in keep if file in files}
        self._stamps = {file: kept[file] if file in kept else _stamp(file) for file in files}


def _stamp(file: str) -> _Stamp:
    try:
        stat = os.stat(file)  # noqa: PTH116  names that are compared, hundreds of them each time
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _absolute(name: str) -> str:
    return str(Path(name).absolute())


def _around(case: Path) -> Iterator[str]:
    """What a case that could not be run may depend on: the sources beside it, and beside what it extends."""
    seen: set[Path] = set()
    file: Path | None = case.absolute()
    while file is not None and file not in seen:
        seen.add(file)
        yield str(file)
        if file.parent.is_dir():
            yield from (str(each) for each in file.parent.iterdir() if each.suffix in _SOURCES)
        file = _extended(file)


def _extended(file: Path) -> Path | None:
    import tomli

    try:
        test: Any = tomli.loads(file.read_text(encoding="utf-8")).get("test")
    except (OSError, ValueError):
        return None
    name = cast("dict[str, Any]", test).get("extends") if isinstance(test, dict) else None
    return Path(os.path.normpath(file.parent / name)) if isinstance(name, str) else None
