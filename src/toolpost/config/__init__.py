"""From TOML and environment to a `Config`. Knows the table of kinds, and nothing of what they do."""

from toolpost.config.load import Source, load_config
from toolpost.config.model import AgentConfig, Config, ToolingConfig, Tunables

__all__ = ["AgentConfig", "Config", "Source", "ToolingConfig", "Tunables", "load_config"]
