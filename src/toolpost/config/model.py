"""What a configuration is once it is loaded: frozen values, every key checked, every path absolute.

Pure. The descriptions of keys stand in their `Meta`, for schema and reference alike; which marks `extra`
may hold, the head of walk.py says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolpost.model import JsonObject
from toolpost.secret import Secret
from toolpost.tooling.registry import Kind


class Tunables(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[tunables]`: limits and waits of a host."""

    inbox_bound: Annotated[
        int, Meta(ge=1, description="How many envelopes of subscriptions wait in one agent's inbox.")
    ] = 1024
    open_calls_bound: Annotated[
        int, Meta(ge=1, description="How many calls of one agent are queued or wait in its inbox.")
    ] = 1024
    recv_timeout_secs: Annotated[
        float,
        Meta(gt=0, description="How long `recv` waits; `inf` is for ever.", extra={"infinite": True}),
    ] = 60.0
    tooling_connect_backoff_start_ms: Annotated[
        int, Meta(ge=1, description="The wait after a first failed dial; every further wait doubles.")
    ] = 100
    tooling_connect_backoff_cap_secs: Annotated[
        float, Meta(ge=0, description="When the next wait would reach this, connecting has failed.")
    ] = 30.0
    tooling_connect_timeout_secs: Annotated[
        float, Meta(gt=0, description="How long one dial may take, with its handshake.")
    ] = 30.0
    tooling_request_timeout_secs: Annotated[
        float,
        Meta(ge=0, description="How long one request may take; 0 is no limit.", extra={"infinite": True}),
    ] = 300.0
    allow_unlocked_secrets: Annotated[
        bool, Meta(description="Go on where secrets cannot be locked in memory.")
    ] = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolingConfig:
    """One table `[tooling.<name>]`."""

    name: str
    kind: Kind
    params: Any = field(repr=False)
    """The other keys, as the kind's params type, or as a plain dict where it declares none, which may hold
    what the kind takes for secret: so no repr shows them."""


def _path_problem(text: str) -> str | None:
    return None if text and "\0" not in text else "expected the path of a file"


def _entry_problem(text: str) -> str | None:
    module, _, function = text.partition(":")
    names = [*module.split("."), *function.split(".")]
    return None if all(map(str.isidentifier, names)) else "expected package.module:function"


def _text_problem(text: str) -> str | None:
    return "a NUL character cannot be passed to a guest" if "\0" in text else None


def _variable_problem(name: str) -> str | None:
    return None if name and not {"=", "\0"} & set(name) else "not the name of an environment variable"


def _guest_path_problem(path: str) -> str | None:
    return None if path.startswith("/") and "\0" not in path else "expected a path that begins with /"


class Preopen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder that a guest may use."""

    path: Annotated[
        str,
        Meta(
            description="The folder; relative to the config's.",
            extra={"expand": True, "path": True, "check": _path_problem},
        ),
    ]
    writable: Annotated[bool, Meta(description="The guest may change what is in it.")] = False


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `sandbox` of a guest: its limits, and what it is granted besides its toolings."""

    memory_mb: Annotated[
        int, Meta(ge=1, le=4096, description="How much memory it may have, in units of 1,048,576 bytes.")
    ] = 256
    timeout_secs: Annotated[
        float,
        Meta(
            gt=0,
            description="How long it may go on from one host call to the next; `inf` is for ever.",
            extra={"infinite": True},
        ),
    ] = 60.0
    preopens: Annotated[
        dict[str, Preopen],
        Meta(
            description="The folders that it sees, by the path under which it sees them.",
            extra={"check_key": _guest_path_problem},
        ),
    ] = {}
    env: Annotated[
        dict[str, Secret],
        Meta(
            description="Its environment variables.",
            extra={"expand": True, "keep_case": True, "check": _text_problem, "check_key": _variable_problem},
        ),
    ] = {}
    stdout: Annotated[
        Literal["log", "inherit", "discard"],
        Meta(
            description="Where stdout and stderr go: to its log by lines, to those of toolpost, or nowhere."
        ),
    ] = "log"


class AgentTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[agents.<name>]`, as a file has them."""

    script: Annotated[
        str | None,
        Meta(
            description="A file with `run`, or a guest (.wasm); relative to the config's folder.",
            extra={"expand": True, "path": True, "check": _path_problem},
        ),
    ] = None
    entry: Annotated[
        str | None,
        Meta(
            description="An importable function, as package.module:function.",
            extra={"check": _entry_problem},
        ),
    ] = None
    params: Annotated[dict[str, Any], Meta(description="Handed to the agent as `host.params`.")] = (
        msgspec.field(default_factory=dict[str, Any])
    )
    toolings: Annotated[
        list[str] | None, Meta(description="The toolings that the agent may use; by default all.")
    ] = None
    sandbox: Annotated[
        Sandbox | None, Meta(description="The limits of a guest (.wasm), and what it is granted.")
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfig:
    """One table `[agents.<name>]`: a script or an entry, never both."""

    name: str
    script: Path | None = None
    """Absolute; it existed when the configuration was loaded."""
    entry: str | None = None
    params: JsonObject = field(default_factory=dict[str, Any])
    toolings: list[str] | None = None
    """None is every tooling."""
    sandbox: Sandbox | None = None
    """Of a guest: None is the limits by default, and no grant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A whole configuration. Its repr shows no secret."""

    tooling: dict[str, ToolingConfig] = field(default_factory=dict[str, ToolingConfig])
    agents: dict[str, AgentConfig] = field(default_factory=dict[str, AgentConfig])
    tunables: Tunables = field(default_factory=Tunables)
    folder: Path = field(default_factory=Path.cwd)
    """Where relative paths start: the file's folder, or the current one without a file."""
    label: str = "config"
    """How errors name where it came from."""
    warnings: list[str] = field(default_factory=list[str])
    """What is allowed and still worth telling, one line each."""
    import_path: list[Path] = field(default_factory=list[Path])
    """Where agents' modules are found: this folder, then those of the configs that a case extends."""

    @property
    def real_toolings(self) -> list[str]:
        """The toolings that cannot be simulated, sorted: with one of them time is real."""
        return sorted(name for name, each in self.tooling.items() if not each.kind.is_simulated)


# -- cases -----------------------------------------------------------------------------------------


class CaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[test]` of a test file."""

    extends: Annotated[
        str | None, Meta(description="Another config that this one stands on; its path, from this file.")
    ] = None
    timeout_secs: Annotated[
        float, Meta(gt=0, description="How long the case may take, in real time, until it is ended.")
    ] = 30.0
    strict: Annotated[bool, Meta(description="Steps that were never used fail the case.")] = False
    clock: Annotated[
        Literal["auto", "virtual", "real"],
        Meta(description="Whether time is simulated; auto does so where every tooling's kind can be."),
    ] = "auto"
    seed: Annotated[
        int,
        Meta(ge=0, description="Chooses among what happens at one simulated instant; 0 is first come first."),
    ] = 0


class AgentAssertions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[assertions.<agent>]` of a test file."""

    outcome: Annotated[
        Any,
        Meta(
            description='How the agent must end: "completed", "asserted" (it is stopped once the events are'
            ' settled), { exited = "text" } or { failed = "regex" }.'
        ),
    ] = None
    events: Annotated[
        list[Any], Meta(description="Patterns of its calls and envelopes, found in this order.")
    ] = []


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseConfig:
    """A test file: a configuration, and what is expected of its agents."""

    config: Config
    settings: CaseSettings
    assertions: JsonObject
    """The table `[assertions]` as it stands; it was checked."""
    files: list[Path]
    """The file itself, and those that it extends."""
