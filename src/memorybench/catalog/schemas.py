"""JSON Schemas of the config files, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorybench.files.record_docs import documented
from memorybench.text.spelling import camel

from .files import Described, record_of

_TYPE_OR_BASE = {"anyOf": [{"required": ["type"]}, {"required": ["extends"]}]}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: Described) -> dict[str, Any]:
    """Return the JSON Schema of a config. Keys may be written in camelCase or snake_case."""
    schema = documented(record_of(kind)).model_json_schema()
    sections = {name: _section(part) for name, part in schema.pop("$defs").items()}
    whole = _section(schema)
    if kind == "provider":  # a config that extends another inherits its type
        whole["allOf"] = [part if part != _present("type") else _TYPE_OR_BASE for part in whole["allOf"]]
    return {"$schema": _DIALECT, **whole, "title": f"memorybench {kind} config", "$defs": sections}


def _section(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {name: _property(part) for name, part in schema["properties"].items()}
    spelled = {spelling: part for name, part in properties.items() for spelling in (camel(name), name)}
    section = {"type": "object", "properties": spelled, "additionalProperties": False}
    required = [_present(name) for name in schema.get("required", ())]
    if required:
        section["allOf"] = required
    if "description" in schema:
        section["description"] = one_line(schema["description"])
    return section


def _property(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a property's schema without its title, which repeats the key, and without a null or object default."""
    copy = {keyword: value for keyword, value in schema.items() if keyword != "title"}
    if isinstance(copy.get("default"), dict | None):
        copy.pop("default", None)
    if "description" in copy:  # missing if it would repeat that of the section
        copy["description"] = one_line(copy["description"])
    return copy


def _present(name: str) -> dict[str, Any]:
    if camel(name) == name:
        return {"required": [name]}
    return {"anyOf": [{"required": [camel(name)]}, {"required": [name]}]}


def one_line(docstring: str | None) -> str:
    return " ".join((docstring or "").split())
