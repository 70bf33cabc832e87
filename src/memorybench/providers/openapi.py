"""Guesses the requests of a memory system from its OpenAPI description, for `memorybench init provider`.

The guesses are written to a config file, which the user checks and completes. Guessing sends no request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct, field

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


class Guess(Struct, frozen=True):
    """A guessed request, with the values for the keys of a config. A value that could not be guessed is ""."""

    method: str
    path: str
    body: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    results: str = ""
    content: str = ""
    score: str = ""
    id: str = ""
    sources: str = ""
    unknown: tuple[str, ...] = ()
    """The required fields of the request whose meaning could not be guessed."""

    @property
    def has_scope(self) -> bool:
        return "${scope}" in self.path or "$.scope" in (*self.body.values(), *self.query.values())


class Guesses(Struct, frozen=True):
    title: str
    version: str
    auth: Mapping[str, str]
    unsupported_auth: str
    """The kind of authentication that the service needs, if memorybench does not support it; otherwise ""."""
    add: Guess | None
    search: Guess | None
    clear: Guess | None


def guess(description: Mapping[str, Any]) -> Guesses:
    """Return the requests for adding, searching and clearing that an OpenAPI description seems to contain."""
    operations = list(_operations(description))
    info = _mapping(description.get("info"))
    searches = [one for one in operations if one.method in ("POST", "GET")]
    stores = [one for one in operations if one.method in ("POST", "PUT") and not _SEARCH_PATH.search(one.path)]
    auth, unsupported_auth = _auth(description)
    add = _best(stores, _STORE_FIELDS, ("$.content", "$.messages"), _STORE_PATH)
    sends_metadata = add is not None and "$.metadata" in (*add.body.values(), *add.query.values())
    return Guesses(
        title=str(info.get("title", "")),
        version=str(info.get("version", "")),
        auth=auth,
        unsupported_auth=unsupported_auth,
        add=add,
        search=_best(searches, _SEARCH_FIELDS, ("$.query",), _SEARCH_PATH, sends_metadata=sends_metadata),
        clear=_clear(operations),
    )


def base_url(description: Mapping[str, Any], url: str, probed: str) -> tuple[str, str]:
    """Return the base URL for the paths of a description, and "" or the address of a server that is not used.

    `url` is the address of the description. Nothing may be sent to another server, such as the vendor's, without the
    user's consent. So if the description names only other servers, the base URL is `probed`, and the second value is
    the address of the first of them.
    """
    addresses = [_server_url(server) for server in _list(description.get("servers")) if isinstance(server, Mapping)]
    if isinstance(description.get("basePath"), str):  # Swagger 2
        addresses = [description["basePath"]]
    joined = [urljoin(url, address).rstrip("/") for address in addresses if address]
    same = [one for one in joined if urlsplit(one)[:2] == urlsplit(url)[:2]]
    return (same[0], "") if same else (probed, joined[0] if joined else "")


def _server_url(server: Mapping[str, Any]) -> str:
    """Return the URL of a server of the description, with the default values of the variables in it."""
    variables = _mapping(server.get("variables"))
    return re.sub(
        r"\{(\w+)\}",
        lambda match: str(_mapping(variables.get(match[1])).get("default", "")),
        str(server.get("url", "")),
    )


class Operation(Struct, frozen=True):
    method: str
    path: str
    body: Sequence[str]
    """The names of the fields of the body."""
    query: Sequence[str]
    """The names of the fields of the query string."""
    required: Sequence[str]
    results: str
    """The JSONPath to a list of objects in the reply; empty if the reply has no list of objects."""
    item: Sequence[str]
    """The names of the fields of the objects at `results`."""


def _operations(description: Mapping[str, Any]) -> Iterator[Operation]:
    for path, item in _mapping(description.get("paths")).items():
        for method, operation in _mapping(item).items():
            if method.upper() in ("GET", "POST", "PUT", "DELETE") and isinstance(operation, Mapping):
                parameters = [
                    _resolve(_mapping(one), description)
                    for holder in (item, operation)
                    for one in _list(holder.get("parameters"))
                ]
                body = _json_schema(_mapping(operation.get("requestBody")), description)
                for parameter in parameters:
                    if parameter.get("in") == "body":  # Swagger 2
                        body = _json_schema(parameter, description)
                query = [one for one in parameters if one.get("in") == "query"]
                results, fields = _results(operation, description)
                yield Operation(
                    method.upper(),
                    str(path),
                    [str(name) for name in _mapping(body.get("properties"))],
                    [str(one.get("name")) for one in query],
                    [
                        *map(str, _list(body.get("required"))),
                        *(str(one.get("name")) for one in query if one.get("required") is True),
                    ],
                    results,
                    [str(name) for name in _mapping(fields.get("properties"))],
                )


def _json_schema(holder: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema of a request body or a reply, which `holder` describes as in OpenAPI 3 or Swagger 2."""
    holder = _resolve(holder, description)
    json_content = _mapping(_mapping(holder.get("content")).get("application/json"))
    return _resolve(_mapping((json_content or holder).get("schema")), description)


def _resolve(schema: Mapping[str, Any], description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that `$ref` names, or the first alternative of anyOf, oneOf or allOf that is not null.

    A schema without these keys is returned as it is.
    """
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


def _best(
    operations: Sequence[Operation],
    variables: Sequence[str],
    needed: Sequence[str],
    usual_path: re.Pattern[str],
    *,
    sends_metadata: bool = False,
) -> Guess | None:
    candidates = []
    for operation in operations:
        fields = _match_fields([*operation.body, *operation.query], variables)
        if not set(fields.values()) & set(needed) or "batch" in operation.path:
            continue
        uses_scope = "$.scope" in fields.values() or "{" in operation.path
        rank = (uses_scope, bool(usual_path.search(operation.path)), len(fields), -len(operation.path))
        candidates.append((rank, operation, fields))
    if not candidates:
        return None
    _, operation, fields = max(candidates, key=lambda one: one[0])
    metadata = next((name for name in operation.item if name.lower() in ("metadata", "meta")), None)
    return Guess(
        operation.method,
        _path(operation.path),
        {name: variable for name, variable in fields.items() if name in operation.body},
        {name: variable for name, variable in fields.items() if name not in operation.body},
        results=operation.results,
        content=next((f"$.{name}" for name in operation.item if _CONTENT.search(name)), ""),
        score=next((f"$.{name}" for name in operation.item if _SCORE.search(name)), ""),
        id=next((f"$.{name}" for name in operation.item if name.lower() in ("id", "uuid", "key")), ""),
        sources=f"$.{metadata}.documentId" if metadata and sends_metadata else "",
        unknown=tuple(name for name in operation.required if name not in fields),
    )


def _match_fields(names: Sequence[str], variables: Sequence[str]) -> dict[str, str]:
    """Map each field whose name is known to its variable of memorybench, such as `user_id` to `$.scope`.

    Each variable is used at most once, and `$.content` only if no field is `$.messages`.
    """
    found: dict[str, str] = {}
    for variable in variables:
        for name in names:
            if name not in found and re.fullmatch(_FIELDS[variable], _plain(name)):
                found[name] = variable
                break
    if "$.messages" in found.values():
        found = {name: variable for name, variable in found.items() if variable != "$.content"}
    return found


def _results(operation: Mapping[str, Any], description: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the JSONPath to a list of objects in the reply, and the schema of such an object; ("", {}) if none."""
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
    """Return the DELETE request whose path or query string names a scope; None if there is none.

    Of several such requests, the one with the shortest path is returned. A request that deletes one memory by its id
    does not count: with the name of a scope as the id, it would delete nothing.
    """
    deletes = []
    for operation in operations:
        names = re.findall(r"\{(\w+)\}", operation.path)
        by_query = _match_fields(operation.query, ("$.scope",))
        if operation.method == "DELETE" and (_is_scope(*names) if len(names) == 1 else not names and by_query):
            unknown = tuple(name for name in operation.required if name not in by_query)
            deletes.append((len(operation.path), Guess("DELETE", _path(operation.path), {}, by_query, unknown=unknown)))
    return min(deletes, key=lambda one: one[0])[1] if deletes else None


def _is_scope(name: str) -> bool:
    return re.fullmatch(_FIELDS["$.scope"], _plain(name)) is not None


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _path(path: str) -> str:
    """Return the path for a config: each parameter, such as `{user_id}`, becomes `${scope}` or `${documentId}`."""
    has_scope = any(map(_is_scope, re.findall(r"\{(\w+)\}", path)))

    def variable(match: re.Match[str]) -> str:
        is_id = has_scope and not _is_scope(match[1]) and re.fullmatch(_FIELDS["$.documentId"], _plain(match[1]))
        return "${documentId}" if is_id else "${scope}"

    return re.sub(r"\{(\w+)\}", variable, path)


def _auth(description: Mapping[str, Any]) -> tuple[Mapping[str, str], str]:
    """Return the section `auth` of a config, and the kind of authentication if it is not supported (else "")."""
    schemes = _mapping(_mapping(description.get("components")).get("securitySchemes"))
    schemes = schemes or _mapping(description.get("securityDefinitions"))  # Swagger 2
    kinds = []
    for scheme in map(_mapping, schemes.values()):
        kind, scheme_name = scheme.get("type"), str(scheme.get("scheme", "")).lower()
        if kind in ("oauth2", "openIdConnect") or (kind == "http" and scheme_name == "bearer"):
            return {"type": "bearer"}, ""
        if kind == "apiKey" and scheme.get("in") == "header":
            return {"type": "apikey", "header": str(scheme.get("name", "Authorization"))}, ""
        kinds.append(f"{kind} {scheme_name or scheme.get('in', '')}".strip())
    return {"type": "none"}, kinds[0] if kinds else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def as_yaml(values: Mapping[str, str]) -> str:
    """Return a mapping as one line of YAML, such as `{"user_id": "$.scope"}`; JSON strings are valid YAML."""
    return "{" + ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items()) + "}"
