"""Whatever stands in a configuration: it loads, or it is refused with a `ConfigError`."""

from __future__ import annotations

import datetime
import io
import sys
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from toolpost.config import load_case_config, load_config
from toolpost.errors import ConfigError
from toolpost.mcp.kind import KIND
from toolpost.mcp.params import McpParams
from toolpost.testing.case import check_assertions
from toolpost.tooling.registry import Kind


def no_backend(*_: Any) -> Any:
    raise AssertionError("a config builds nothing")


KINDS = {"mcp": KIND, "free": Kind(name="free", factory=no_backend)}

text = st.text(st.characters(codec=None, exclude_categories=()))
words = st.sampled_from(
    [
        "stdio",
        "http",
        "mcp",
        "free",
        "https://example.org",
        "${VAR}",
        "${VAR",
        "${1}",
        "$${",
        "a:b",
        "a.wasm",
        "",
    ]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), text, words, st.just(datetime.date(2000, 1, 1))
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)


def tables(keys: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys) | text, values, max_size=5)


tooling = st.dictionaries(text, tables(["kind", *McpParams.__struct_fields__]) | values, max_size=3)
agents = st.dictionaries(
    text, tables(["script", "entry", "params", "toolings", "sandbox"]) | values, max_size=2
)
sources = st.fixed_dictionaries(
    {},
    optional={
        "tooling": tooling | values,
        "agents": agents | values,
        "tunables": tables(["inbox_bound", "recv_timeout_secs", "allow_unlocked_secrets"]) | values,
        "test": tables(["extends", "timeout_secs", "strict"]) | values,
        "assertions": st.dictionaries(text, tables(["outcome", "events"]) | values, max_size=2) | values,
        "other": values,
    },
)
names = st.lists(
    st.sampled_from(["TOOLING", "AGENTS", "TUNABLES", "INBOX_BOUND", "X", "ENV", "URL", "KIND", "PARAMS", ""])
    | text,
    max_size=5,
).map(lambda parts: "TOOLPOST__" + "__".join(parts))


def problems(source: Any, environ: dict[str, str], *, is_case: bool = False) -> list[str]:
    """What a `ConfigError` tells; nothing if it loads. Any other exception goes on."""
    try:
        if is_case:
            load_case_config(source, check_assertions=check_assertions, kinds=KINDS, environ=environ)
        else:
            load_config(source, kinds=KINDS, environ=environ)
    except ConfigError as error:
        return list(error.problems) or ["an error that tells nothing"]
    return []


@given(sources, st.dictionaries(names | st.just("VAR"), text, max_size=3), st.booleans())
def test_a_mapping_loads_or_is_refused(
    source: dict[str, Any], environ: dict[str, str], is_case: bool
) -> None:
    found = problems(source, environ, is_case=is_case)

    assert all(": " in each for each in found)
    assert problems(source, environ, is_case=is_case) == found


@given(st.binary() | text.map(lambda each: each.encode("utf-8", "surrogatepass")))
def test_a_file_loads_or_is_refused(content: bytes) -> None:
    with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content))):
        found = problems("-", {})

    assert all(each.startswith("<stdin>") for each in found)


@given(st.text(st.characters(min_codepoint=0xE000, max_codepoint=0xF8FF), min_size=1))
def test_no_problem_shows_what_is_secret_by_type(value: str) -> None:
    keys: dict[str, Any] = {
        "auth_token": f"{value}\0",
        "headers": {"A": f"{value}\n", "B": [value]},
        "env": value,
        "url": f"https://me:{value}@example.org",
    }
    source = {"tooling": {"x": {"kind": "mcp", "transport": "http", **keys}}}
    environ = {"TOOLPOST__TUNABLES__INBOX_BOUND": value, f"TOOLPOST__{value}": value}

    found = problems(source, environ=environ)

    assert len(found) == 8
    assert sum(value in each for each in found) == 1, "the variable's own name, which is no secret"
