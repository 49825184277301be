"""Host functions for components, in place of those of wasmtime's binding (`LinkerInstance.add_func`).

That one walks through a function's types each time it is called, by dozens of calls into C: most of what a
guest's call would cost. It finds the case of a variant by a set that all threads fill, and keeps what a
function raises in a global, for whichever guest fails next. Here types are looked at in the first call, and
become functions that convert; a variant's case is always said; what is raised goes back with its own call.

A variant and a result is given as a `Variant`, a record as any object with the fields as attributes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from wasmtime import StoreContext, WasmtimeError
from wasmtime.component import (
    F64,
    Bool,
    EnumType,
    FuncType,
    LinkerInstance,
    ListType,
    OptionType,
    OwnType,
    RecordType,
    ResultType,
    String,
    ValType,
    VariantType,
)

_ffi: Any = import_module("wasmtime._ffi")  # the C API; what of it is used has not changed for years
_slab: Any = import_module("wasmtime._slab")

_pointer_to: Any = ctypes.POINTER
_BYTES: Any = _pointer_to(_ffi.wasm_byte_t)

Lower: TypeAlias = Callable[[StoreContext, Any, Any], None]
"""Puts a value into a `wasmtime_component_val_t`."""


class _Function:
    def __init__(self, func: Callable[..., Any]) -> None:
        self._func = func
        self._params: list[ValType] | None = None
        self._lower: Lower | None = None

    def call(self, store: StoreContext, raw_type: Any, args: Any, results: Any) -> None:
        if self._params is None:
            self._look_at(store, raw_type)
        assert self._params is not None
        given = [each.convert_from_c(args[at]) for at, each in enumerate(self._params)]
        result = self._func(store, *given)
        if self._lower is not None:
            self._lower(store, result, results[0])

    def _look_at(self, store: StoreContext, raw_type: Any) -> None:
        with FuncType._from_ptr(raw_type, owner=store) as function:  # pyright: ignore[reportPrivateUsage]: as in the binding
            result = function.result
            self._lower = None if result is None else _lowering(result)
            self._params = [each for _, each in function.params]


_functions: Any = _slab.Slab()
"""By the number that C has of each; a guest's go with its linker."""


@_ffi.wasmtime_component_func_callback_t
def _call(index: Any, context: Any, raw_type: Any, args: Any, _: Any, results: Any, __: Any) -> Any:
    store = StoreContext(context)
    try:
        _functions.get(index).call(store, raw_type, args, results)
    except BaseException as error:
        failure = (
            error if isinstance(error, WasmtimeError) else WasmtimeError(f"{type(error).__name__}: {error}")
        )
        return ctypes.cast(failure._consume(), ctypes.c_void_p).value  # pyright: ignore[reportPrivateUsage]: it is C's now
    else:
        return 0
    finally:
        store._invalidate()  # pyright: ignore[reportPrivateUsage]: as in the binding


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _forget(index: Any) -> None:
    _functions.deallocate(index)


def add_func(instance: LinkerInstance, name: str, func: Callable[..., Any]) -> None:
    """Define a function; it is called with the store and its arguments."""
    encoded = name.encode()
    index = _functions.allocate(_Function(func))
    error = _ffi.wasmtime_component_linker_instance_add_func(
        instance.ptr(), ctypes.create_string_buffer(encoded), len(encoded), _call, index, _forget
    )
    if error:
        raise WasmtimeError._from_ptr(error)  # pyright: ignore[reportPrivateUsage]: as in the binding


# -- from Python to C ------------------------------------------------------------------------------


def _lowering(type_: ValType) -> Lower:
    match type_:
        case String():
            return _lower_string
        case Bool():
            return _lower_bool
        case F64():
            return _lower_f64
        case EnumType():
            return _lower_enum
        case OwnType():
            return _lower_own
        case ListType():
            return _list(_lowering(type_.element))
        case RecordType():
            return _record([(name.encode(), name, _lowering(each)) for name, each in type_.fields])
        case OptionType():
            return _option(_lowering(type_.payload))
        case ResultType():
            return _result({"ok": _optional(type_.ok), "err": _optional(type_.err)})
        case VariantType():
            return _variant({name: _optional(each) for name, each in type_.cases})
        case _:
            raise TypeError(f"no function of toolpost.wit gives a {type(type_).__name__}")


def _optional(type_: ValType | None) -> Lower | None:
    return None if type_ is None else _lowering(type_)


def _put_bytes(vector: Any, data: bytes) -> None:
    _ffi.wasm_byte_vec_new(ctypes.byref(vector), len(data), ctypes.cast(ctypes.c_char_p(data), _BYTES))


def _lower_string(_store: StoreContext, value: str, to: Any) -> None:
    _put_bytes(to.of.string, value.encode())
    to.kind = _STRING


def _lower_bool(_store: StoreContext, value: bool, to: Any) -> None:
    to.of.boolean = value
    to.kind = _BOOL


def _lower_f64(_store: StoreContext, value: float, to: Any) -> None:
    to.of.f64 = value
    to.kind = _F64


def _lower_enum(_store: StoreContext, value: str, to: Any) -> None:
    _put_bytes(to.of.enumeration, value.encode())
    to.kind = _ENUM


def _lower_own(store: StoreContext, value: Any, to: Any) -> None:
    to.of.resource = value.to_any(store)._consume()
    to.kind = _RESOURCE


def _list(element: Lower) -> Lower:
    def lower(store: StoreContext, value: list[Any], to: Any) -> None:
        items = to.of.list
        _ffi.wasmtime_component_vallist_new_uninit(ctypes.byref(items), len(value))
        for at, each in enumerate(value):
            element(store, each, items.data[at])
        to.kind = _LIST

    return lower


def _record(fields: list[tuple[bytes, str, Lower]]) -> Lower:
    def lower(store: StoreContext, value: Any, to: Any) -> None:
        record = to.of.record
        _ffi.wasmtime_component_valrecord_new_uninit(ctypes.byref(record), len(fields))
        for at, (encoded, name, field) in enumerate(fields):
            entry = record.data[at]
            _put_bytes(entry.name, encoded)
            field(store, getattr(value, name), entry.val)
        to.kind = _RECORD

    return lower


def _boxed(store: StoreContext, lower: Lower, value: Any) -> Any:
    inner = _ffi.wasmtime_component_val_t()
    lower(store, value, inner)
    return _ffi.wasmtime_component_val_new(ctypes.byref(inner))


def _option(payload: Lower) -> Lower:
    def lower(store: StoreContext, value: Any, to: Any) -> None:
        to.of.option = None if value is None else _boxed(store, payload, value)
        to.kind = _OPTION

    return lower


def _result(cases: dict[str, Lower | None]) -> Lower:
    def lower(store: StoreContext, value: Any, to: Any) -> None:
        case = cases[value.tag]
        to.of.result.val = None if case is None else _boxed(store, case, value.payload)
        to.of.result.is_ok = value.tag == "ok"
        to.kind = _RESULT

    return lower


def _variant(cases: dict[str, Lower | None]) -> Lower:
    def lower(store: StoreContext, value: Any, to: Any) -> None:
        case = cases[value.tag]
        to.of.variant.val = None if case is None else _boxed(store, case, value.payload)
        _put_bytes(to.of.variant.discriminant, value.tag.encode())
        to.kind = _VARIANT

    return lower


_BOOL, _F64, _STRING, _LIST, _RECORD, _VARIANT, _ENUM, _OPTION, _RESULT, _RESOURCE = (
    getattr(_ffi, f"WASMTIME_COMPONENT_{name}").value
    for name in (
        *("BOOL", "F64", "STRING", "LIST", "RECORD", "VARIANT", "ENUM"),
        *("OPTION", "RESULT", "RESOURCE"),
    )
)
