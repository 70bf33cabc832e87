"""Guesses the requests of a memory system from its OpenAPI description, for `memorybench init provider`.

A guess is a start for the user, who reads the file: nothing is sent because of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FIELDS: Mapping[str, str] = {
    "$.content": r"content|text|data|memory|document|note|value|body",
    "$.messages": r"messages|conversation|turns",
    "$.scope": r"(user|group|agent|container|session|run|namespace|collection|scope|space|tenant|owner)"
    r"_?(id|tag|name)?",
    "$.metadata": r"metadata|meta",
    "$.date": r"(created|event|reference)?_?(at|date|time)|timestamp",
    "$.documentId": r"id|document_?id|custom_?id|key",
    "$.query": r"q|query|question|search|search_?query",
    "$.limit": r"limit|top_?k|k|n|n_?results|max_?results|max_?facts|page_?size|count|size",
}
_STORE_FIELDS = ("$.content", "$.messages", "$.scope", "$.metadata", "$.date", "$.documentId")
_SEARCH_FIELDS = ("$.query", "$.scope", "$.limit")
_CONTENT = re.compile(r"content|text|memory|fact|chunk|document|note|summary", re.I)
_SCORE = re.compile(r"score|similarity|relevance", re.I)
_SEARCH_PATH = re.compile(r"search|query|recall|retriev|find", re.I)
_STORE_PATH = re.compile(r"memor|document|note|message|episode|fact|record|item|passage|add|store|ingest", re.I)
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Guess:
    """One request, as a config has it; a missing part is an empty text."""

    method: str
    path: str
    body: Mapping[str, str]
    results: str = ""
    content: str = ""
    score: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Guesses:
    title: str
    version: str
    auth: Mapping[str, str]
    add: Guess | None
    search: Guess | None
    clear: Guess | None


def guess(description: Mapping[str, Any]) -> Guesses:
    """Return what a description seems to offer for adding, searching and clearing."""
    operations = list(_operations(description))
    info = _mapping(description.get("info"))
    searches = [
        one for one in operations if one[0] in ("POST", "GET") and _SEARCH_PATH.search(one[1]) and _fields(*one[2:])
    ]
    stores = [one for one in operations if one[0] in ("POST", "PUT") and not _SEARCH_PATH.search(one[1])]
    return Guesses(
        title=str(info.get("title", "")),
        version=str(info.get("version", "")),
        auth=_auth(description),
        add=_best(stores, _STORE_FIELDS, ("$.content", "$.messages"), _STORE_PATH, description),
        search=_best(searches, _SEARCH_FIELDS, ("$.query",), _SEARCH_PATH, description),
        clear=_clear(operations),
    )


Operation = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
"""Method, path, the schema of the body, and the operation."""


def _operations(description: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in _mapping(description.get("paths")).items():
        for method, operation in _mapping(item).items():
            if method.upper() in ("GET", "POST", "PUT", "DELETE") and isinstance(operation, Mapping):
                body = _json_schema(_mapping(operation.get("requestBody")), description)
                yield method.upper(), str(path), body, operation


def _json_schema(holder: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    content = _mapping(_resolve(holder, description).get("content"))
    return _resolve(_mapping(_mapping(content.get("application/json")).get("schema")), description)


def _resolve(schema: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within the document, and the first of several alternatives."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = description
            for step in reference[2:].split("/"):
                target = _mapping(target).get(step.replace("~1", "/").replace("~0", "~"))
            schema = _mapping(target)
            continue
        alternatives = [schema.get(name) for name in ("anyOf", "oneOf", "allOf")]
        inner = next((one for one in alternatives if isinstance(one, list) and one), None)
        if inner is None:
            return schema
        useful = [one for one in inner if isinstance(one, Mapping) and one.get("type") != "null"]
        schema = _mapping(useful[0] if useful else None)
    return schema


def _fields(body: Mapping[str, Any], operation: Mapping[str, Any]) -> list[str]:
    """Return the names of a request's fields: in its body, or in its query string."""
    names = [str(name) for name in _mapping(body.get("properties"))]
    parameters = operation.get("parameters")
    for parameter in parameters if isinstance(parameters, list) else []:
        if isinstance(parameter, Mapping) and parameter.get("in") == "query":
            names.append(str(parameter.get("name")))
    return names


def _best(
    operations: Sequence[Operation],
    variables: Sequence[str],
    needed: Sequence[str],
    usual_path: re.Pattern[str],
    description: Mapping[str, Any],
) -> Guess | None:
    candidates = []
    for method, path, body, operation in operations:
        fields = _match_fields(_fields(body, operation), variables)
        if not set(fields.values()) & set(needed) or "batch" in path:
            continue
        uses_scope = "$.scope" in fields.values() or "{" in path
        rank = (uses_scope, bool(usual_path.search(path)), len(fields), -len(path))
        candidates.append((rank, method, path, fields, operation))
    if not candidates:
        return None
    _, method, path, fields, operation = max(candidates, key=lambda one: one[0])
    results, item = _results(operation, description)
    properties = [str(name) for name in _mapping(item.get("properties"))]
    return Guess(
        method,
        _path(path),
        fields,
        results=results,
        content=next((f"$.{name}" for name in properties if _CONTENT.search(name)), ""),
        score=next((f"$.{name}" for name in properties if _SCORE.search(name)), ""),
        id=next((f"$.{name}" for name in properties if name.lower() in ("id", "uuid", "key")), ""),
    )


def _match_fields(names: Sequence[str], variables: Sequence[str]) -> dict[str, str]:
    """Return our variable for each field whose name is known; each variable is used once."""
    found: dict[str, str] = {}
    for variable in variables:
        for name in names:
            plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            if name not in found and re.fullmatch(_FIELDS[variable], plain):
                found[name] = variable
                break
    if "$.messages" in found.values():
        found = {name: variable for name, variable in found.items() if variable != "$.content"}
    return found


def _results(operation: Mapping[str, Any], description: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the path to a list of objects in the reply, and the schema of such an object."""
    replies = _mapping(operation.get("responses"))
    reply = _mapping(next((replies[code] for code in ("200", "201", "202") if code in replies), None))
    schema = _json_schema(reply, description)
    if schema.get("type") == "array":
        return "$", _resolve(_mapping(schema.get("items")), description)
    for name, inner in _mapping(schema.get("properties")).items():
        array = _resolve(_mapping(inner), description)
        item = _resolve(_mapping(array.get("items")), description)
        if array.get("type") == "array" and item.get("properties"):
            return f"$.{name}", item
    return "", {}


def _clear(operations: Sequence[Operation]) -> Guess | None:
    """Return the request that deletes the most: the shortest path with one parameter, or one by query string."""
    deletes = []
    for method, path, body, operation in operations:
        if method != "DELETE":
            continue
        names = re.findall(r"\{(\w+)\}", path)
        by_query = _match_fields(_fields(body, operation), ("$.scope",))
        if len(names) == 1 or (not names and by_query):
            is_scope = bool(names) and re.fullmatch(_FIELDS["$.scope"], names[0].lower()) is not None
            deletes.append(((is_scope or bool(by_query), -len(path)), path, by_query))
    if not deletes:
        return None
    _, path, by_query = max(deletes, key=lambda one: one[0])
    return Guess("DELETE", _path(path), by_query)


def _path(path: str) -> str:
    """Return a path of a config: its parameters are the scope, until the user names others."""
    return re.sub(r"\{\w+\}", "${scope}", path)


def _auth(description: Mapping[str, Any]) -> Mapping[str, str]:
    schemes = _mapping(_mapping(description.get("components")).get("securitySchemes"))
    for scheme in schemes.values():
        kind, scheme_name = _mapping(scheme).get("type"), str(_mapping(scheme).get("scheme", "")).lower()
        if kind in ("oauth2", "openIdConnect") or (kind == "http" and scheme_name == "bearer"):
            return {"type": "bearer"}
        if kind == "apiKey" and scheme.get("in") == "header":
            return {"type": "apikey", "header": str(scheme.get("name", "Authorization"))}
    return {"type": "none"}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def as_yaml(values: Mapping[str, str]) -> str:
    """Return a mapping as YAML on one line; JSON strings are YAML strings."""
    return "{" + ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()) + "}"
