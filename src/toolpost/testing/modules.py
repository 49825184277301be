"""Each case imports its agents anew: what one leaves in a module is not there for the next."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

_INSTALLED = {"site-packages", "dist-packages"}


class Imports:
    """What a case has imported from its own folders."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [each.resolve() for each in folders]
        self._before = set(sys.modules)

    def modules(self) -> dict[str, Path]:
        """The modules that are new, by name, with their files. What is installed is nobody's own."""
        found: dict[str, Path] = {}
        for name in set(sys.modules) - self._before:
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and self._is_own(path := Path(file).resolve()):
                found[name] = path
        return found

    def _is_own(self, path: Path) -> bool:
        return any(
            path.is_relative_to(folder) and _INSTALLED.isdisjoint(path.relative_to(folder).parts)
            for folder in self._folders
        )


@contextmanager
def own_imports(folders: Iterable[Path]) -> Generator[Imports]:
    """Forget at the end what was imported from these folders, and what was put on the import path."""
    importlib.invalidate_caches()  # files may be newer than the process
    imports, import_path = Imports(folders), list(sys.path)
    try:
        yield imports
    finally:
        sys.path[:] = import_path
        for name in imports.modules():
            del sys.modules[name]
