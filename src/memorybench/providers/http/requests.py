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

_ANY = AnyName()  # the config was checked when it was read
_NO_SEGMENT = frozenset({"", ".", ".."})

Values = Mapping[str, Any]
Filling = Callable[[Values], Any]
"""Renders a template: takes the values, returns JSON data."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    where: str
    method: str
    path: Template
    path_names: frozenset[str]
    query: Filling
    headers: Filling | None
    body: Filling | None
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
            path_names=path.names,
            query=filling(query),
            headers=filling(headers) if headers.root else None,
            body=filling(body) if body.root is not None else None,
            accept=frozenset(call.accept),
            names=frozenset(name for node in nodes for name, _ in variables_in(node)),
        )

    def url(self, values: Values) -> str:
        """Return the path and query string."""
        path = self.path.render({name: _segment(name, values[name], self.where) for name in self.path_names})
        query = self.query(values)
        if self.method == "GET" and self.body is not None:
            query = {**self.body(values), **query}
        pairs = [pair for key, value in query.items() for pair in _pairs(key, value)]
        if not pairs:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(pairs)}"

    def json(self, values: Values) -> Any:
        return None if self.method == "GET" or self.body is None else self.body(values)


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
            own = {name: _text(value) for name, value in template.headers(values).items()}
            headers = {**own, **headers}
        try:
            return await self._http.request(
                template.method, self._base_url + template.url(values), headers=headers, json=template.json(values)
            )
        except ServiceError as error:
            if error.status in template.accept:
                return None
            raise


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read from the reply to a request that changes something."""

    captures: Mapping[str, Path]
    needed: bool
    """Whether the reply must be JSON."""

    @classmethod
    def parse(cls, part: Document, request: Request, *, needed: bool) -> Reading:
        captures = {name: Path.parse(path, part.where("captures", name)) for name, path in request.captures.items()}
        return cls(captures, needed or bool(captures))

    def data(self, reply: Reply | None) -> Any:
        """Return the JSON of a reply. If nothing is read from it, anything but a web page is accepted."""
        if reply is None:
            return None
        if self.needed:
            return reply.json()
        if reply.body.lstrip()[:1] == b"<":
            raise reply.malformed("this is the page of a proxy or a login, not the answer of an API")
        return None

    def captured(self, reply: Reply | None, data: Any) -> dict[str, Any]:
        """Return the captured variables; a path without a match is an error."""
        if reply is None:
            return {}
        found = {name: identifiers(path, data, reply) for name, path in self.captures.items()}
        for name, ids in found.items():
            if not ids:
                raise reply.malformed(f"no id at {self.captures[name].text}, where {name} is captured")
        return {name: ids[0] for name, ids in found.items()}


def identifiers(path: Path, data: Any, reply: Reply) -> list[str | int]:
    """Return the ids that a path matches, alone or in a list; other values are ignored."""
    found = [one for match in path.all(data) for one in (match if isinstance(match, list) else [match])]
    return [
        foreign(one, reply) if isinstance(one, str) else one
        for one in found
        if isinstance(one, str | int) and not isinstance(one, bool) and one != ""
    ]


def foreign(text: str, reply: Reply) -> str:
    """Remove secrets from the text of a service: it may return the key that it was called with."""
    return replace_surrogates(reply.redactor.clean(text))


def filled(template: BodyTemplate, values: Values) -> Any:
    """Render a template, without the keys whose variable has no value: few APIs accept null."""
    return filling(template)(values)


def filling(template: BodyTemplate) -> Filling:
    """Return a function that renders the template; the template is examined once."""
    return _filling(template.root)


def parsed(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def _segment(name: str, value: Any, where: str) -> str:
    text = _text(value)
    if text in _NO_SEGMENT:
        # it would address another resource, such as all users instead of one
        raise ServiceError(f"{where}: {name} is {text!r}, which can not stand in a path")
    return quote(text, safe="")


def _pairs(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _pairs(key, one)
    elif value is not None:
        yield key, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _filling(node: Any) -> Filling:
    match node:
        case Template(parts=(Placeholder(name=name),)):
            return _named(name, node)
        case Path(routes=(route,)) if route.singular and len(route.steps) == 1:
            return _named(route.steps[0], node)
        case Template() | Path():
            return BodyTemplate(node).render
        case dict():
            members = [(key, inner is None, _filling(inner)) for key, inner in node.items()]
            return lambda values: {
                key: value for key, null, fill in members if (value := fill(values)) is not None or null
            }
        case list():
            places = [_filling(inner) for inner in node]
            return lambda values: [fill(values) for fill in places]
    return lambda values: node


def _named(name: Any, node: Template | Path) -> Filling:
    """Return a function for the common case of a single variable."""

    def fill(values: Values) -> Any:
        return values[name] if name in values else BodyTemplate(node).render(values)  # which says what is wrong

    return fill
