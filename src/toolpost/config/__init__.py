"""From TOML and environment to a `Config`. Knows the table of kinds, and nothing of what they do."""

from toolpost.config.load import CheckAssertions, Source, load_case_config, load_config
from toolpost.config.model import AgentConfig, CaseConfig, CaseSettings, Config, ToolingConfig, Tunables

__all__ = [
    "AgentConfig",
    "CaseConfig",
    "CaseSettings",
    "CheckAssertions",
    "Config",
    "Source",
    "ToolingConfig",
    "Tunables",
    "load_case_config",
    "load_config",
]
