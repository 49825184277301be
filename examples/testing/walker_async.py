"""The same agent as `walker.py`, with `await`."""

from __future__ import annotations

from toolpost import Host


async def run(host: Host) -> str:
    weather = host.tooling.get("weather")
    forecast = await weather.call_tool_blocking("forecast", {"city": "York"})
    return "take an umbrella" if "rain" in forecast.value else "take a hat"
