"""The judge of the conformance runs: what passes, and what does not."""

from __future__ import annotations

from tests.conformance import run

REQUIRED = frozenset({"Lists", "Calls"})


def check(name: str, status: str = "SUCCESS") -> dict[str, str]:
    return {"name": name, "status": status, "description": f"the client {name.lower()}"}


def test_a_scenario_with_all_its_checks_is_passed() -> None:
    assert list(run.judge([check("Lists"), check("Calls"), check("Idle", "SKIPPED")], REQUIRED)) == []


def test_a_client_that_does_nothing_passes_none() -> None:
    assert all(each.required for each in run.scenarios())
    assert list(run.judge([], REQUIRED)) == ["not seen to succeed: Calls", "not seen to succeed: Lists"]


def test_a_warning_is_no_pass() -> None:
    shown = [check("Lists"), check("Calls"), check("Waits", "WARNING")]
    assert list(run.judge(shown, REQUIRED)) == ["WARNING Waits: the client waits"]


def test_the_scenarios_are_those_that_toolpost_is_to_pass() -> None:
    wires = [each.wire for each in run.scenarios() if not each.name.startswith("auth/")]
    assert [wires.count(wire) for wire in ("2025-06-18", "2025-11-25", "2026-07-28")] == [2, 5, 8]
