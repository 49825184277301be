"""What a trace holds: one record for each thing that happened in a run, as plain JSON.

Records say who did what; they hold no clock time, so that the same run gives the same trace.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from toolpost.model import Json, JsonObject

Reason: TypeAlias = Literal["ended", "failed", "cancelled"]
SourceKind: TypeAlias = Literal["call_tool", "subscribe_resource", "subscribe_resource_list"]


OPS = (
    "list_tools",
    "call_tool",
    "call_tool_blocking",
    "cancel",
    "list_resources",
    "read_resource",
    "subscribe_resource_list",
    "unsubscribe_resource_list",
    "subscribe_resource",
    "unsubscribe_resource",
    "request",
)
"""Every operation of a handle that is recorded."""

EVENTS = ("tool-result", "error", "resource-list-updated", "resource-updated", "shutdown")
"""Every kind of event that an inbox can hold."""


class Call(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="call", gc=False):
    """An agent made a call on a handle. Written before the call has any effect."""

    kind: ClassVar[Literal["call"]] = "call"
    agent: str
    op: str
    """The operation's name, such as `call_tool`."""
    detail: JsonObject
    """`tooling`, and of `name`, `arguments` (parsed), `uri`, `uuid` what applies."""


class Opened(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="opened", gc=False):
    """A source was opened: a queued call or a subscription."""

    kind: ClassVar[Literal["opened"]] = "opened"
    agent: str
    id: str
    source: SourceKind


class Closed(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="closed", gc=False):
    """A source ended: with its last envelope in the inbox, or cancelled."""

    kind: ClassVar[Literal["closed"]] = "closed"
    agent: str
    id: str
    reason: Reason


class Inbound(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="inbound", gc=False):
    """An agent took an envelope from its inbox."""

    kind: ClassVar[Literal["inbound"]] = "inbound"
    agent: str
    id: str
    event: str
    """The event's kind, such as `tool-result`."""
    payload: Json


class State(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="state", gc=False):
    """A tooling's connection changed its state."""

    kind: ClassVar[Literal["state"]] = "state"
    tooling: str
    state: str


class AgentOutcome(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="outcome", gc=False):
    """An agent came to its end."""

    kind: ClassVar[Literal["outcome"]] = "outcome"
    agent: str
    outcome: Json
    """`"completed"`, `{"exited": text}` or `{"failed": text}`."""


TraceEvent: TypeAlias = Call | Opened | Closed | Inbound | State | AgentOutcome
