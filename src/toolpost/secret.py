"""Secrets: locked memory that holds them, and the masking of every text that leaves toolpost.

Right above `errors`; everything else may stand on it. It knows no configuration and no protocol.

Which copies exist, and for how long:

- The bytes of a `Secret`, and the encoded forms that `mask` searches for, stand in an arena: pages that
  are locked (never swapped out), left out of core dumps where the system can do that, and overwritten
  when the secret is dropped.
- Python strings cannot be wiped. The text a secret is made from, the bytes it passes through on its way
  into the arena, and what `expose` returns live until the interpreter frees and reuses their memory. So
  `expose` belongs at the point of use, its result in no attribute.
- A forked child holds a copy of the arena that is left out of its core dumps too, but is not locked:
  the system does not inherit locks. A program that was started by `exec` holds nothing.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import mmap
import os
import re
import sys
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, cast, final
from urllib.parse import quote, quote_plus

import msgspec

from toolpost.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

MASK: Final = "***"
MIN_MASKED: Final = 8
"""Shorter values are not masked: they would hide half of every text and still be easily guessed."""

_REDACTED: Final = f"Secret({MASK!r})"
_SCHEMES: Final = frozenset({"basic", "bearer", "digest", "token"})
_ESCAPED: Final = re.compile(rb'[\x00-\x1f"\\\x7f]')
_Views: TypeAlias = "tuple[memoryview, ...]"


# --- The arena ----------------------------------------------------------------------------------------


class _Chunk:
    """Whole pages with one lock. Space is handed out front to back and starts over once all is dropped."""

    __slots__ = ("live", "locked", "memory", "size", "used")

    def __init__(self, need: int, *, must_lock: bool) -> None:
        self.size = -(-need // mmap.PAGESIZE) * mmap.PAGESIZE
        self.memory = _map(self.size)
        failure = _lock(self.memory, self.size)
        if failure and must_lock:
            self.memory.close()
            raise ConfigError([_lock_problem(failure)])
        self.locked = not failure
        self.used = 0
        self.live = 0


@final
class _Block:
    """The bytes of one secret: its value first, then its other forms."""

    __slots__ = ("all", "chunk", "dropped", "forms", "value")

    def __init__(self, chunk: _Chunk, forms: Sequence[bytes]) -> None:
        whole = memoryview(chunk.memory)
        start = at = chunk.used
        views: list[memoryview] = []
        for form in forms:
            whole[at : at + len(form)] = form
            views.append(whole[at : at + len(form)])
            at += len(form)
        self.chunk = chunk
        self.all = whole[start:at]
        self.value = views[0]
        self.forms: _Views = tuple(views)
        self.dropped = False
        chunk.used = at
        chunk.live += 1


class _Arena:
    """All chunks of the process, and what there is to search for.

    A secret may be dropped by the garbage collector anywhere, also on a thread that holds the mutex; so
    dropping never waits: what cannot be wiped at once is wiped by whoever lets go of the mutex. Masking
    takes no lock at all, since a finalizer may log: it reads one tuple that is replaced as a whole. A
    search that still holds the views of a dropped secret finds zeros, or half of another one: nothing.
    """

    def __init__(self) -> None:
        self.forms: _Views = ()
        self.needs_escapes = False
        """Some form holds what JSON escapes."""
        self._mutex = threading.Lock()
        self._dropped: deque[_Block] = deque()
        self._chunks: list[_Chunk] = []
        self._searched: dict[int, _Views] = {}
        if hasattr(os, "register_at_fork"):  # so that a child never sees a half-made change
            os.register_at_fork(
                before=self._mutex.acquire,
                after_in_parent=self._mutex.release,
                after_in_child=self._mutex.release,
            )

    def keep(self, forms: Sequence[bytes], *, must_lock: bool, search: bool) -> _Block:
        with self._changing():
            block = _Block(self._chunk_for(sum(map(len, forms)), must_lock=must_lock), forms)
            if search:
                self._searched[id(block)] = block.forms
                self._publish()
            return block

    def drop(self, block: _Block) -> None:
        self._dropped.append(block)
        self._wipe_dropped()

    @contextmanager
    def _changing(self) -> Generator[None]:
        with self._mutex:
            yield
        self._wipe_dropped()

    def _wipe_dropped(self) -> None:
        while self._dropped and self._mutex.acquire(blocking=False):
            try:
                self._wipe(self._dropped.popleft())
            finally:
                self._mutex.release()

    def _wipe(self, block: _Block) -> None:
        if block.dropped:
            return
        block.dropped = True
        block.all[:] = bytes(len(block.all))
        block.chunk.live -= 1
        if not block.chunk.live:
            block.chunk.used = 0
        if self._searched.pop(id(block), None):
            self._publish()

    def _publish(self) -> None:
        forms = tuple(view for views in self._searched.values() for view in views)
        self.needs_escapes = any(_ESCAPED.search(view) for view in forms)
        self.forms = forms

    def _chunk_for(self, need: int, *, must_lock: bool) -> _Chunk:
        for chunk in reversed(self._chunks):
            if chunk.size - chunk.used >= need and (chunk.locked or not must_lock):
                return chunk
        chunk = _Chunk(max(need, 1), must_lock=must_lock)
        self._chunks.append(chunk)
        return chunk


def _map(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # Private, not Python's default of shared: a forked child that drops its copy must not wipe ours.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    advice: int | None = getattr(mmap, "MADV_DONTDUMP", None)
    if advice is not None:
        try:
            memory.madvise(advice)
        except OSError:  # a sandboxed kernel without it: as on systems that never had it
            pass
    return memory


def _lock(memory: mmap.mmap, size: int) -> str:
    """Keep the pages in memory; the reason where that fails, else an empty string."""
    import ctypes  # here: a run without secrets does not pay for it

    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if sys.platform == "win32":
        done = ctypes.windll.kernel32.VirtualLock(ctypes.c_void_p(address), ctypes.c_size_t(size))
        return "" if done else "VirtualLock failed"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(size)) == 0:
        return ""
    return f"mlock: {os.strerror(ctypes.get_errno())}"


def _lock_problem(reason: str) -> str:
    return (
        f"secrets cannot be locked in memory ({reason}; RLIMIT_MEMLOCK, `ulimit -l`, is {_memlock()}): "
        "raise that limit, or set allow_unlocked_secrets = true in [tunables]"
    )


def _memlock() -> str:
    if sys.platform == "win32":
        return "unknown"
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return "unlimited" if soft == resource.RLIM_INFINITY else f"{soft // 1024} KiB"


_arena = _Arena()


# --- The secret ---------------------------------------------------------------------------------------


@final
class Secret:
    """A text that is kept in locked memory and shows itself to `expose` only.

    Equal to another `Secret` with the same text, in constant time, and to nothing else; not hashable, so
    that no hash of it is ever about. True unless empty; its length is not told. Not for `json`, `msgspec`,
    `pickle` or `copy`: they raise `TypeError`. While it lives, `mask` hides it in every text.

    Args:
        value: The text.
        allow_unlocked: Go on where the memory cannot be locked; `locked` tells.

    Raises:
        ConfigError: The memory cannot be locked; says how to mend that.
    """

    __slots__ = ("__weakref__", "_block")

    def __init__(self, value: str, *, allow_unlocked: bool = False) -> None:
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without types
            raise TypeError(f"a Secret is made from a str, not from {type(value).__name__}")
        self._block: _Block | None = _arena.keep(
            _forms(value), must_lock=not allow_unlocked, search=len(value) >= MIN_MASKED
        )

    @property
    def locked(self) -> bool:
        """Whether its memory is locked; false only with `allow_unlocked`."""
        return self._alive().chunk.locked

    def expose(self) -> str:
        """The text itself, for the one place that uses it: keep it in no attribute, log or error.

        Raises:
            UsageError: The secret was wiped.
        """
        return str(self._alive().value, "utf-8", "surrogatepass")

    def wipe(self) -> None:
        """Overwrite it now instead of when it is dropped; from then on `mask` knows it no more."""
        block, self._block = self._block, None
        if block is not None:
            _arena.drop(block)

    def _alive(self) -> _Block:
        block = self._block
        if block is None:
            raise UsageError("this Secret was wiped")
        return block

    def __del__(self, _drop: Any = _arena.drop) -> None:  # bound here: globals may be gone at shutdown
        block: _Block | None = getattr(self, "_block", None)
        if block is not None:
            _drop(block)

    def __repr__(self) -> str:
        return _REDACTED

    def __str__(self) -> str:
        return _REDACTED

    def __format__(self, format_spec: str, /) -> str:
        return _REDACTED

    def __bool__(self) -> bool:
        block = self._block
        return block is not None and bool(block.value)

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        mine, theirs = self._block, other._block
        if mine is None or theirs is None:
            return self is other
        return hmac.compare_digest(mine.value, theirs.value)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # as Python's own unhashable types

    def __reduce_ex__(self, protocol: object, /) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    def __copy__(self) -> NoReturn:
        raise TypeError("a Secret cannot be copied; share the object")

    def __deepcopy__(self, memo: object, /) -> NoReturn:
        raise TypeError("a Secret cannot be copied; share the object")


def _encode(text: str) -> bytes:
    # "surrogatepass" because an environment variable may hold bytes that are no UTF-8, and because text
    # from a server may hold anything; both ways round it is exact.
    return text.encode("utf-8", "surrogatepass")


def _forms(value: str) -> list[bytes]:
    """The value as it is, and, where it is searched for, as common encodings write it."""
    if len(value) < MIN_MASKED:
        return [_encode(value)]
    texts = [value, *_escaped(value), *_percent_encoded(value)]
    for part in _parts(value):
        if len(part) >= MIN_MASKED:
            texts += [part, *_escaped(part)]
    return list(dict.fromkeys([*map(_encode, texts), *_base64(value)]))


def _parts(value: str) -> Iterator[str]:
    """What is secret by itself: each line (a key file is shown by lines), and a header's credentials."""
    for line in value.splitlines():
        yield line
        yield line.strip()
    scheme, _, credentials = value.strip().partition(" ")
    if scheme.lower() in _SCHEMES:
        yield credentials.strip()


def _escaped(value: str) -> list[str]:
    return [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]]


def _percent_encoded(value: str) -> list[str]:
    return [
        quote(value, safe="", errors="surrogatepass"),
        quote(value, errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
    ]


def _base64(value: str) -> list[bytes]:
    plain = _encode(value)
    return [base64.b64encode(plain).rstrip(b"="), base64.urlsafe_b64encode(plain).rstrip(b"=")]


# --- Masking ------------------------------------------------------------------------------------------


def mask(text: str) -> str:
    """The text with `***` for every living secret of `MIN_MASKED` characters and more in it.

    Also found are the forms a secret takes in JSON, in a Python `repr`, in a URL and as base64, and each
    longer line of one with several. Overlapping finds are hidden as one, so that no rest stays behind.
    Gives the same object where nothing was found, and costs one check where no secret lives.
    """
    forms = _arena.forms
    if not forms:
        return text
    plain = data = _encode(text)
    # Again until nothing is found: what a mask leaves behind may join into another secret (of asterisks).
    # It ends, since each round makes the text shorter.
    while spans := _spans(data, forms):
        data = _without(data, spans)
    return text if data is plain else data.decode("utf-8", "surrogatepass")


def _spans(data: bytes, forms: _Views) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for form in forms:
        at = data.find(form)
        while at >= 0:
            found.append((at, at + len(form)))
            at = data.find(form, at + 1)
    found.sort()
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    last = 0
    for start, end in spans:
        pieces += [data[last:start], MASK.encode()]
        last = end
    return b"".join([*pieces, data[last:]])


def has_secrets() -> bool:
    """Whether there is anything to be masked."""
    return bool(_arena.forms)


def mask_json(value: Any) -> Any:
    """A JSON value with every secret in it masked, in keys too; the same object where nothing was found.

    A number that shows a secret becomes the mask. Works to any depth. Keys that would become equal are
    numbered. A cycle, which JSON cannot have, is cut.
    """
    forms = _arena.forms
    if not forms or _is_clean(value, forms):
        return value
    done: dict[int, Any] = {}
    todo: list[tuple[Any, bool]] = [(value, False)]
    while todo:
        node, ready = todo.pop()
        if ready:
            done[id(node)] = _rebuilt(node, done)
        elif _is_container(node) and id(node) not in done:
            done[id(node)] = MASK
            todo.append((node, True))
            todo += [(each, False) for each in _children(node)]
    return _masked_leaf(value, done)


def _is_clean(value: Any, forms: _Views) -> bool:
    """Whether a value surely shows no secret: one search of its JSON text, where most values have none.

    Only where JSON writes every form as it is: one with quotes, backslashes or control characters may stand
    in a string in other ways than in its text, and takes the walk.
    """
    if _arena.needs_escapes:
        return False
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return not any(data.find(form) >= 0 for form in forms)


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple))


def _children(node: Any) -> Iterable[Any]:
    return cast("dict[Any, Any]", node).values() if isinstance(node, dict) else node


def _masked_leaf(value: Any, done: dict[int, Any]) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        shown = str(value)
        return value if mask(shown) is shown else MASK
    return done.get(id(value), value)


def _rebuilt(node: Any, done: dict[int, Any]) -> Any:
    if isinstance(node, dict):
        return _rebuilt_dict(cast("dict[Any, Any]", node), done)
    items = [_masked_leaf(each, done) for each in node]
    if all(new is old for new, old in zip(items, node, strict=True)):
        return node
    return items if isinstance(node, list) else tuple(items)


def _rebuilt_dict(node: dict[Any, Any], done: dict[int, Any]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    changed = False
    for key, old in node.items():
        new_key = mask(key) if isinstance(key, str) else key
        new = _masked_leaf(old, done)
        changed = changed or new is not old or new_key is not key
        result[_unused(new_key, result)] = new
    return result if changed else node


def _unused(key: Any, taken: dict[Any, Any]) -> Any:
    free, number = key, 2
    while free in taken:
        free, number = f"{key}#{number}", number + 1
    return free


# --- Logging ------------------------------------------------------------------------------------------


class MaskingFilter(logging.Filter):
    """Masks what a log record says: its message, its traceback, its stack. It lets every record pass.

    For a logger or for a handler. A record with no secret in it stays as it is, arguments included; in
    one with a secret, the text replaces what it was made from.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the record in place."""
        if _arena.forms:
            _mask_message(record)
            _mask_traceback(record)
            if record.stack_info:
                record.stack_info = mask(record.stack_info)
        return True


def _mask_message(record: logging.LogRecord) -> None:
    try:
        message = record.getMessage()
    except Exception:  # its arguments do not fit: the standard library would print them, unmasked
        record.msg, record.args = mask(f"{record.msg!s} (its arguments do not fit)"), ()
        return
    masked = mask(message)
    if masked is not message:
        record.msg, record.args = masked, ()


def _mask_traceback(record: logging.LogRecord) -> None:
    text = record.exc_text
    if not text and record.exc_info and record.exc_info[0]:
        text = logging.Formatter().formatException(record.exc_info)
    masked = mask(text or "")
    if masked != (text or ""):
        record.exc_text, record.exc_info = masked, None


def get_logger(name: str) -> logging.Logger:
    """The standard library's logger of that name, with a `MaskingFilter` on it (once).

    A filter sees what is logged on its own logger only, not on the loggers below it; so every logger of
    toolpost comes from here.
    """
    logger = logging.getLogger(name)
    if not any(isinstance(each, MaskingFilter) for each in logger.filters):
        logger.addFilter(MaskingFilter())
    return logger
