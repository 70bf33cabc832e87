"""HTTP requests from the templates of a config: parsed once, rendered and sent many times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from memorybench.core.errors import ServiceError
from memorybench.files.bodies import BodyTemplate, names_in
from memorybench.files.jsonpaths import Path
from memorybench.files.located import Document
from memorybench.files.templates import Template
from memorybench.http.client import Http, Signer
from memorybench.http.replies import Reply
from memorybench.providers.config.requests import Call, Capture, FailedIf, Request
from memorybench.providers.config.variables import AnyName
from memorybench.providers.storage.turns import replace_surrogates
from memorybench.secrets.provider_keys import key_kind_in
from memorybench.text.sanitize import preview

_ANY = AnyName()  # the config was checked when it was read
_LATEST_SECONDS = 10**11
"""A Unix time above this number is in milliseconds, not in seconds."""
_UNSAFE_SEGMENTS = frozenset({"", ".", ".."})

Values = Mapping[str, Any]
"""The values of a template's variables, by name."""


class RequestTemplate(Struct, frozen=True):
    where: str
    method: str
    path: Template
    query: Any
    """A template for `render`, as are `headers` and `body`."""
    headers: Any
    body: Any
    accept: frozenset[int]
    failure: FailureRule | None
    names: frozenset[str]
    """The variables that the request uses."""

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
            query=query.root,
            headers=headers.root,
            body=body.root,
            accept=frozenset(call.accept),
            failure=FailureRule.parse(part.at("failed_if"), call.failed_if) if call.failed_if else None,
            names=frozenset().union(*map(names_in, nodes)),
        )

    def url(self, values: Values) -> str:
        """Return the path and query string of the request, without the base URL."""
        path = self.path.render({name: self._path_segment(name, values[name]) for name in self.path.names})
        query = render(self.query, values)
        if self.method == "GET" and self.body is not None:
            query = {**render(self.body, values), **query}
        pairs = [pair for key, value in query.items() for pair in _query_pairs(key, value)]
        if not pairs:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(pairs)}"

    def json(self, values: Values) -> Any:
        return None if self.method == "GET" else render(self.body, values)

    def _path_segment(self, name: str, value: Any) -> str:
        text = _to_text(value)
        if text in _UNSAFE_SEGMENTS:
            # it would address another resource, such as all users instead of one
            raise ServiceError(f"{self.where}: the variable {name} in the path is {text!r}; expected an id")
        return quote(text, safe="")


class Api:
    """Sends requests to one service, with its base URL and authentication."""

    def __init__(self, http: Http, base_url: str, headers: Mapping[str, str], sign: Signer | None = None) -> None:
        self._http = http
        self._base_url = base_url.rstrip("/")
        self._headers = headers
        self._sign = sign

    async def send(self, template: RequestTemplate, values: Values, url: str | None = None) -> Reply | None:
        """Send a request and return the reply; None if the reply has an error status that the config accepts.

        `url` replaces the URL of the template, for the next page of results.
        """
        headers = {name: _to_text(value) for name, value in render(template.headers, values).items()}
        try:
            reply = await self._http.request(
                template.method,
                url or self._base_url + template.url(values),
                headers={**headers, **self._headers},
                json=template.json(values),
                sign=self._sign,
            )
        except ServiceError as error:
            if error.status in template.accept:
                return None
            raise
        if template.failure is not None:
            template.failure.check(reply)
        return reply


class FailureRule(Struct, frozen=True):
    """Decides by the body of a reply whether the request failed, although its HTTP status means success."""

    path: Path
    failures: tuple[Any, ...]
    successes: tuple[Any, ...]
    message: Path | None

    @classmethod
    def parse(cls, part: Document, rule: FailedIf) -> FailureRule:
        return cls(
            Path.parse(rule.path, part.where("path")),
            _as_tuple(rule.equals),
            _as_tuple(rule.not_equals),
            parse_path(rule.message, part.where("message")),
        )

    def check(self, reply: Reply) -> None:
        """Raise Transient if the reply says that the request failed."""
        data = reply.json()
        values = self.path.all(data)
        if self.successes and not values:
            problem = f"the reply has no {self.path.text}, which says whether the request succeeded"
        elif failed := [value for value in values if self._is_failure(value)]:
            problem = f"the request failed: {self.path.text} is {preview(redact(str(failed[0]), reply))}"
        else:
            return
        message = self.message.first(data) if self.message else None
        raise reply.reported_failure(problem, None if message is None else str(message))

    def _is_failure(self, value: Any) -> bool:
        if self.failures:
            return any(_is_same(value, failure) for failure in self.failures)
        if self.successes:
            return not any(_is_same(value, success) for success in self.successes)
        return bool(value)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _is_same(value: Any, expected: Any) -> bool:
    """Return whether two scalars are equal; False does not equal 0, nor True 1."""
    return isinstance(value, bool) == isinstance(expected, bool) and bool(value == expected)


class ReplyReader(Struct, frozen=True):
    """Reads the reply to a request that opens or changes a scope: captured values, and when they expire."""

    captures: Mapping[str, Path]
    expects_json: bool
    secrets: frozenset[str] = frozenset()
    """The names of captures that are credentials."""
    expiries: tuple[Expiry, ...] = ()
    """How to read when a capture expires, for each capture that has `expiresIn` or `expiresAt`."""

    @classmethod
    def parse(
        cls, part: Document, request: Request, *, expects_json: bool, secrets: frozenset[str] = frozenset()
    ) -> ReplyReader:
        paths = request.capture_paths
        captures = {name: Path.parse(path, part.where("captures", name)) for name, path in paths.items()}
        expiries = tuple(
            Expiry.parse(part.at("captures", name), capture)
            for name, capture in request.captures.items()
            if isinstance(capture, Capture) and (capture.expires_in is not None or capture.expires_at is not None)
        )
        return cls(captures, expects_json or bool(captures), secrets & captures.keys(), expiries)

    def read_json(self, reply: Reply | None) -> Any:
        """Return the JSON of a reply; None if the config reads nothing from the reply.

        Such a reply need not be JSON, but must not be a web page: if it is one, raise Malformed.
        """
        if reply is None:
            return None
        if self.expects_json:
            return reply.json()
        if reply.body.lstrip()[:1] == b"<":
            raise reply.malformed("the reply is a web page, such as the login of a proxy; expected the reply of an API")
        return None

    def read_captures(self, reply: Reply | None, data: Any) -> dict[str, Any]:
        """Return the captured values by variable name. Raise Malformed if a path has no match in the reply."""
        if reply is None:
            return {}
        captured = {}
        for name, path in self.captures.items():
            ids = _find_ids(path, data)
            if not ids:
                raise reply.malformed(f"the reply has no text or number at {path.text} to capture as {name}")
            captured[name] = self._read_capture(name, ids[0], reply)
        return captured

    def read_validity(self, reply: Reply | None, data: Any) -> float | None:
        """Return the number of seconds until the first of the captures expires; None if none is known to expire."""
        validities = [] if reply is None else [expiry.read(reply, data) for expiry in self.expiries]
        return min((validity for validity in validities if validity is not None), default=None)

    def _read_capture(self, name: str, value: str | int, reply: Reply) -> str | int:
        if name in self.secrets or key_kind_in(str(value)):
            # sent back to the same service only; another login may return a token that is known already
            reply.redactor.add(str(value))
            return value
        return redact(value, reply) if isinstance(value, str) else value


class Expiry(Struct, frozen=True):
    """Reads from a reply when a capture expires."""

    seconds: float | Path | None
    at: Path | None

    @classmethod
    def parse(cls, part: Document, capture: Capture) -> Expiry:
        seconds = capture.expires_in
        if isinstance(seconds, str):
            return cls(Path.parse(seconds, part.where("expires_in")), None)
        return cls(seconds, parse_path(capture.expires_at, part.where("expires_at")))

    def read(self, reply: Reply, data: Any) -> float | None:
        """Return the number of seconds until the capture expires.

        None if it has expired by the clock of this machine: the clock of the service must differ, so the real number
        is unknown.
        """
        if isinstance(self.seconds, Path):
            return _positive_number(self.seconds, self.seconds.first(data), reply)
        if self.at is None:
            return self.seconds
        value = self.at.first(data)
        if isinstance(value, str) and not value.isdecimal():
            try:
                at = datetime.fromisoformat(value)
            except ValueError:
                raise reply.malformed(f"invalid time of expiry at {self.at.text}; expected an ISO 8601 date") from None
            seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = _positive_number(self.at, value, reply)
            seconds = seconds / 1000 if seconds > _LATEST_SECONDS else seconds
        left = seconds - datetime.now(UTC).timestamp()
        return left if left > 0 else None


def _positive_number(path: Path, value: Any, reply: Reply) -> float:
    with suppress(TypeError, ValueError):
        number = float(value) if not isinstance(value, bool) else math.nan
        if math.isfinite(number) and number > 0:
            return number
    raise reply.malformed(f"invalid time of expiry at {path.text}; expected a positive number")


def read_ids(path: Path, data: Any, reply: Reply) -> list[str | int]:
    """Return the ids that a path matches; a match may be one id or a list of ids.

    An id is a whole number or a text that is not empty. Raise Malformed if only some of the values are ids; if none is,
    return an empty list.
    """
    ids, values = _find_ids(path, data), _values_at(path, data)
    if ids and len(ids) < len(values):
        # ignoring it would lose a document, or search before it is ready
        raise reply.malformed(
            f"{len(values) - len(ids)} of {len(values)} values at {path.text} are not ids; expected texts or numbers"
        )
    return [redact(value, reply) if isinstance(value, str) else value for value in ids]


def _find_ids(path: Path, data: Any) -> list[str | int]:
    return [
        value
        for value in _values_at(path, data)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != ""
    ]


def _values_at(path: Path, data: Any) -> list[Any]:
    return [value for match in path.all(data) for value in (match if isinstance(match, list) else [match])]


def redact(text: str, reply: Reply) -> str:
    """Remove secrets and lone surrogates from a text of a service, which may repeat the key that it was sent."""
    return replace_surrogates(reply.redactor.clean(text))


def parse_path(path: str | None, where: str) -> Path | None:
    return None if path is None else Path.parse(path, where)


def render(node: Any, values: Values) -> Any:
    """Return a template, such as `BodyTemplate.root`, with values in place of its variables.

    Keys whose variable has no value are left out, because few APIs accept null.
    """
    match node:
        case dict():
            members = {key: render(inner, values) for key, inner in node.items()}
            return {key: value for key, value in members.items() if value is not None or node[key] is None}
        case list():
            return [render(inner, values) for inner in node]
    return BodyTemplate(node).render(values)


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
