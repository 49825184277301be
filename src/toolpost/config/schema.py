"""The JSON Schema of a configuration, for editors: made of the same Structs that the walk checks by.

Draft 7, since that is what editors' TOML plug-ins read. It accepts what the walk accepts, short of what only
a walk can see: names that must exist, keys of the other transport.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from toolpost.config.model import AgentAssertions, AgentTable, CaseSettings, Tunables
from toolpost.model import JsonObject
from toolpost.secret import Secret
from toolpost.tooling.registry import Kind, find_kind, kind_names

DRAFT = "http://json-schema.org/draft-07/schema#"
_REF = "#/definitions/{name}"


def config_schema(kinds: Iterable[Kind] | None = None, *, is_case: bool = False) -> JsonObject:
    """The schema of `toolpost.toml`.

    Args:
        kinds: The kinds that `kind` may name; None is every built-in, registered and installed one.
        is_case: That of a test file: it has tables of its own, and what it extends may bring the keys that a
            table needs.
    """
    known = sorted(_every_kind() if kinds is None else kinds, key=lambda kind: kind.name)
    structs: list[type[msgspec.Struct]] = [
        Tunables,
        AgentTable,
        *([CaseSettings, AgentAssertions] if is_case else []),
    ]
    structs += [kind.params for kind in known if kind.params is not None]
    _, definitions = msgspec.json.schema_components(structs, schema_hook=_foreign, ref_template=_REF)
    for struct in structs:
        _mark_transports(definitions[struct.__name__], struct)
    if is_case:
        _require_nothing(definitions, structs)
    else:
        definitions[AgentTable.__name__]["oneOf"] = [{"required": ["script"]}, {"required": ["entry"]}]
    for definition in definitions.values():
        definition["properties"] = {
            key: _without_null(each) for key, each in definition.get("properties", {}).items()
        }
    return {
        "$schema": DRAFT,
        "title": "toolpost test" if is_case else "toolpost configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "tooling": {
                "description": "The tool servers, by name.",
                "type": "object",
                "additionalProperties": _tooling(known, definitions, required=[] if is_case else ["kind"]),
            },
            "agents": {
                "description": "The programs that use toolings, by name.",
                "type": "object",
                "additionalProperties": {"$ref": _REF.format(name=AgentTable.__name__)},
            },
            "tunables": {"$ref": _REF.format(name=Tunables.__name__)},
            **(_CASE_TABLES if is_case else {}),
        },
        "definitions": definitions,
    }


_CASE_TABLES: JsonObject = {
    "test": {"$ref": _REF.format(name=CaseSettings.__name__)},
    "assertions": {
        "description": "What is expected of the agents, by name.",
        "type": "object",
        "additionalProperties": {"$ref": _REF.format(name=AgentAssertions.__name__)},
    },
}


def schema_text(*, is_case: bool = False) -> str:
    """The schema as a JSON document."""
    return json.dumps(config_schema(is_case=is_case), ensure_ascii=False, indent=2) + "\n"


def _require_nothing(definitions: dict[str, Any], structs: Iterable[type[msgspec.Struct]]) -> None:
    """Let the tables of a file have any part of their keys. Tables inside them are whole: lists replace."""
    for struct in structs:
        definitions[struct.__name__].pop("required", None)
        definitions[struct.__name__].pop("allOf", None)


def _every_kind() -> list[Kind]:
    return [kind for name in kind_names() if (kind := find_kind(name)) is not None]


def _tooling(kinds: list[Kind], definitions: dict[str, Any], *, required: list[str]) -> JsonObject:
    """One table `[tooling.x]`: which keys it may have depends on its kind."""
    choose = {"type": "string", "enum": [kind.name for kind in kinds], "description": "Its implementation."}
    cases: list[JsonObject] = []
    for kind in kinds:
        if kind.params is not None:
            # `kind` stands in the same table, so it is one of the keys of each
            definition = definitions[kind.params.__name__]
            definition["properties"] = {"kind": choose, **definition["properties"]}
            then = {"$ref": _REF.format(name=kind.params.__name__)}
            cases.append(_case("kind", kind.name, then))
    return {"type": "object", "required": required, "properties": {"kind": choose}, "allOf": cases}


def _case(key: str, value: str, then: JsonObject) -> JsonObject:
    """`then` holds where the key has the value."""
    return {"if": {"required": [key], "properties": {key: {"const": value}}}, "then": then}


def _mark_transports(schema: JsonObject, struct: type[msgspec.Struct]) -> None:
    """Say in a key's description which transport it belongs to, and ask for those that it needs."""
    needed: dict[str, list[str]] = {}
    for field in msgspec.structs.fields(struct):
        for meta in getattr(field.type, "__metadata__", ()):
            marks: dict[str, Any] = meta.extra or {}
            if (transport := marks.get("transport")) is not None:
                key: JsonObject = schema["properties"][field.encode_name]
                key["description"] = f'{key["description"]} (transport = "{transport}")'
                if marks.get("required"):
                    needed.setdefault(transport, []).append(field.encode_name)
    if needed:
        schema["allOf"] = [_case("transport", name, {"required": keys}) for name, keys in needed.items()]


def _without_null(key: JsonObject) -> JsonObject:
    """TOML has no null: a key that may be absent is absent."""
    choices = [choice for choice in key.get("anyOf", ()) if choice != {"type": "null"}]
    plain = {name: each for name, each in key.items() if name != "anyOf"}
    if plain.get("default", ...) is None:
        del plain["default"]
    match choices:
        case []:
            return plain
        case [choice]:
            return {**plain, **choice}
        case _:
            return {**plain, "anyOf": choices}


def _foreign(kind: type) -> JsonObject:
    if kind is Secret:
        return {"type": "string"}
    raise NotImplementedError
