"""Which test files there are: under the paths that were given, without what nobody means to run.

A path that is given is meant: a file of any name, a folder that is hidden or ignored. Under a folder are left
out what is hidden, the caches and dependencies of tools, virtual environments, and what git ignores. Links to
folders are not followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from toolpost.errors import UsageError
from toolpost.secret import get_logger

SUFFIX = ".test.toml"
"""How the files are named that a folder is searched for."""

_SKIPPED = {"__pycache__", "node_modules"}
_VENV = "pyvenv.cfg"
"""In the folder of every virtual environment, whatever that is called."""
_NAMED = 5
"""So many files a message names."""

_log = get_logger("toolpost.testing")


def find_cases(paths: Sequence[Path]) -> list[Path]:
    """The test files: each path in turn, under a folder in order of their names. Each file comes once.

    Raises:
        UsageError: A path leads nowhere, or there is no test file at all.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for case in _under(path):
            found.setdefault(os.path.abspath(case), case)  # noqa: PTH100  links are files of their own
    if not found:
        places = ", ".join(repr(str(each)) for each in paths)
        raise UsageError(f"no test files (*{SUFFIX}) in {places}; hidden and ignored folders are skipped")
    return list(found.values())


def select(cases: Sequence[Path], *, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()) -> list[Path]:
    """Those that one of the wanted globs matches, if there are any, and no unwanted one.

    A glob is matched against the path as it is shown, and against the name of the file, with and without
    `.test.toml`.

    Raises:
        UsageError: None is left.
    """
    kept = [each for each in cases if (not wanted or _matches(each, wanted)) and not _matches(each, unwanted)]
    if not kept:
        given = [f"-k {glob!r}" for glob in wanted] + [f"--exclude {glob!r}" for glob in unwanted]
        raise UsageError(
            f"{' '.join(given)} leaves none of {len(cases)} test files: {_listed(cases)}"
            " (a glob matches a whole name: '*first*' where 'first' is a part of it)"
        )
    return kept


def _matches(case: Path, globs: Sequence[str]) -> bool:
    names = {name.removesuffix(end) for name in (str(case), case.name) for end in ("", SUFFIX)}
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _listed(cases: Sequence[Path]) -> str:
    rest = len(cases) - _NAMED
    return ", ".join(map(str, cases[:_NAMED])) + (f" and {rest} more" if rest > 0 else "")


# -- walking ---------------------------------------------------------------------------------------


def _under(path: Path) -> list[Path]:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise UsageError(f"cannot search {str(path)!r} for tests: {error.strerror or error}") from None
    if not is_folder:
        return [path]
    found = sorted(_walk(path))
    return _without_ignored(path, found) if found else []


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, onerror=_warn):
        here = Path(place)
        folders[:] = [each for each in folders if not _is_skipped(here, each)]
        yield from (here / each for each in files if each.endswith(SUFFIX) and not each.startswith("."))


def _is_skipped(parent: Path, name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or (parent / name / _VENV).exists()


def _warn(error: OSError) -> None:
    folder = str(Path(error.filename))
    _log.warning("the folder %r cannot be searched for tests: %s", folder, error.strerror)


def _without_ignored(folder: Path, cases: list[Path]) -> list[Path]:
    """Those that git does not ignore; all where there is no git, no repository, or the folder is ignored."""
    names = [os.fsencode(each.relative_to(folder)) for each in cases]
    ignored = _ignored(folder, [*names, b"."])
    if b"." in ignored:
        return cases
    return [each for each, name in zip(cases, names, strict=True) if name not in ignored]


def _ignored(folder: Path, names: Sequence[bytes]) -> set[bytes]:
    """Those of the paths in a folder that git ignores: none of them is tracked."""
    git = shutil.which("git")
    if git is None:
        return set()
    command = [git, "check-ignore", "-z", "--stdin"]
    done = subprocess.run(command, cwd=folder, input=b"\0".join(names), capture_output=True, check=False)
    return set(done.stdout.split(b"\0"))
