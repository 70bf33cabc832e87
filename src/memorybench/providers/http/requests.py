"""HTTP requests from the templates of a config: parsed once, rendered and sent many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from memorybench.core.errors import ServiceError
from memorybench.files.bodies import BodyTemplate
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.files.templates import Placeholder, Template
from memorybench.http.client import Http
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Call, Request
from memorybench.providers.config.variables import AnyName, variables_in
from memorybench.providers.storage.turns import replace_surrogates
from memorybench.secrets.credentials import shape_in

_ANY = AnyName()  # the config was checked when it was read
_UNSAFE_SEGMENTS = frozenset({"", ".", ".."})

Values = Mapping[str, Any]
"""Variables of a template."""
Render = Callable[[Values], Any]
"""Renders a template: takes the variables, returns JSON data."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    where: str
    method: str
    path: Template
    query: Render
    headers: Render | None
    body: Render | None
    accept: frozenset[int]
    names: frozenset[str]
    """The variables it needs."""

    @classmethod
    def parse(cls, part: Document, call: Call) -> RequestTemplate:
        path = Template.parse(call.path, _ANY, part.where("path"))
        query, headers, body = (
            BodyTemplate.parse(Document(part.path, value, part.line_of, (*part.within, section)), _ANY)
            for section, value in (("query", call.query), ("headers", call.headers), ("body", call.body))
        )
        nodes = (path, query.root, headers.root, body.root)
        return cls(
            where=part.where(),
            method=call.method,
            path=path,
            query=compile_template(query),
            headers=compile_template(headers) if headers.root else None,
            body=compile_template(body) if body.root is not None else None,
            accept=frozenset(call.accept),
            names=frozenset(name for node in nodes for name, _ in variables_in(node)),
        )

    def url(self, values: Values) -> str:
        """Return the path and query string."""
        path = self.path.render({name: self._path_segment(name, values[name]) for name in self.path.names})
        query = self.query(values)
        if self.method == "GET" and self.body is not None:
            query = {**self.body(values), **query}
        pairs = [pair for key, value in query.items() for pair in _query_pairs(key, value)]
        if not pairs:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(pairs)}"

    def json(self, values: Values) -> Any:
        return None if self.method == "GET" or self.body is None else self.body(values)

    def _path_segment(self, name: str, value: Any) -> str:
        text = _to_text(value)
        if text in _UNSAFE_SEGMENTS:
            # it would address another resource, such as all users instead of one
            raise ServiceError(f"{self.where}: invalid path: {name} is {text!r}; expected an id")
        return quote(text, safe="")


class Api:
    """One service: its address and authentication."""

    def __init__(self, http: Http, base_url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._base_url = base_url.rstrip("/")
        self._headers = headers

    async def send(self, template: RequestTemplate, values: Values) -> Reply | None:
        """Send a request; return None if its error status is one that the config accepts."""
        headers = self._headers
        if template.headers is not None:
            headers = {**{name: _to_text(value) for name, value in template.headers(values).items()}, **headers}
        try:
            return await self._http.request(
                template.method, self._base_url + template.url(values), headers=headers, json=template.json(values)
            )
        except ServiceError as error:
            if error.status in template.accept:
                return None
            raise


@dataclass(frozen=True, slots=True)
class ReplyReader:
    """Reads the reply to a request that changes something."""

    captures: Mapping[str, Path]
    expects_json: bool
    secrets: frozenset[str] = frozenset()
    """The captures that are credentials."""

    @classmethod
    def parse(
        cls, part: Document, request: Request, *, expects_json: bool, secrets: frozenset[str] = frozenset()
    ) -> ReplyReader:
        paths = request.capture_paths
        captures = {name: Path.parse(path, part.where("captures", name)) for name, path in paths.items()}
        return cls(captures, expects_json or bool(captures), secrets & captures.keys())

    def read_json(self, reply: Reply | None) -> Any:
        """Return the JSON of a reply. If nothing is read from it, anything but a web page is accepted."""
        if reply is None:
            return None
        if self.expects_json:
            return reply.json()
        if reply.body.lstrip()[:1] == b"<":
            raise reply.malformed("the reply is a web page, such as the login of a proxy; expected the reply of an API")
        return None

    def read_captures(self, reply: Reply | None, data: Any) -> dict[str, Any]:
        """Return the captured variables; a path without a match is an error."""
        if reply is None:
            return {}
        captured = {}
        for name, path in self.captures.items():
            ids = _find_ids(path, data)
            if not ids:
                raise reply.malformed(f"missing {name}: no id at {path.text}")
            captured[name] = self._read_capture(name, ids[0], reply)
        return captured

    def _read_capture(self, name: str, value: str | int, reply: Reply) -> str | int:
        if name in self.secrets or shape_in(str(value)):
            # sent back to the same service only; another login may return a token that is known already
            reply.redactor.add(str(value))
            return value
        return redact(value, reply) if isinstance(value, str) else value


def read_ids(path: Path, data: Any, reply: Reply) -> list[str | int]:
    """Return the ids that a path matches, alone or in a list; other values are ignored."""
    return [redact(value, reply) if isinstance(value, str) else value for value in _find_ids(path, data)]


def _find_ids(path: Path, data: Any) -> list[str | int]:
    values = [value for match in path.all(data) for value in (match if isinstance(match, list) else [match])]
    return [value for value in values if isinstance(value, str | int) and not isinstance(value, bool) and value != ""]


def redact(text: str, reply: Reply) -> str:
    """Remove secrets from the text of a service: it may return the key that it was called with."""
    return replace_surrogates(reply.redactor.clean(text))


def parse_path(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def compile_template(template: BodyTemplate) -> Render:
    """Return a function that renders the template, without keys whose variable has no value: few APIs accept null."""
    return _compile(template.root)


def render_template(template: BodyTemplate, values: Values) -> Any:
    return _compile(template.root)(values)


def _compile(node: Any) -> Render:
    match node:
        case Template(parts=(Placeholder(name=name),)):
            return _compile_variable(name, node)
        case Path(routes=(route,)) if route.singular and len(route.steps) == 1:
            return _compile_variable(route.steps[0], node)
        case Template() | Path():
            return BodyTemplate(node).render
        case dict():
            members = [(key, inner is None, _compile(inner)) for key, inner in node.items()]
            return lambda values: {
                key: value for key, is_null, render in members if (value := render(values)) is not None or is_null
            }
        case list():
            items = [_compile(inner) for inner in node]
            return lambda values: [render(values) for render in items]
    return lambda values: node


def _compile_variable(name: Any, node: Template | Path) -> Render:
    """Return a function for the common case of a single variable; for a missing one, BodyTemplate raises."""
    return lambda values: values[name] if name in values else BodyTemplate(node).render(values)


def _query_pairs(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _query_pairs(key, item)
    elif value is not None:
        yield key, _to_text(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
