"""HTTP requests from the templates of a config: parsed once, rendered and sent as often as needed."""

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

from .config_requests import Call, Request
from .config_variables import AnyName, variables_in
from .turn_store import storable

_ANY = AnyName()  # the config was checked when it was read
_NO_SEGMENT = frozenset({"", ".", ".."})

Values = Mapping[str, Any]
Filling = Callable[[Values], Any]
"""A template on its way to become JSON: give it the values."""


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
        """What follows the base URL."""
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
    """One service: where it is, and how it knows us."""

    def __init__(self, http: Http, base_url: str, headers: Mapping[str, str]) -> None:
        self._http = http
        self._base_url = base_url.rstrip("/")
        self._headers = headers

    async def send(self, template: RequestTemplate, values: Values) -> Reply | None:
        """The reply; None: its status is one that the config accepts in the place of success."""
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
    """What is wanted of the reply to a request that changes something."""

    captures: Mapping[str, Path]
    needed: bool
    """Something is read from the reply, be it by others: it must be JSON."""

    @classmethod
    def parse(cls, part: Document, request: Request, *, needed: bool) -> Reading:
        captures = {name: Path.parse(path, part.where("captures", name)) for name, path in request.captures.items()}
        return cls(captures, needed or bool(captures))

    def data(self, reply: Reply | None) -> Any:
        """What the reply says. Where nothing is needed of it, anything but a web page will do."""
        if reply is None:
            return None
        if self.needed:
            return reply.json()
        if reply.body.lstrip()[:1] == b"<":
            raise reply.malformed("this is the page of a proxy or a login, not the answer of an API")
        return None

    def captured(self, reply: Reply | None, data: Any) -> dict[str, Any]:
        """A variable for each path; one that finds nothing would send later requests astray."""
        if reply is None:
            return {}
        found = {name: identifiers(path, data, reply) for name, path in self.captures.items()}
        for name, ids in found.items():
            if not ids:
                raise reply.malformed(f"no id at {self.captures[name].text}, where {name} is captured")
        return {name: ids[0] for name, ids in found.items()}


def identifiers(path: Path, data: Any, reply: Reply) -> list[str | int]:
    """The ids that a path finds, by itself or in a list; what can not be one is left out."""
    found = [one for match in path.all(data) for one in (match if isinstance(match, list) else [match])]
    return [
        foreign(one, reply) if isinstance(one, str) else one
        for one in found
        if isinstance(one, str | int) and not isinstance(one, bool) and one != ""
    ]


def foreign(text: str, reply: Reply) -> str:
    """Text of a service on its way to the journal: a service may give back the very key it was called with."""
    return storable(reply.redactor.clean(text))


def filled(template: BodyTemplate, values: Values) -> Any:
    """The rendered template, without the keys whose variable has no value: null is what few APIs want to hear."""
    return filling(template)(values)


def filling(template: BodyTemplate) -> Filling:
    """The same, prepared for many values: what the template says is looked at once and not at every request."""
    return _filling(template.root)


def parsed(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def _segment(name: str, value: Any, where: str) -> str:
    text = _text(value)
    if text in _NO_SEGMENT:
        # it would name another resource than the one that was meant, such as all users for one
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
    """A value as it is, which is what nearly every place of a template wants."""

    def fill(values: Values) -> Any:
        return values[name] if name in values else BodyTemplate(node).render(values)  # which says what is wrong

    return fill
