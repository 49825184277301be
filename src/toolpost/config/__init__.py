"""From TOML and environment to a `Config`. Knows the table of kinds, and nothing of what they do."""

from toolpost.config.load import CheckAssertions, Source, load_case_config, load_config
from toolpost.config.model import (
    AgentConfig,
    CaseConfig,
    CaseSettings,
    Config,
    Sandbox,
    ToolingConfig,
    Tunables,
)

__all__ = [
    "AgentConfig",
    "CaseConfig",
    "CaseSettings",
    "CheckAssertions",
    "Config",
    "Sandbox",
    "Source",
    "ToolingConfig",
    "Tunables",
    "load_case_config",
    "load_config",
]
