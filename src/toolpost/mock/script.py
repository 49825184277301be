"""A mock's script of tool calls: which step a call gets, and whether it is the right one.

Pure: no I/O, no event loop. A call takes the next step whatever comes of it, so the order of calls is what
the script says or the mock tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from toolpost.errors import ScriptError
from toolpost.expect.explain import explain
from toolpost.expect.pattern import Pattern, parse
from toolpost.mock.params import CallStep
from toolpost.mock.steps import PlacedStep
from toolpost.model import JsonObject, ToolResult
from toolpost.tooling.port import ToolCall


class Script:
    """The ordered steps of one tooling, shared by all agents."""

    def __init__(self, tooling: str, steps: Sequence[PlacedStep[CallStep]]) -> None:
        self._tooling = tooling
        self._steps = steps
        self._patterns: list[Pattern | None] = [
            None if each.step.arguments is None else parse(each.step.arguments) for each in steps
        ]
        self.taken = 0
        """How many steps have been taken."""

    @property
    def remaining(self) -> list[PlacedStep[CallStep]]:
        """The steps that no call has taken."""
        return list(self._steps[self.taken :])

    def take(self, call: ToolCall) -> PlacedStep[CallStep]:
        """The step of the next call.

        Raises:
            ScriptError: There is none, or it is another one. A step that does not fit is taken all the same.
        """
        what = f"tooling {self._tooling!r}: call_tool {call.name!r}"
        total = len(self._steps)
        if not total:
            raise ScriptError(f"{what}: this mock has no script (tool_calls)")
        if self.taken >= total:
            raise ScriptError(f"{what}: the script has ended; all {total} steps of tool_calls are taken")
        placed, pattern = self._steps[self.taken], self._patterns[self.taken]
        self.taken += 1
        place, wanted = f"step {self.taken} of {total}", placed.step.name
        if wanted != call.name:
            raise ScriptError(f"{what}: {place} expects {wanted!r}, but {call.name!r} was called")
        if pattern is not None and (miss := explain(pattern, call.arguments, ("arguments",))) is not None:
            raise ScriptError(f"{what}: {place} expects other arguments: {miss}")
        return placed


def answer(step: CallStep, call: ToolCall) -> ToolResult:
    """The result that a step brings."""
    content = step.content
    if content is None:
        content = [] if step.result is None else [{"type": "text", "text": step.result}]
    value = step.result if step.result is not None else _text_of(content)
    return ToolResult(
        name=call.name,
        arguments=call.text,
        value=value,
        content=content,
        structured_content=step.structured_content,
        is_error=step.is_error,
    )


def _text_of(content: list[JsonObject]) -> str:
    """The text blocks, joined with newlines, as every kind gives them."""
    return "\n".join(cast("str", block.get("text", "")) for block in content if block.get("type") == "text")
