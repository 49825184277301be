"""Patterns of values: what they match, that they print as they are written, and the laws they keep."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolpost.expect.explain import explain
from toolpost.expect.pattern import PatternError, literal, parse, show

KEYS = st.text(max_size=5).filter(lambda key: not key.startswith("$"))
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
"""JSON values without `$` keys."""


@given(VALUES)
def test_a_value_matches_the_pattern_made_of_itself(value: Any) -> None:
    assert parse(literal(value)).matches(value)


@given(VALUES)
def test_what_is_parsed_prints_as_it_was_written(value: Any) -> None:
    source = literal(value)

    pattern = parse(source)

    assert pattern.to_json() == source
    assert parse(pattern.to_json()) == pattern


@given(VALUES, VALUES, VALUES)
def test_elements_around_a_matched_array_keep_it_matched(value: Any, before: Any, after: Any) -> None:
    array: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]

    assert parse(literal(array)).matches([before, *array, after])


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.data())
def test_a_pattern_with_a_key_removed_matches_what_it_matched(
    value: dict[str, Any], data: st.DataObject
) -> None:
    removed = data.draw(st.sampled_from(sorted(value)))
    fewer = {key: each for key, each in value.items() if key != removed}

    assert parse([literal(fewer)]).matches([removed, value])


ITEMS = st.sampled_from(["a", "b", "ab"])
STEPS = st.lists(st.tuples(st.sampled_from(["next", "while", "until"]), ITEMS), max_size=4)


@given(STEPS, st.lists(ITEMS, max_size=6), ITEMS, ITEMS)
def test_elements_around_an_array_keep_it_matched_by_runs_too(
    steps: list[tuple[str, str]], value: list[str], before: str, after: str
) -> None:
    pattern = parse([item if takes == "next" else {f"${takes}": item} for takes, item in steps])
    assume(pattern.matches(value))

    assert pattern.matches([*value, after])
    assert pattern.matches([before, *value])


@given(VALUES, VALUES)
def test_what_does_not_match_is_explained_and_what_matches_is_not(wanted: Any, value: Any) -> None:
    pattern = parse(literal(wanted))

    assert (explain(pattern, value) is None) == pattern.matches(value)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("cho", "echo"),  # found anywhere
        ("^e.*o$", "echo"),
        (1, 1),
        (1, 1.0),
        (None, None),
        (True, True),
        ({"a": 1}, {"a": 1, "b": 2}),  # others are ignored
        ({}, {"a": 1}),
        ([], [1, 2]),
        ([1, 3], [1, 2, 3]),  # a subsequence
        ([{"$while": 1}, 2], [1, 1, 2]),
        ([{"$while": 1}, 2], [2]),  # a run of none
        ([{"$until": 2}], [1, 1, 2]),
        ([{"$while": {"a": "x"}}, {"$until": {"a": "y"}}], [{"a": "x"}, {"a": "z"}, {"a": "y"}]),
    ],
)
def test_matches(pattern: Any, value: Any) -> None:
    assert parse(pattern).matches(value)
    assert explain(parse(pattern), value) is None


@pytest.mark.parametrize(
    ("pattern", "value", "why"),
    [
        ("x", "echo", 'wanted a text with "x", found "echo"'),
        ("1", 1, 'wanted a text with "1", found 1'),
        (1, True, "wanted 1, found true"),
        (True, 1, "wanted true, found 1"),
        (0, None, "wanted 0, found null"),
        ({"a": 1}, {"b": 1}, "a: wanted 1, found no such key (keys: b)"),
        ({"a": {"b": [1]}}, {"a": {"b": 5}}, "a.b: wanted an array, found 5"),
        ({"a": 1}, [1], "wanted an object, found [1]"),
        ([3, 1], [1, 2, 3], "[1]: wanted an item 1, found no more items (there are 3)"),
        (
            [{"name": "x", "n": 1}],
            [{"name": "y"}, {"name": "x", "n": 2}],
            '[0]: wanted an item { name = "x", n = 1 }, found none such; nearest [1].n: wanted 1, found 2',
        ),
        ([{"$while": 1}, 1], [1, 1], "[1]: wanted an item 1, found no more items (there are 2)"),
    ],
)
def test_a_difference_names_the_place_the_wanted_and_the_found(pattern: Any, value: Any, why: str) -> None:
    assert not parse(pattern).matches(value)
    assert str(explain(parse(pattern), value)) == why


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"a": {"$x": 1}}, "a.$x: unknown key '$x'; known: $while, $until"),
        ({"$while": 1}, "$while: unknown key '$while'; known: $while, $until ($while and $until are items of an array)"),  # noqa: E501  one case, one line
        ([{"$while": 1, "b": 2}], "[0]: $while stands alone; found beside it: 'b'"),
        ({"a": ["("]}, "a[0]: bad regular expression '(': missing ), unterminated subpattern at position 0"),
        ([{"$until": {"$while": 1}}], "[0].$until.$while: unknown key '$while'; known: $while, $until ($while and $until are items of an array)"),  # noqa: E501  one case, one line
        (float("nan"), "nan is no JSON, so nothing can match it"),
        ({"a": object}, "a: expected a JSON value, found type"),
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_with_its_place(source: Any, problem: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(source)

    assert str(caught.value) == problem


def test_patterns_print_as_toml_writes_them() -> None:
    assert show({"kind": "call", "a b": [1, True, None]}) == '{ kind = "call", "a b" = [1, true, null] }'
    assert show({}) == "{}"


def test_a_run_of_any_length_is_one_pass() -> None:
    # Each element is looked at once or twice: a quadratic walk of this would not end in the time limit.
    value = ["a"] * 20_000

    assert parse([{"$while": "a"}]).matches(value)
    assert not parse(["b"] * 3).matches(value)


def test_patterns_are_equal_if_they_match_the_same() -> None:
    assert parse({"n": 1}) == parse({"n": 1.0})
    assert parse({"n": 1}) != parse({"n": True})
    assert parse([0, None]) != parse([False, None])
    assert len({parse(1), parse(1.0), parse(True), parse(None)}) == 3
