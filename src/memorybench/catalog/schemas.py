"""JSON Schemas of the config files, for editors that complete keys and mark mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorybench.text.spelling import camel

from .files import RECORDS, Described

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: Described) -> dict[str, Any]:
    """Keys may be spelled either way, as in the files themselves."""
    schema = RECORDS[kind].model_json_schema()
    sections = {name: _section(part) for name, part in schema.pop("$defs").items()}
    return {"$schema": _DIALECT, **_section(schema), "title": f"memorybench {kind} config", "$defs": sections}


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
    """Without the title, which repeats the key, and without defaults that say nothing: null, or a whole section."""
    kept = {keyword: value for keyword, value in schema.items() if keyword != "title"}
    if isinstance(kept.get("default"), dict | None):
        kept.pop("default", None)
    if "description" in kept:  # it is left out where it would repeat that of the section
        kept["description"] = one_line(kept["description"])
    return kept


def _present(name: str) -> dict[str, Any]:
    if camel(name) == name:
        return {"required": [name]}
    return {"anyOf": [{"required": [camel(name)]}, {"required": [name]}]}


def one_line(docstring: str | None) -> str:
    return " ".join((docstring or "").split())
