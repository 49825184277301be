"""A mock's script, written in Python: each call adds what a table of the config would say.

    mock = MockBuilder("mcp")
    mock.resource("mem://notes", "v1")
    mock.tool("echo").returns("hi").after(call("read_resource"))

It knows the shape of the tables, and leaves what they mean to kind `mock`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from toolpost.errors import UsageError
from toolpost.expect.pattern import parse
from toolpost.model import Json, JsonObject
from toolpost.testing.patterns import pattern_of

if TYPE_CHECKING:
    from typing import Self

Resource: TypeAlias = str | Mapping[str, Json]
"""The URI of a resource, or its table: `uri`, `name`, `description`, `mime_type`."""


class StepBuilder:
    """One step of a script. It fires at once, unless `after` says what it waits for."""

    def __init__(
        self, place: str, table: JsonObject, *, wanted: str, brings: JsonObject | None = None
    ) -> None:
        self._place = place
        self._table = table
        self._wanted = wanted
        """What would say what it brings, for the error where nothing does."""
        self._brings: JsonObject | None = brings

    def after(self, gate: JsonObject) -> Self:
        """Wait until this has been seen in the run, of any agent and at any time: `call(…)`, `inbound(…)`.

        Raises:
            UsageError: It is no pattern, or the step waits for something already.
        """
        if "after" in self._table:
            raise UsageError(f"{self._place}: it waits for something already; a step has one gate")
        self._table["after"] = pattern_of(gate).to_json()
        return self

    def fails(self, error: str) -> Self:
        """Bring an error with this text."""
        return self._bring({"error": error})

    def hangs(self) -> Self:
        """Bring nothing, ever."""
        return self._bring({"pending": True})

    def to_table(self) -> JsonObject:
        """The step as a config writes it.

        Raises:
            UsageError: Nothing says what it brings.
        """
        if self._brings is None:
            raise UsageError(f"{self._place}: it brings nothing; add {self._wanted}, .fails(…) or .hangs()")
        return self._table | self._brings

    def _bring(self, keys: JsonObject) -> Self:
        if self._brings is not None:
            raise UsageError(f"{self._place}: it brings something already; a step brings one thing")
        self._brings = keys
        return self


class CallStepBuilder(StepBuilder):
    """What one tool call gets."""

    def returns(
        self,
        text: str | None = None,
        *,
        content: Iterable[JsonObject] | None = None,
        structured_content: Json = None,
        is_error: bool = False,
    ) -> Self:
        """Answer with a result; without arguments it is an empty one.

        Args:
            text: What it says.
            content: Its blocks, as MCP JSON, where it is more than a text.
            structured_content: Its structured content.
            is_error: Whether the tool reports a failure of its own, which is still an answer.
        """
        keys: JsonObject = {
            "result": text,
            "content": None if content is None else list(content),
            "structured_content": structured_content,
        }
        given = {key: each for key, each in keys.items() if each is not None} or {"content": []}
        return self._bring(given | ({"is_error": True} if is_error else {}))


class MockBuilder:
    """The script of one tooling of kind `mock`."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The tooling's name."""
        self.delay_ms: float | None = None
        """How long every step waits before it fires; None is the default of the kind."""
        self._tools: dict[str, JsonObject] = {}
        self._resources: dict[str, JsonObject] = {}
        self._contents: JsonObject = {}
        self._calls: list[StepBuilder] = []
        self._lists: list[StepBuilder] = []
        self._updates: list[StepBuilder] = []

    # -- tools -------------------------------------------------------------------------------------

    def offers(
        self, tool: str, *, description: str | None = None, input_schema: JsonObject | None = None
    ) -> Self:
        """List a tool, and script no call of it.

        Raises:
            UsageError: It is listed already, and described otherwise.
        """
        listed = self._tools.setdefault(tool, {"name": tool})
        for key, value in (("description", description), ("input_schema", input_schema)):
            if value is not None and listed.setdefault(key, value) != value:
                raise UsageError(f"mock {self.name!r}: tool {tool!r} has another {key}: {listed[key]!r}")
        return self

    def tool(
        self,
        name: str,
        *,
        arguments: JsonObject | None = None,
        description: str | None = None,
        input_schema: JsonObject | None = None,
    ) -> CallStepBuilder:
        """Script the next tool call: it must be this tool. The tool is listed too.

        Args:
            name: The tool.
            arguments: A pattern that the call's arguments must match; strings are regular expressions.
            description: As `list_tools` gives it.
            input_schema: As `list_tools` gives it.

        Raises:
            UsageError: `arguments` is no pattern, or the tool is described otherwise already.
        """
        table: JsonObject = {"name": name}
        if arguments is not None:
            table["arguments"] = parse(arguments, ("arguments",)).to_json()
        self.offers(name, description=description, input_schema=input_schema)
        step = CallStepBuilder(self._place("tool_calls", self._calls, name), table, wanted=".returns(…)")
        self._calls.append(step)
        return step

    # -- resources ---------------------------------------------------------------------------------

    def resource(
        self,
        uri: str,
        content: str | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
    ) -> Self:
        """List a resource from the start.

        Args:
            uri: What it is read by.
            content: What reading gives at first; with None it cannot be read until an update brings some.
            name: Its name; None is the URI.
            description: What it is.
            mime_type: Its media type.
        """
        keys: JsonObject = {
            "uri": uri,
            "name": uri if name is None else name,
            "description": description,
            "mime_type": mime_type,
        }
        self._resources[uri] = {key: each for key, each in keys.items() if each is not None}
        if content is not None:
            self._contents[uri] = content
        return self

    def updates(self, uri: str, content: str | bytes | None = None) -> StepBuilder:
        """Script the next change of a resource, for each who subscribes to it.

        Args:
            uri: Which resource.
            content: What it holds then; None where the step fails or hangs.
        """
        brings: JsonObject | None = None if content is None else {"content": content}
        if isinstance(content, bytes):
            brings = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        place = self._place("resource_content_updates", self._updates, uri)
        step = StepBuilder(place, {"uri": uri}, wanted="a content", brings=brings)
        self._updates.append(step)
        return step

    def updates_list(self, resources: Iterable[Resource] | None = None) -> StepBuilder:
        """Script the next change of the list of resources, for each who subscribes to it.

        Args:
            resources: The whole new list; a URI stands for that resource as `resource` has described it.
                None where the step fails or hangs.
        """
        brings: JsonObject | None = None
        if resources is not None:
            brings = {"resources": [self._listed(each) for each in resources]}
        place = self._place("resource_list_updates", self._lists)
        step = StepBuilder(place, {}, wanted="a list", brings=brings)
        self._lists.append(step)
        return step

    def to_table(self) -> JsonObject:
        """The table `[tooling.<name>]` that a config would have.

        Raises:
            UsageError: Nothing says what a step brings.
        """
        keys: JsonObject = {
            "tools": [dict(each) for each in self._tools.values()],
            "tool_calls": [each.to_table() for each in self._calls],
            "initial_resource_list": [dict(each) for each in self._resources.values()],
            "initial_resource_contents": dict(self._contents),
            "resource_list_updates": [each.to_table() for each in self._lists],
            "resource_content_updates": [each.to_table() for each in self._updates],
        }
        table: JsonObject = {"kind": "mock", **{key: each for key, each in keys.items() if each}}
        return table if self.delay_ms is None else table | {"delay_ms": self.delay_ms}

    def __repr__(self) -> str:
        return f"<MockBuilder {self.name!r}>"

    def _place(self, key: str, steps: list[StepBuilder], what: str = "") -> str:
        return f"mock {self.name!r}: {key}[{len(steps)}]" + (f" ({what!r})" if what else "")

    def _listed(self, resource: Resource) -> JsonObject:
        if isinstance(resource, str):
            return dict(self._resources.get(resource, {"uri": resource, "name": resource}))
        return dict(resource)
