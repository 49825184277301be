"""What a guest prints, as lines of its agent's log.

A thread of the runtime's own calls with it, and lets go of the output a moment after the guest. With the
binding (`WasiConfig.stdout_custom`) a function in Python is called then: where that meets the end of the
interpreter, the process aborts. So here is none.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import traceback
from importlib import import_module
from itertools import count
from types import TracebackType
from typing import Any

from wasmtime import WasiConfig

from toolpost.secret import get_logger

_ffi: Any = import_module("wasmtime._ffi")

MAX_LINE = 64 * 1024
"""Bytes; what has no end by then is logged in parts."""


class Lines:
    """Both outputs of one guest. What is left without an end is logged when it is over."""

    def __init__(self, agent: str) -> None:
        log = get_logger(f"toolpost.agent.{agent}")
        self._stdout = _Output(log, logging.INFO)
        self._stderr = _Output(log, logging.WARNING)

    def take_over(self, wasi: WasiConfig) -> None:
        """Let a guest print here."""
        _ffi.wasi_config_set_stdout_custom(wasi.ptr(), _write, self._stdout.number, _NOTHING)
        _ffi.wasi_config_set_stderr_custom(wasi.ptr(), _write, self._stderr.number, _NOTHING)

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stdout.close()
        self._stderr.close()


class _Output:
    def __init__(self, log: logging.Logger, level: int) -> None:
        self._log = log
        self._level = level
        self._rest = b""
        self.number = next(_numbers)
        _open[self.number] = self

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._log_line(line)
        if len(self._rest) > MAX_LINE:
            self._flush()

    def close(self) -> None:
        del _open[self.number]
        self._flush()

    def _flush(self) -> None:
        if self._rest:
            rest, self._rest = self._rest, b""
            self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        self._log.log(self._level, "%s", line.decode(errors="replace").rstrip("\r"))


_open: dict[int, _Output] = {}
"""By the number that C has of each."""
_numbers = count(1)
_BYTES: Any = ctypes.POINTER(ctypes.c_ubyte)


@ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, _BYTES, ctypes.c_size_t)
def _write(number: Any, data: Any, size: Any) -> int:
    try:
        if (output := _open.get(number)) is not None:
            output.write(ctypes.string_at(data, size))
    except Exception:  # of a handler of the log, say: there is nobody to raise it to
        traceback.print_exc()
        return -errno.EIO
    return size


_NOTHING: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()
"""No function."""
