"""A test file: what it may say, and what every mistake in it is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolpost.errors import ConfigError
from toolpost.testing.case import Case, load_case
from toolpost.trace.events import OPS

UNTERMINATED = "missing ), unterminated subpattern at position 0"
AGENT = '[agents.ada]\nscript = "ada.py"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ada.py").write_text("def run(host): ...\n")
    return tmp_path


def load(folder: Path, text: str) -> Case:
    path = folder / "first.test.toml"
    path.write_text(AGENT + text)
    return load_case(path)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    label = f"{folder / 'first.test.toml'}: "
    assert all(each.startswith(label) for each in caught.value.problems)
    return [each.removeprefix(label) for each in caught.value.problems]


def test_a_case_is_a_config_with_what_is_expected_of_its_agents(folder: Path) -> None:
    case = load(
        folder, '[assertions.ada]\noutcome = "completed"\n[test]\ntimeout_secs = 2.5\nstrict = true\n'
    )

    (expected,) = case.expectations
    assert expected.agent == "ada"
    assert expected.outcome is not None
    assert expected.outcome.kind == "completed"
    assert (case.settings.timeout_secs, case.settings.strict) == (2.5, True)
    assert case.files == (folder / "first.test.toml", folder / "ada.py")


def test_without_a_table_test_the_defaults_hold(folder: Path) -> None:
    case = load(folder, "[assertions.ada]\n")

    assert (case.settings.timeout_secs, case.settings.strict) == (30, False)


@pytest.mark.parametrize("text", ["", "[assertions]\n"])
def test_a_case_that_expects_nothing_is_no_case(folder: Path, text: str) -> None:
    assert problems(folder, text) == ["assertions: missing: a test that expects nothing would always pass"]


def test_an_unknown_agent_is_told_with_the_known_ones(folder: Path) -> None:
    assert problems(folder, "[assertions.adda]\n") == ["assertions.adda: unknown agent; known agents: ada"]


def test_every_problem_of_a_file_is_told_at_once_with_its_place(folder: Path) -> None:
    text = """
[assertions.ada]
outcome = "done"
evnts = []
events = [
  { kind = "call", op = "call_tool" },
  { kind = "calls" },
  { "$while" = { kind = "call", op = "sing" } },
  { kind = "inbound", payload = { value = "(" } },
]
[test]
timeout_secs = 0
strikt = true
"""

    outcomes = '"completed", "asserted", { exited = "text" } or { failed = "regex" }'
    assert problems(folder, text) == [
        "test.timeout_secs: expected a number above 0, found the integer 0",
        "test.strikt: unknown key; known keys: strict, clock, extends, seed, timeout_secs",
        "assertions.ada.evnts: unknown key; known keys: events, outcome",
        f'assertions.ada.outcome: expected {outcomes}, found "done"',
        'assertions.ada.events[1].kind: expected "call" or "inbound", found \'calls\'',
        f"assertions.ada.events[2].\"$while\".op: unknown name 'sing'; known: {', '.join(sorted(OPS))}",
        f"assertions.ada.events[3].payload.value: bad regular expression '(': {UNTERMINATED}",
    ]


@pytest.mark.parametrize("events", ["", 'events = [{ "$while" = { kind = "call" } }]\n'])
def test_asserted_needs_something_to_settle(folder: Path, events: str) -> None:
    assert problems(folder, f'[assertions.ada]\noutcome = "asserted"\n{events}') == [
        'assertions.ada.outcome: "asserted" needs events: the agent is stopped once they are settled'
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("assertions.ada = 1\n", "assertions.ada: expected a table, found the integer 1"),
        (
            "[assertions.ada]\nevents = 1\n",
            "assertions.ada.events: expected a list of values, found the integer 1",
        ),
        ("[assertions.ada]\n[test]\nextends = 1\n", "test.extends: expected the path of a config, found 1"),
    ],
)
def test_what_has_the_wrong_shape_is_told(folder: Path, text: str, problem: str) -> None:
    path = folder / "first.test.toml"
    path.write_text(text + AGENT if text.startswith("assertions.") else AGENT + text)

    with pytest.raises(ConfigError) as caught:
        load_case(path)

    assert list(caught.value.problems) == [f"{path}: {problem}"]


def test_an_empty_file_is_no_case(folder: Path) -> None:
    path = folder / "first.test.toml"
    path.write_text("")

    with pytest.raises(ConfigError, match="is empty"):
        load_case(path)


def test_time_cannot_be_virtual_with_a_real_tooling(folder: Path) -> None:
    text = '[assertions.ada]\n[tooling.web]\nkind = "mcp"\ntransport = "stdio"\ncommand = "serve"\n[test]\n'

    assert problems(folder, f'{text}clock = "virtual"\n') == [
        "test.clock: \"virtual\" cannot be: these toolings are real: 'web'"
    ]
    assert not load(folder, text).is_simulated
    assert load(folder, "[assertions.ada]\n").is_simulated
