"""A small memory service for the tests of the HTTP provider: strict, and slow to index.

It rejects unknown input, as services do: another key (401), unknown fields (400), unknown ids (404). What it
accepts is searchable after two polls of its job (or, without polls, after two searches); it never
sleeps, so tests do not wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.doubles.stub import Call

KEY = "sentinel-key-5f2b91"
POLLS = 2
"""Number of polls after which a job is done."""
_WORD = re.compile(r"\w+")

CONFIG = """\
name: spaces
type: hosted
apiVersion: v2
connection: {baseUrl: "URL"}
auth: {type: bearer, envVar: SPACES_KEY}
setup:
  - {method: POST, path: /spaces, body: {name: "$.scope"}, accept: [409], repeatable: true}
  - {method: GET, path: /spaces, query: {name: "$.scope"}, captures: {spaceId: "$.space.id"}, repeatable: true}
endpoints:
  add:
    method: POST
    path: /spaces/${spaceId}/documents
    unit: message
    body: {id: "$.documentId", text: "$.content", at: "$.date", metadata: "$.metadata"}
    wait: {method: GET, path: "/jobs/${pollId}", id: $.job, status: $.state, done: [done], failed: [lost], interval: 1}
  search:
    method: POST
    path: /spaces/${spaceId}/search
    body: {q: "$.query", top: "$.limit"}
    response:
      results: $.hits
      contentField: $.text
      scoreField: $.relevance
      idField: $.id
      sourcesField: $.metadata.documentId
  clear:
    method: DELETE
    path: /spaces/${spaceId}
    wait: {method: GET, path: "/jobs/${pollId}", id: $.job, status: $.state, done: [done], interval: 1}
  list:
    method: GET
    path: /spaces/${spaceId}/documents
    response: {results: $.documents, contentField: $.text, idField: $.id, sourcesField: $.metadata.documentId}
rateLimit: {retryDelayMs: 0}
"""

_POLLED = next(line for line in CONFIG.splitlines(keepends=True) if "failed: [lost]" in line)
PROBED = CONFIG.replace(_POLLED, "    wait: {mode: probe, interval: 1}\n").replace(
    CONFIG[CONFIG.rindex("    wait: ") : CONFIG.index("  list:")], ""
)
BATCHED = (
    CONFIG.replace(
        "  search:\n",
        """\
  batchAdd:
    method: POST
    path: /spaces/${spaceId}/batch
    document: {id: "$.documentId", text: "$.content", metadata: "$.metadata"}
    body: {documents: "$.documents"}
    wait: {method: GET, path: "/jobs/${pollId}", id: "$.jobs[*]", status: $.state, done: [done], interval: 1}
  search:
""",
    ).replace("rateLimit: {retryDelayMs: 0}", "rateLimit: {retryDelayMs: 0, batchDelayMs: 0}")
    + "limits: {batchSize: 3}\ncapabilities: {unordered: true}\n"
)


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Space:
    id: str
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """All accepted documents, by id; adding one again replaces it."""
    found: set[str] = field(default_factory=set)
    """Ids of indexed documents."""


@dataclass
class Job:
    finish: Callable[[], None]
    left: int = POLLS
    fails: bool = False


class MemoryService:
    """Its `behave` is a behaviour of the stub server."""

    def __init__(self, *, reports_status: bool = True) -> None:
        """With `reports_status`, the service reports a status; otherwise, only a search shows whether it is done."""
        self._reports_status = reports_status
        self.spaces: dict[str, Space] = {}
        """By name."""
        self.failing: set[str] = set()
        """Texts that are accepted and fail later."""
        self._jobs: list[Job] = []
        self._made = 0

    async def behave(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        try:
            return web.json_response(self._answer(call), status=202 if call.method == "POST" else 200)
        except Refused as refused:
            return web.json_response({"error": str(refused)}, status=refused.status)

    def _answer(self, call: Call) -> Any:
        if call.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "who are you?")
        match (call.method, *call.path.strip("/").split("/")):
            case ("POST", "spaces"):
                return self._made_space(_fields(call, "name")["name"])
            case ("GET", "spaces"):
                return {"space": {"id": self._space_by_name(call.query["name"]).id}}
            case ("POST", "spaces", id, "documents"):
                return {"job": self._stored(self._space(id), _fields(call, "id", "text", "at", "metadata"))}
            case ("POST", "spaces", id, "batch"):
                space = self._space(id)
                return {"jobs": [self._stored(space, document) for document in _fields(call, "documents")["documents"]]}
            case ("GET", "spaces", id, "documents"):
                return {"documents": list(self._space(id).documents.values())}
            case ("POST", "spaces", id, "search"):
                query_words = _fields(call, "q", "top")
                hits = _best(self._space(id), query_words["q"], query_words["top"])
                if not self._reports_status:
                    for job in range(len(self._jobs)):
                        self._asked_about(job)
                return {"hits": hits}
            case ("DELETE", "spaces", id):
                space = self._space(id)
                name = next(name for name, one in self.spaces.items() if one is space)
                job = self._job(lambda: self._removed(name, space))
                if not self._reports_status:
                    self._removed(name, space)
                return {"job": job}
            case ("GET", "jobs", id) if self._reports_status:
                if id not in map(str, range(len(self._jobs))):
                    raise Refused(404, "no such job")
                return {"state": self._asked_about(int(id))}
        raise Refused(404, f"no {call.method} {call.path}")

    def _made_space(self, name: str) -> Any:
        if name in self.spaces:
            raise Refused(409, "exists")
        self._made += 1
        self.spaces[name] = Space(f"sp #{self._made}")
        return {}

    def _space_by_name(self, name: str) -> Space:
        if name not in self.spaces:
            raise Refused(404, "no such space")
        return self.spaces[name]

    def _space(self, id: str) -> Space:
        for space in self.spaces.values():
            if space.id == id:
                return space
        raise Refused(404, "no such space")

    def _stored(self, space: Space, document: dict[str, Any]) -> str:
        if not document["text"].strip():
            raise Refused(400, "nothing to remember")
        space.documents[document["id"]] = document
        return self._job(lambda: space.found.add(document["id"]), fails=document["text"] in self.failing)

    def _removed(self, name: str, space: Space) -> None:
        if self.spaces.get(name) is space:
            del self.spaces[name]

    def _job(self, finish: Callable[[], None], *, fails: bool = False) -> str:
        self._jobs.append(Job(finish, fails=fails))
        return str(len(self._jobs) - 1)

    def _asked_about(self, id: int) -> str:
        job = self._jobs[id]
        job.left -= 1
        if job.left > 0:
            return "queued"
        if job.fails:
            return "lost"
        job.finish()
        return "done"


def _fields(call: Call, *known: str) -> dict[str, Any]:
    sent: dict[str, Any] = call.json
    unknown = sent.keys() - set(known)
    if unknown:
        raise Refused(400, f"unknown fields: {sorted(unknown)}")
    return sent


def _best(space: Space, query: str, top: int) -> list[dict[str, Any]]:
    query_words = _words(query)
    held = sorted((space.documents[id] for id in space.found), key=lambda document: str(document["text"]))
    hits = [{**document, "relevance": len(query_words & _words(document["text"]))} for document in held]
    return sorted((hit for hit in hits if hit["relevance"]), key=lambda hit: -hit["relevance"])[:top]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
