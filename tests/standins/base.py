"""What the vendors' stand-ins share: strict requests, delayed indexing, and a search by shared words.

    with running(Mem0()) as mem0:
        ...                                  # ask mem0.url with the key KEY
        mem0.stub.next(status(429, headers={"Retry-After": "7"}))
        mem0.slow_delete = True
        assert mem0.stub.calls[0].path == "/v3/memories/add/"

Each answers as its vendor's own client expects it; whatever that client would not send is refused with 4xx and a
reason. A document with FAILING in it is accepted and fails later. A text is remembered as one memory for each line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from aiohttp import web

from tests.doubles.stub import Call, Stub

KEY = "stand-in-key-0123456789"
FAILING = "unindexable"
LONG_AGO = "2024-01-01T00:00:00Z"
"""The creation date of everything."""

Shape = Mapping[str, Any]
"""Field → type, tuple of types, or a set of allowed values; a name with `?` at its end may be left out."""


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply other than status 200 with JSON."""

    status: int
    data: Any = None


@dataclass(eq=False, slots=True)
class Document:
    id: str
    scope: str
    texts: Sequence[str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    at: str | None = None
    waiting: int = 0
    """Number of polls until it is done; 0 means searchable."""

    @property
    def failed(self) -> bool:
        return self.waiting == 0 and any(FAILING in text for text in self.texts)


@dataclass(frozen=True, slots=True)
class Hit:
    id: str
    text: str
    score: float
    document: Document


Handler = Callable[..., Any]
V = TypeVar("V", bound="StandIn")


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a method of a StandIn; `{name}` in the path becomes an argument."""

    def mark(handler: Handler) -> Handler:
        pattern = re.compile(re.sub(r"\\{\w+\\}", "([^/]+)", re.escape(path)))
        handler.route = (method, pattern)  # type: ignore[attr-defined]
        return handler

    return mark


class StandIn:
    authorization: str | None = f"Bearer {KEY}"
    """The header it insists on; None: it asks for none."""
    merges = True
    """A fact that is added twice is stored once."""

    def __init__(self) -> None:
        self.url = ""
        self.stub = Stub()
        self.polls = 2
        """How often a document or a slow delete is reported as unfinished."""
        self.slow_delete = False
        self.documents: dict[tuple[str, str], Document] = {}
        """By scope and id."""
        self._numbers = count(1)
        found = [getattr(type(self), name) for name in dir(type(self))]
        self._routes = [(*handler.route, handler) for handler in found if hasattr(handler, "route")]

    async def answer(self, request: web.BaseRequest, call: Call) -> web.StreamResponse:
        try:
            handler, parts = self._handler(call.method, call.path)
            self._check_key(call)
            if call.method == "DELETE" and self.slow_delete:
                await asyncio.sleep(0.05)
            data = handler(self, call, *parts)
        except Refused as refused:
            return web.json_response({"error": str(refused), "detail": str(refused)}, status=refused.status)
        answer = data if isinstance(data, Answer) else Answer(200, data)
        return (
            web.Response(status=204) if answer.status == 204 else web.json_response(answer.data, status=answer.status)
        )

    def _handler(self, method: str, path: str) -> tuple[Handler, Sequence[str]]:
        matching = [
            (verb, match, handler) for verb, pattern, handler in self._routes if (match := pattern.fullmatch(path))
        ]
        for verb, match, handler in matching:
            if verb == method:
                return handler, match.groups()
        raise Refused(405, f"{path} takes no {method}") if matching else Refused(404, f"no such path: {path}")

    def _check_key(self, call: Call) -> None:
        if self.authorization is not None and call.headers.get("Authorization") != self.authorization:
            raise Refused(401, "Authorization is missing or wrong")

    def new_id(self) -> str:
        return str(UUID(int=next(self._numbers)))

    def store(self, document: Document) -> Document:
        """Accept a document; the same document with the same id changes nothing."""
        known = self.documents.get((document.scope, document.id))
        if known is not None and known.texts == document.texts:
            return known
        document.waiting = self.polls + 1
        self.documents[document.scope, document.id] = document
        return document

    def ask_about(self, document: Document) -> str:
        """Return the status of a document (`working`, `failed` or `done`); each poll advances it by one step."""
        document.waiting = max(0, document.waiting - 1)
        return "working" if document.waiting else "failed" if document.failed else "done"

    def forget(self, scope: str) -> int:
        mine = [key for key in self.documents if key[0] == scope]
        for key in mine:
            del self.documents[key]
        return len(mine)

    def found(self, scope: str, query: str, limit: int) -> list[Hit]:
        """Return the memories that share most words with the query, best first; ties are sorted by text."""
        query_words = words(query)
        hits = [
            Hit(memory.id, memory.text, len(shared) / len(query_words), memory.document)
            for memory in self.memories(scope)
            if (shared := query_words & words(memory.text))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.text))[:limit]

    def memories(self, scope: str) -> list[Hit]:
        """Return the searchable memories of a scope, in the order of adding."""
        memories = [
            Hit(f"{document.id}-{number}", text, 0.0, document)
            for document in self.documents.values()
            if document.scope == scope and not document.waiting and not document.failed
            for number, text in enumerate(document.texts)
        ]
        return list({memory.text: memory for memory in reversed(memories)}.values())[::-1] if self.merges else memories


@contextmanager
def running(vendor: V) -> Iterator[V]:
    with vendor.stub as stub:
        stub.always(vendor.answer)
        vendor.url = stub.url
        yield vendor


def body(call: Call, shape: Shape) -> dict[str, Any]:
    """Return the JSON body; raise Refused if it does not have the shape."""
    if call.headers.get("Content-Type", "").split(";")[0] != "application/json":
        raise Refused(415, "the body must be application/json")
    return checked(call.json, shape, "body")


def query(call: Call, shape: Shape) -> dict[str, str]:
    return checked(dict(call.query), shape, "query")


def checked(value: Any, shape: Shape, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(422, f"{where}: expected an object")
    expected = {name.removesuffix("?"): kind for name, kind in shape.items()}
    for name, given in value.items():
        if name not in expected:
            raise Refused(422, f"{where}: unknown field {name}")
        if not _fits(given, expected[name]):
            raise Refused(422, f"{where}.{name}: {given!r} is not what is expected here")
    for name in shape:
        if not name.endswith("?") and name not in value:
            raise Refused(422, f"{where}: {name} is missing")
    return value


def _fits(given: Any, expected: Any) -> bool:
    if isinstance(expected, (set, frozenset)):
        return given in expected
    if isinstance(given, bool):  # which Python takes for a number
        return expected is bool or (isinstance(expected, tuple) and bool in expected)
    return isinstance(given, expected)


def flat(metadata: Any, *kinds: type) -> Mapping[str, Any]:
    """Return a shape for metadata whose values are scalars of these kinds."""
    for name, value in (metadata or {}).items():
        if not _fits(value, kinds):
            raise Refused(422, f"metadata.{name}: {value!r} is not what is expected here")
    return metadata or {}


def lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
