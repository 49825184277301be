"""Each case imports its agents anew: what one leaves in a module is not there for the next."""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

_INSTALLED = {"site-packages", "dist-packages"}
_STDLIB = Path(sysconfig.get_path("stdlib")).resolve()


class Imports:
    """What a case has imported that is neither installed nor of the standard library."""

    def __init__(self) -> None:
        self._before = set(sys.modules)

    def modules(self) -> dict[str, Path]:
        """The modules that are new, by name, with their files."""
        new = set(sys.modules) - self._before
        return {name: path for name in new if (path := own_file(name)) is not None}


def own_file(name: str) -> Path | None:
    """The file of a module that somebody wrote here; None for what is installed, or has none."""
    file = getattr(sys.modules[name], "__file__", None)
    if not isinstance(file, str) or name.partition(".")[0] == "toolpost":
        return None
    path = Path(file).resolve()
    is_installed = not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(_STDLIB)
    return None if is_installed else path


@contextmanager
def own_imports(folders: Iterable[Path]) -> Generator[Imports]:
    """Forget at the end what was imported, and what was put on the import path.

    Modules of others that stand in the way of these folders' own, by their names, are put aside meanwhile.
    """
    importlib.invalidate_caches()  # files may be newer than the process
    import_path, aside = list(sys.path), _in_the_way([each.resolve() for each in folders])
    for name in aside:
        del sys.modules[name]
    imports = Imports()
    try:
        yield imports
    finally:
        sys.path[:] = import_path
        for name in imports.modules():
            del sys.modules[name]
        sys.modules.update(aside)


def _in_the_way(folders: Sequence[Path]) -> dict[str, ModuleType]:
    """Modules from elsewhere under names that these folders have too, as when tests share a process."""
    tops = {name.partition(".")[0] for name in sys.modules}
    ours = {
        top: folder
        for folder in folders
        for top in tops
        if (folder / f"{top}.py").exists() or (folder / top / "__init__.py").exists()
    }
    found: dict[str, ModuleType] = {}
    for name, module in tuple(sys.modules.items()):
        folder = ours.get(name.partition(".")[0])
        path = None if folder is None else own_file(name)
        if folder is not None and path is not None and not path.is_relative_to(folder):
            found[name] = module
    return found
