"""The steps of a mock's script, each with the place where the config has it.

Pure: no I/O, no event loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from toolpost.expect.event import EventPattern, parse_event
from toolpost.expect.pattern import show
from toolpost.mock.params import START, CallStep, ContentStep, ListStep, MockParams
from toolpost.model import Json, JsonObject

Step: TypeAlias = CallStep | ListStep | ContentStep
S_co = TypeVar("S_co", bound=Step, covariant=True)
S = TypeVar("S", bound=Step)


@dataclass(frozen=True, repr=False)
class PlacedStep(Generic[S_co]):
    """A step of a mock's script, and where it stands. It prints as the config writes it."""

    place: str
    """As an error of the config would name it: `tool_calls[1]`."""
    step: S_co
    """Its keys, as attributes."""

    @cached_property
    def gate(self) -> EventPattern | None:
        """What must have been seen in the run before it fires; None is nothing."""
        after = self.step.after
        return None if after == START else parse_event(cast("JsonObject", after), may_name_agent=True)

    def to_json(self) -> JsonObject:
        """The step as it is written: the keys that say more than the defaults."""
        return _written(self.step)

    def __str__(self) -> str:
        return f"{self.place}: {show(self.to_json())}"

    def __repr__(self) -> str:
        return f"<PlacedStep {self}>"


@dataclass(frozen=True)
class Steps:
    """Every step of one tooling, in the order of the config."""

    calls: tuple[PlacedStep[CallStep], ...]
    lists: tuple[PlacedStep[ListStep], ...]
    contents: tuple[PlacedStep[ContentStep], ...]

    def __iter__(self) -> Iterator[PlacedStep[Step]]:
        yield from self.calls
        yield from self.lists
        yield from self.contents

    def gates(self) -> Iterator[EventPattern]:
        """What steps wait for; some may be equal."""
        for placed in self:
            if placed.gate is not None:
                yield placed.gate


def place_steps(params: MockParams) -> Steps:
    """The steps of a config, each with its place."""
    return Steps(
        calls=_placed("tool_calls", params.tool_calls),
        lists=_placed("resource_list_updates", params.resource_list_updates),
        contents=_placed("resource_content_updates", params.resource_content_updates),
    )


def _placed(key: str, steps: Sequence[S]) -> tuple[PlacedStep[S], ...]:
    return tuple(PlacedStep(f"{key}[{index}]", step) for index, step in enumerate(steps))


def _written(struct: msgspec.Struct) -> JsonObject:
    """A table of the config: a key at its default is taken for one that was left out."""
    fields = msgspec.structs.fields(struct)
    values: list[tuple[str, Any, Any]] = [
        (field.name, getattr(struct, field.name), field.default) for field in fields
    ]
    return {name: _inside(value) for name, value, default in values if value != default}


def _inside(value: Any) -> Json:
    if isinstance(value, list):
        return [_inside(each) for each in cast("list[Any]", value)]
    return _written(value) if isinstance(value, msgspec.Struct) else value
