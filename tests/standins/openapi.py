"""Checks a recorded request against an OpenAPI document: path, method, fields and their types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.doubles.stub import Call

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def problems(document: Mapping[str, Any], call: Call) -> list[str]:
    """Return the problems of a request; a field that the document does not describe is one."""
    operation = _operation(document, call)
    if operation is None:
        return [f"{call.method} {call.path} is not in the document"]
    checker = _Checker(document)
    found = list(checker.parameters(operation.get("parameters", ()), call.query))
    described = operation.get("requestBody")
    if described is None:
        return [*found, *(["a body is sent"] if call.body else [])]
    schema = described["content"]["application/json"]["schema"]
    return [*found, *checker.value(schema, call.json if call.body else None, "body")]


def _operation(document: Mapping[str, Any], call: Call) -> Mapping[str, Any] | None:
    for path, operations in document["paths"].items():
        if (
            re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)), call.path)
            and call.method.lower() in operations
        ):
            operation: Mapping[str, Any] = operations[call.method.lower()]
            return operation
    return None


class _Checker:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def parameters(self, described: Sequence[Mapping[str, Any]], query: Mapping[str, str]) -> Iterator[str]:
        known = {one["name"]: one for one in map(self._resolved, described) if one["in"] == "query"}
        yield from (f"query: unknown field {name}" for name in query if name not in known)
        for name, one in known.items():
            if name not in query:
                yield from [f"query: {name} is missing"] if one.get("required") else []
            elif self._resolved(one["schema"]).get("type") == "integer" and not query[name].isdecimal():
                yield f"query.{name}: {query[name]!r} is no integer"

    def value(self, schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
        schema = self._resolved(schema)
        if value is None and schema.get("nullable"):
            return
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            complaints = [list(self.value(choice, value, where)) for choice in choices]
            yield from min(complaints, key=len)
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is none of {schema['enum']}"
        if "type" in schema and not _is(value, schema["type"]):
            yield f"{where}: {value!r} is no {schema['type']}"
        elif isinstance(value, dict):
            yield from self._fields(schema, value, where)
        elif isinstance(value, list):
            for one in value:
                yield from self.value(schema.get("items", {}), one, f"{where}[]")

    def _fields(self, schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> Iterator[str]:
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        yield from (f"{where}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            if name in known:
                yield from self.value(known[name], inner, f"{where}.{name}")
            elif isinstance(others, dict):
                yield from self.value(others, inner, f"{where}.{name}")
            elif known and others is not True:
                yield f"{where}: unknown field {name}"

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            found: Any = self._document
            for step in node["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            node = found
        return node


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
