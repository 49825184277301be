"""Compiled components: made once, kept in the user's cache folder, and loaded by each guest's own engine.

Each guest has an engine of its own, since an engine's epoch is what ends the code that runs on it, and ends
all of it. Loading a compiled component takes milliseconds: the file is mapped, not read.

The cache holds machine code that is run as it is. So a folder that is not the user's own is not used, and a
file is named by the digest of all that made it. It is complete once it has its name: it is written beside it,
down to the disk, and renamed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from wasmtime import Config, Engine, WasmtimeError
from wasmtime.component import Component

from toolpost.secret import get_logger
from toolpost.wasm.waits import interruptible

KEPT_BYTES = 1024**3
"""How much stays in the cache: what was used last."""
STARTING_SECS = 600
"""What was used since then stays in any case: it may be about to be loaded."""
_SUFFIX = ".cwasm"

_log = get_logger("toolpost.wasm")
_compiling = threading.Lock()
"""Of two that need the same component at once, the second finds it compiled."""
_known: dict[tuple[str, int, int, int], Compiled] = {}
"""What this process has loaded, by path, inode, time and size of the file: each seed of a test loads anew."""


def new_engine() -> Engine:
    """An engine whose code ends when its epoch moves on."""
    config = Config()
    config.epoch_interruption = True
    return Engine(config)


@dataclass(frozen=True)
class Compiled:
    """A component that was compiled."""

    source: Path | bytes
    """The file in the cache; or what it would hold, where it cannot be written."""
    is_wrapped: bool
    """Whether waits of ours, with a memory of their own, stand between it and those of WASI."""

    def load(self, engine: Engine) -> Component:
        """The component, for one engine.

        Raises:
            WasmtimeError: The file is not what it was any more.
        """
        if isinstance(self.source, bytes):
            return Component.deserialize(engine, self.source)
        return Component.deserialize_file(engine, str(self.source))


def compiled(path: Path) -> Compiled:
    """The component of a file, compiled now if it is not yet.

    Raises:
        OSError: The file cannot be read.
        WasmtimeError: It holds no component.
    """
    with _compiling:
        stat = path.stat()
        key = (str(path), stat.st_ino, stat.st_mtime_ns, stat.st_size)
        found = _known.get(key)
        if found is None or not _is_usable(found):
            found = _known[key] = _from_cache(path)
        return found


def _from_cache(path: Path) -> Compiled:
    raw = path.read_bytes()
    wasm = interruptible(raw)
    is_wrapped = wasm is not raw
    made_by = f"wasmtime {version('wasmtime')} with epochs\n".encode()
    place = cache_folder() / (hashlib.sha256(made_by + wasm).hexdigest() + _SUFFIX)
    code = None
    try:
        _make_own(place.parent)
        if _is_usable(found := Compiled(place, is_wrapped)):
            return found
        _log.info("compiling %s, once", path)
        code = _compile(wasm)
        _keep(place, code)
    except OSError as error:
        _log.warning("%s is compiled for this run alone: %s: %s", path, place.parent, error.strerror)
        return Compiled(code or _compile(wasm), is_wrapped)
    return found


def _compile(wasm: bytes) -> bytes:
    """Takes seconds, in a thread of its own: Ctrl-C need not wait for it to end."""
    code: Future[bytes] = Future()

    def compile_it() -> None:
        try:
            code.set_result(bytes(Component(new_engine(), wasm).serialize()))
        except BaseException as error:
            code.set_exception(error)

    threading.Thread(target=compile_it, name="toolpost compiler", daemon=True).start()
    return code.result()


def _make_own(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    stat = folder.stat()
    if sys.platform != "win32" and (stat.st_uid != os.geteuid() or stat.st_mode & 0o022):
        raise PermissionError(errno.EPERM, "it belongs to another user, or others can write to it")


def _is_usable(found: Compiled) -> bool:
    if isinstance(found.source, bytes):
        return True
    try:
        found.load(new_engine())
        os.utime(found.source)
    except (WasmtimeError, OSError):  # not there, or written by another machine that shares the folder
        return False
    return True


def _keep(place: Path, code: bytes) -> None:
    descriptor, beside = tempfile.mkstemp(dir=place.parent, prefix="new-", suffix=_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(code)
            file.flush()
            os.fsync(descriptor)
        Path(beside).replace(place)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _clear_out(place.parent)


def _clear_out(folder: Path) -> None:
    found: list[tuple[float, int, Path]] = []
    for file in folder.glob(f"*{_SUFFIX}"):
        try:
            stat = file.stat()
        except OSError:  # another process has removed it
            continue
        found.append((stat.st_mtime, stat.st_size, file))
    room, starting = KEPT_BYTES, time.time() - STARTING_SECS
    for used, size, file in sorted(found, reverse=True):
        room -= size
        if room < 0 and used < starting:
            file.unlink(missing_ok=True)


def cache_folder() -> Path:
    """Where compiled components are kept."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or ""
        default = Path.home() / "AppData" / "Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or ""
        default = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    # a path that is not absolute is to be ignored, says the specification
    return (Path(base) if os.path.isabs(base) else default) / "toolpost" / "wasm"  # noqa: PTH117
