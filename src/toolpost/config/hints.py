"""What the walk reads off a type: which shape it has, and which marks its `Meta` carries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import FieldInfo

from toolpost.secret import Secret

Marks = Mapping[str, Any]
"""The `extra` of a key's `Meta`; what stands on a container counts for what is in it."""


def bare(hint: Any, marks: Marks) -> tuple[Any, Marks]:
    """The hint without `Annotated` and without None, and the marks gathered on the way."""
    while True:
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            for each in extras:
                if isinstance(each, Meta) and each.extra:
                    marks = {**marks, **each.extra}
            continue
        if get_origin(hint) in (Union, UnionType):
            members = [each for each in get_args(hint) if each is not NoneType]
            if len(members) == 1:
                hint = members[0]
                continue
        return hint, marks


def member_for(hint: Any, raw: object) -> Any:
    """Of a union, the one member whose shape `raw` has; the hint itself where that is no help."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    shape = dict if isinstance(raw, dict) else list if isinstance(raw, list) else str
    fitting = [each for each in get_args(hint) if _shape(each) is shape]
    return fitting[0] if len(fitting) == 1 else hint


def is_struct(hint: Any) -> TypeGuard[type[msgspec.Struct]]:
    """Whether it is a Struct with keys of its own to check; one of a tagged union is msgspec's matter."""
    if not (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        return False
    return hint.__struct_config__.tag is None and not hint.__struct_config__.array_like


def item_hint(hint: Any) -> Any:
    """What a list or the values of a table are."""
    arguments = get_args(hint)
    return arguments[-1] if arguments else Any


def fields_of(cls: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """The fields by the names that files use."""
    return _fields(cls)


@cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {each.encode_name: each for each in msgspec.structs.fields(cls)}


def has_parts(hint: Any) -> bool:
    """Whether secrets or Structs are in it, so that msgspec alone cannot convert it."""
    if hint is Secret or is_struct(hint):
        return True
    return any(has_parts(each) for each in get_args(hint))


def has_secrets(hint: Any) -> bool:
    """Whether values of it may be secret, so that none is shown."""
    return hint is Secret or any(has_secrets(each) for each in get_args(hint))


def _shape(hint: Any) -> Any:
    hint, _ = bare(hint, {})
    return dict if is_struct(hint) else str if hint is Secret else get_origin(hint) or hint
