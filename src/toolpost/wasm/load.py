"""A script that is a component, as an agent. Needs the extra `wasm` only once there is one."""

from __future__ import annotations

from pathlib import Path

from toolpost.config import AgentConfig, Sandbox
from toolpost.errors import ConfigError
from toolpost.host.agents import Agent

EXTRA = "guests need wasmtime: pip install 'toolpost[wasm]'"
_MAGIC = b"\0asm"
_COMPONENT = _MAGIC + b"\x0d\0\x01\0"


def load_guest(config: AgentConfig) -> Agent:
    """The guest of a config's table; its component is compiled, if it never was.

    Raises:
        ConfigError: The file holds no component that this host can run, or the extra is not installed.
    """
    assert config.script is not None, "its suffix brought it here"
    if problem := header_problem(config.script):
        raise _error(config, f"{config.script} {problem}")
    try:
        from wasmtime import WasmtimeError

        from toolpost.wasm.engine import compiled, new_engine
        from toolpost.wasm.guest import Guest
        from toolpost.wasm.interface import misfits
    except ModuleNotFoundError as error:
        if error.name != "wasmtime":
            raise
        raise _error(config, EXTRA) from None
    try:
        found = compiled(config.script)
        engine = new_engine()
        problems = list(misfits(found.load(engine), engine, is_wrapped=found.is_wrapped))
    except (WasmtimeError, OSError) as error:
        raise _error(config, f"{config.script} cannot be loaded: {error}") from None
    if problems:
        raise ConfigError(
            [f"{_place(config)}: {config.script} is no guest for this host: {each}" for each in problems]
        )
    guest = Guest(config.name, found, config.sandbox or Sandbox())
    return Agent(config.name, guest, limit=guest.limit)


def header_problem(path: Path) -> str | None:
    """Why a file is no component, by its first bytes."""
    try:
        with path.open("rb") as file:
            header = file.read(len(_COMPONENT))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if header == _COMPONENT:
        return None
    if header[:4] == _MAGIC:
        return "is a core module: make a component of it, as `wasm-tools component new` does"
    return "is no WebAssembly component"


def _place(config: AgentConfig) -> str:
    return f"agents.{config.name}.script"


def _error(config: AgentConfig, problem: str) -> ConfigError:
    return ConfigError([f"{_place(config)}: {problem}"])
