"""Puts waits.wat between a guest and the waiting of WASI.

A guest that sleeps by its language's own means waits in `wasi:io/poll`, inside of the runtime, where nothing
interrupts it. The runtime lets nobody replace that function alone. So a guest becomes part of another
component, in the binary format:

    head    a copy of the guest's own: what it imports
    tail    what waits.wat imports; waits.wat and the guest; how they are joined; the guest's exports
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import TypeVar

from wasmtime import wat2wasm

T = TypeVar("T")

POLL = "wasi:io/poll@0.2."
OWN_IMPORTS = (f"{POLL}9999", "wasi:clocks/monotonic-clock@0.2.9999")
"""What waits.wat takes of WASI. A guest's import of the same has but the functions that this guest calls, so
these stand beside it, as another version: to the runtime all of 0.2 are one."""

_PREAMBLE = b"\0asm\x0d\0\x01\0"
_CUSTOM, _CORE_TYPE, _COMPONENT, _INSTANCE, _ALIAS, _TYPE, _IMPORT, _EXPORT = 0, 3, 4, 5, 6, 7, 10, 11
"""Sections."""
_OF_FUNC, _OF_TYPE, _OF_INSTANCE = 1, 3, 5
"""Sorts of what is imported, exported, and taken from an instance."""


def interruptible(guest: bytes) -> bytes:
    """The same guest, whose waits can be interrupted; itself where it has none, or is of another build.

    Compilers put what a component imports first, all of it as instances, and each once.
    """
    try:
        anatomy = _read(guest)
    except (_Unknown, IndexError, UnicodeDecodeError):  # if it is damaged, that is for the runtime to say
        return guest
    polls = [at for at, name in enumerate(anatomy.imports) if name.startswith(POLL)]
    if len(polls) != 1:
        return guest
    return b"".join([_PREAMBLE, *anatomy.head, *_tail(guest, anatomy, polls[0])])


# -- reading ---------------------------------------------------------------------------------------


class _Unknown(Exception):
    """Something that compilers do not write."""


@dataclass(frozen=True)
class _Anatomy:
    head: list[bytes]
    """Whole sections."""
    imports: list[str]
    """Instances, each."""
    types: int
    """How many the head has."""
    exports: list[tuple[str, int]]
    """Names and sorts."""


def _read(component: bytes) -> _Anatomy:
    sections = list(_sections(component))
    end = 1 + max((at for at, (kind, _) in enumerate(sections) if kind == _IMPORT), default=-1)
    head = sections[:end]
    imports: list[str] = []
    types = 0
    for kind, data in head:
        reader = _Reader(data)
        if kind == _IMPORT:
            imports += reader.vector(reader.import_)
        elif kind == _ALIAS:
            types += len(reader.vector(reader.alias_of_type))
        elif kind == _TYPE:
            types += reader.number()
        elif kind != _CORE_TYPE:
            raise _Unknown
    readers = [_Reader(data) for kind, data in sections if kind == _EXPORT]
    exports = [export for each in readers for export in each.vector(each.export)]
    return _Anatomy([_section(*each) for each in head], imports, types, exports)


def _sections(component: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(component, len(_PREAMBLE))
    while reader.at < len(component):
        kind, data = reader.byte(), reader.bytes()
        if kind != _CUSTOM:  # there may be millions
            yield kind, data


class _Reader:
    """Goes through the items of the format, one behind another."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def number(self) -> int:
        value = 0
        for shift in range(0, 35, 7):  # it has 32 bits
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _Unknown

    def bytes(self) -> bytes:
        size = self.number()
        self.at += size
        return self._data[self.at - size : self.at]

    def vector(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.number())]

    def import_(self) -> str:
        name = self._name()
        self._expect(_OF_INSTANCE)
        self.number()
        return name

    def alias_of_type(self) -> None:
        self._expect(_OF_TYPE)
        self._expect(0)  # of an instance
        self.number()
        self.bytes()

    def export(self) -> tuple[str, int]:
        name, sort = self._name(), self.byte()
        if sort not in (_OF_FUNC, _OF_INSTANCE):
            raise _Unknown
        self.number()
        self._expect(0)  # without a type of its own
        return name, sort

    def _name(self) -> str:
        self._expect(0, 1)
        return self.bytes().decode()

    def _expect(self, *known: int) -> None:
        if self.byte() not in known:
            raise _Unknown


# -- writing ---------------------------------------------------------------------------------------


def _tail(guest: bytes, anatomy: _Anatomy, poll: int) -> Iterable[bytes]:
    pollable = anatomy.types
    yield _section(_ALIAS, _vector([_taken("pollable", _OF_TYPE, poll)]))
    yield _section(_TYPE, _vector([_poll_type(pollable), _clock_type(pollable)]))
    own = [
        b"\0" + _text(name) + bytes([_OF_INSTANCE]) + _number(pollable + at)
        for at, name in enumerate(OWN_IMPORTS, 1)
    ]
    yield _section(_IMPORT, _vector(own))
    yield _section(_COMPONENT, _waits())
    yield _section(_COMPONENT, guest)
    native, clock, waits, made = range(len(anatomy.imports), len(anatomy.imports) + 4)
    given = {name: waits if at == poll else at for at, name in enumerate(anatomy.imports)}
    yield _section(_INSTANCE, _vector([_made(0, {"poll": native, "clock": clock}), _made(1, given)]))
    yield _section(_ALIAS, _vector([_taken(name, sort, made) for name, sort in anatomy.exports]))
    next_of = {_OF_FUNC: count(), _OF_INSTANCE: count(made + 1)}
    exports = [
        b"\0" + _text(name) + bytes([sort]) + _number(next(next_of[sort])) + b"\0"
        for name, sort in anatomy.exports
    ]
    yield _section(_EXPORT, _vector(exports))


@cache
def _waits() -> bytes:
    return bytes(wat2wasm(Path(__file__).with_name("waits.wat").read_text()))


def _poll_type(pollable: int) -> bytes:
    """Of an instance with `poll: func(in: list<borrow<pollable>>) -> list<u32>`."""
    borrow, borrows, numbers = b"\x01\x68\x01", b"\x01\x70\x02", b"\x01\x70\x79"  # its types 2, 3 and 4
    function = b"\x01\x40" + _vector([_text("in") + b"\x03"]) + b"\0\x04"
    return _instance_type(pollable, borrow, borrows, numbers, function, _exported("poll", 5))


def _clock_type(pollable: int) -> bytes:
    """Of an instance with `subscribe-duration: func(when: u64) -> pollable`."""
    own = b"\x01\x69\x01"  # its type 2
    function = b"\x01\x40" + _vector([_text("when") + b"\x77"]) + b"\0\x02"
    return _instance_type(pollable, own, function, _exported("subscribe-duration", 3))


def _instance_type(pollable: int, *rest: bytes) -> bytes:
    """Its types 0 and 1 are `pollable`: that of the component around it, and its own, which is the same."""
    outer = bytes([2, _OF_TYPE, 2, 1]) + _number(pollable)
    return b"\x42" + _vector([outer, b"\x04\0" + _text("pollable") + bytes([_OF_TYPE, 0, 0]), *rest])


def _exported(name: str, function_type: int) -> bytes:
    return b"\x04\0" + _text(name) + bytes([_OF_FUNC, function_type])


def _made(component: int, given: dict[str, int]) -> bytes:
    """An instance of a component, given instances."""
    arguments = [_text(name) + bytes([_OF_INSTANCE]) + _number(at) for name, at in given.items()]
    return bytes([0, component]) + _vector(arguments)


def _taken(name: str, sort: int, instance: int) -> bytes:
    """What an instance exports."""
    return bytes([sort, 0]) + _number(instance) + _text(name)


def _section(kind: int, data: bytes) -> bytes:
    return bytes([kind]) + _number(len(data)) + data


def _vector(items: list[bytes]) -> bytes:
    return _number(len(items)) + b"".join(items)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _number(len(encoded)) + encoded


def _number(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _number(value >> 7)
