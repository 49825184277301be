"""Words of the command line as arguments, and what is said where they do not fit the tool's schema."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.servers.own.catalog import SCHEMAS
from toolpost.cli import fitting, input_schema
from toolpost.cli.arguments import build, read_words
from toolpost.cli.fitting import UnusableSchema, problems
from toolpost.cli.input_schema import InputSchema
from toolpost.errors import UsageError


def built(schema: Any, *words: str) -> Any:
    given = read_words(words, config_is_stdin=False)
    assert not isinstance(given, str)
    return build(given, InputSchema(schema))


BOOK = SCHEMAS["book"]
NESTED = {"properties": {"a.b": {"type": "string"}, "a": {"properties": {"c": {"type": "string"}}}}}


@pytest.mark.parametrize(
    ("schema", "words", "arguments"),
    [
        (BOOK, ["title=7", "guests=7", "quiet=true"], {"title": "7", "guests": 7, "quiet": True}),
        (BOOK, ["size=small"], {"size": "small"}),
        (BOOK, ["tags=food"], {"tags": ["food"]}),
        (BOOK, ["tags=1", "tags=two"], {"tags": ["1", "two"]}),
        (BOOK, ['tags=["a", "b"]'], {"tags": ["a", "b"]}),
        (BOOK, ["tags:=[]"], {"tags": []}),
        (BOOK, ["where.city=12", "where.floor=12"], {"where": {"city": "12", "floor": 12}}),
        (BOOK, ['where={"city": "x"}', "where.floor=1"], {"where": {"city": "x", "floor": 1}}),
        (BOOK, ["title:=7"], {"title": 7}),  # JSON is JSON: that it does not fit is told later
        (BOOK, ["title=a=b"], {"title": "a=b"}),
        (BOOK, ["title="], {"title": ""}),
        (SCHEMAS["refer"], ["at.x=1.5", "at.y=2"], {"at": {"x": 1.5, "y": 2}}),
        (SCHEMAS["either"], ["by=name", "name=7"], {"by": "name", "name": "7"}),
        (SCHEMAS["either"], ["by=id", "id=7"], {"by": "id", "id": 7}),
        (SCHEMAS["bare"], ["a=7", "b=x", "c=1", "c=2"], {"a": 7, "b": "x", "c": [1, 2]}),
        (NESTED, ["a.b=1", "a.c=1"], {"a.b": "1", "a": {"c": "1"}}),
        (None, ["a.b.c=1", ".x=1", "y.=1"], {"a": {"b": {"c": 1}}, ".x": 1, "y.": 1}),
        ({"additionalProperties": {"type": "string"}}, ["any=1"], {"any": "1"}),
        ({"properties": {"a": {"type": ["array", "string"]}}}, ["a=x"], {"a": "x"}),
        ({"properties": {"a": {"const": "1"}}}, ["a=1"], {"a": "1"}),
        (True, ["a=1"], {"a": 1}),
        ({"properties": 7, "anyOf": "no", "type": {}}, ["a=1"], {"a": 1}),
    ],
)
def test_words_have_the_types_of_the_schema(schema: Any, words: list[str], arguments: Any) -> None:
    assert built(schema, *words) == arguments


def test_a_schema_that_refers_to_itself_is_read_all_the_same() -> None:
    schema = {"$ref": "#", "anyOf": [{"$ref": "#"}, {"properties": {"a": {"$ref": "#/properties/a"}}}]}

    assert built(schema, "a=1") == {"a": 1}


def test_a_file_gives_a_text_or_json(tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    file.write_text('{"city": "Turin"}')

    assert built(BOOK, f"title=@{file}", f"where:=@{file}") == {
        "title": '{"city": "Turin"}',
        "where": {"city": "Turin"},
    }


def test_standard_input_gives_one_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO("häuser".encode())))
    assert built(BOOK, "title=@-") == {"title": "häuser"}

    with pytest.raises(UsageError, match="standard input holds one argument already"):
        read_words(["a=@-", "b=@-"], config_is_stdin=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["guests=1", "guests=2"], "argument 'guests' is given 2 times, and takes one: integer"),
        (
            ["where=x", "where.city=y"],
            "argument 'where.city' leads into 'where', which another argument makes",
        ),
        (["where.city=y", "where:={}"], None),
        (['where:={"city": "x"}', "where.city=y"], "argument 'where.city' is given in two ways"),
    ],
)
def test_words_that_contradict_each_other_are_told(words: list[str], told: str | None) -> None:
    if told is None:
        assert built(BOOK, *words) == {"where": {"city": "y"}}
        return
    with pytest.raises(UsageError) as error:
        built(BOOK, *words)
    assert told in str(error.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"\xff")

    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_words([f"a=@{tmp_path / 'it'}"], config_is_stdin=False)


# -- fitting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("add", {"a": 1, "b": 2}, []),
        ("add", {}, ["a is missing (number: First number)", "b is missing (number: Second number)"]),
        ("add", {"a": "x", "b": 1}, ['a: expected number, not "x" (First number)']),
        (
            "book",
            {"title": "x", "guest": 1},
            ["guest is unknown; the tool knows guests, quiet, size, tags, title, where"],
        ),
        (
            "book",
            {"title": "x", "size": "huge"},
            ['size: expected one of "small", "large", not "huge"'],
        ),
        ("book", {"title": "x", "guests": 0}, ["guests: 0 is less than the minimum of 1 (integer)"]),
        ("book", {"title": "x", "tags": ["a", 1]}, ["tags[1]: expected string, not 1"]),
        ("book", {"title": "x", "where": {"floor": "x"}}, ['where.floor: expected integer, not "x"']),
        ("refer", {"at": {"x": 1, "y": "z"}}, ['at.y: expected integer, not "z"']),
        ("refer", {}, ["at is missing (object)"]),
        ("either", {"by": "id"}, ["id is missing (integer)"]),
        ("either", {"by": "name", "name": 7}, ["name: expected string, not 7"]),
        ("bare", {"anything": [1]}, []),
        ("pictures", {"anything": 1}, []),
    ],
)
def test_what_does_not_fit_is_told_in_the_words_of_the_schema(
    tool: str, arguments: Any, told: list[str]
) -> None:
    assert problems(arguments, SCHEMAS[tool]) == told


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 7, "it: expected null or string, not 7"),
        ({"type": ["string", "null"]}, 7, "it: expected string or null, not 7"),
        ({"const": "a"}, 7, 'it: expected "a", not 7'),
        ({"enum": list(range(12)), "title": "A"}, 12, "not 12"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 7, "it: "),
        ({"oneOf": [{"minimum": 9}, False]}, 7, "it: 7 is less than the minimum of 9"),
        ({"pattern": "^a"}, "b", "it: 'b' does not match '^a'"),
        ({"type": "string", "description": "d" * 500}, 7, f"({'d' * 119}…)"),
        ({"type": "string"}, ["x" * 500], f'not ["{"x" * 57}…'),
        (False, 7, "False schema does not allow 7"),
    ],
)
def test_alternatives_and_bounds_are_told(schema: Any, value: Any, told: str) -> None:
    (line,) = problems({"it": value}, {"properties": {"it": schema}})

    assert told in line


def test_a_tool_without_arguments_says_so() -> None:
    schema: Any = {"type": "object", "additionalProperties": False}

    assert problems({"a": 1}, schema) == ["a is unknown; it takes none"]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (SCHEMAS["strange"], "it refers to 'https://example.invalid/a.json', which is not in it"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "nowhere', which is not in it"),
        ({"type": "thing"}, "'thing' is not valid under any of the given schemas"),
        ({"properties": {"a": {"pattern": "("}}}, "("),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "nested too deeply, or refers to itself"),
    ],
)
def test_a_schema_that_cannot_be_used_says_why_and_fetches_nothing(
    schema: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object, **__: object) -> None:
        pytest.fail("something was fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetch)

    with pytest.raises(UnusableSchema) as error:
        problems({"a": "x"}, schema)
    assert why in str(error.value)


def test_long_lists_of_problems_are_cut() -> None:
    schema: Any = {"required": [f"key-{number}" for number in range(50)]}

    assert len(problems({}, schema)) == fitting._BOUND  # pyright: ignore[reportPrivateUsage]: the bound itself


def test_values_are_short_to_read() -> None:
    assert input_schema.short_list(list(range(12))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … (12 in all)"
    assert json.loads(input_schema.short({"a": "ä"})) == {"a": "ä"}
