"""Asks for the weather, once, and says what to take along."""

from __future__ import annotations

from toolpost import SyncHost


def run(host: SyncHost) -> str:
    weather = host.tooling.get("weather")
    forecast = weather.call_tool_blocking("forecast", {"city": "York"})
    return "take an umbrella" if "rain" in forecast.value else "take a hat"
