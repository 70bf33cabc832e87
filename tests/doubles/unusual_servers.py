"""Two memory services of unusual shape, each with the YAML that a user writes for it.

`Archive` returns results in pages of three, by cursor, and indexes each document in a job of its own. `Vault` wants a
login, whose token is valid for three seconds; a second is over with each request that uses it, so that tests do not
wait. With `one_token`, its tokens do not expire, but only the newest one is valid.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.doubles.stub import Call

PAGE_SIZE = 3
VALID_SECONDS = 3
PASSWORD = "sentinel-password-77c1"

ARCHIVE = """\
name: archive
type: hosted
connection: {baseUrl: "URL"}
endpoints:
  add:
    unit: message
    method: POST
    path: /archives/${scope}/records
    body: {records: [{ref: "$.documentId", text: "$.content"}]}
    wait: {id: "$.jobs[*]", method: GET, path: "/jobs/${pollId}", status: $.state, done: [ready], failed: [broken],
      interval: 1}
  batchAdd:
    method: POST
    path: /archives/${scope}/records
    document: {ref: "$.documentId", text: "$.content"}
    body: {records: "$.documents"}
    wait: {id: "$.jobs[*]", perDocument: true, method: GET, path: "/jobs/${pollId}", query: {ref: "$.documentId"},
      status: $.state, done: [ready], failed: [broken], interval: 1}
  search:
    method: POST
    path: /archives/${scope}/query
    body: {words: "$.query", after: "$.cursor", count: "$.limit"}
    pages: {by: cursor, next: $.page.next}
    response: {results: $.page.items, contentField: $.text, scoreField: $.score, idField: $.ref, sourcesField: $.ref}
  list:
    method: GET
    path: /archives/${scope}/records
    query: {skip: "$.offset"}
    pages: {by: offset, more: $.more}
    response: {results: $.items, contentField: $.text, idField: $.ref, sourcesField: $.ref}
  clear: {method: DELETE, path: "/archives/${scope}", accept: [404]}
limits: {batchMessages: 5, batchBytes: 4000}
capabilities: {unordered: true}
rateLimit: {batchDelayMs: 0, retryDelayMs: 0}
"""

VAULT = """\
name: vault
type: hosted
connection: {baseUrl: "URL"}
setup:
  - method: POST
    path: /login
    body: {user: bench, password: "${VAULT_PASSWORD}"}
    captures: {pass: {path: $.access, secret: true}}
endpoints:
  add:
    unit: message
    method: PUT
    path: /notes/${scope}/${documentId}
    headers: {X-Pass: "${pass}"}
    body: {text: "$.content"}
  search:
    method: GET
    path: /notes/${scope}
    headers: {X-Pass: "${pass}"}
    query: {q: "$.query", page: "$.page"}
    pages: {by: offset, firstPage: 0}
    response: {results: $.notes, contentField: $.text, scoreField: $.score, idField: $.id, sourcesField: $.id}
  clear: {method: DELETE, path: "/notes/${scope}", headers: {X-Pass: "${pass}"}, accept: [404]}
rateLimit: {retryDelayMs: 0, concurrency: 1}
"""
RENEWED = VAULT.replace("secret: true}", "secret: true, expiresIn: $.expires_in}")


@dataclass
class Archive:
    """Its `behave` is a behaviour of the stub server."""

    records: dict[str, dict[str, str]] = field(default_factory=dict)
    """Texts by reference, by archive."""
    ready: set[tuple[str, str]] = field(default_factory=set)
    jobs: list[tuple[str, str]] = field(default_factory=list)
    polls: Counter[int] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    """How often each reference was stored."""

    async def behave(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        match (call.method, *call.path.strip("/").split("/")):
            case ("POST", "archives", name, "records"):
                return web.json_response({"jobs": self._store(name, call.json["records"])}, status=202)
            case ("GET", "jobs", id):
                return web.json_response({"state": self._poll(int(id), call.query.get("ref"))})
            case ("POST", "archives", name, "query"):
                found = _matching(self._searchable(name), call.json["words"])
                return web.json_response({"page": _cursor_page(found, call.json.get("after"))})
            case ("GET", "archives", name, "records"):
                items = [{"ref": ref, "text": text} for ref, text in self.records.get(name, {}).items()]
                start = int(call.query["skip"])
                page = items[start : start + PAGE_SIZE]
                return web.json_response({"items": page, "more": start + PAGE_SIZE < len(items)})
            case ("DELETE", "archives", name) if name in self.records:
                del self.records[name]
                return web.json_response({})
        return web.json_response({"problem": "no such thing"}, status=404)

    def _store(self, name: str, records: list[dict[str, str]]) -> list[int]:
        for record in records:
            self.records.setdefault(name, {})[record["ref"]] = record["text"]
            self.added[record["ref"]] += 1
            self.jobs.append((name, record["ref"]))
        return list(range(len(self.jobs) - len(records), len(self.jobs)))

    def _poll(self, id: int, ref: str | None) -> str:
        """A job is ready after two polls; one for another document than its own is broken."""
        self.polls[id] += 1
        if ref is not None and ref != self.jobs[id][1]:
            return "broken"
        if self.polls[id] < 2:
            return "working"
        self.ready.add(self.jobs[id])
        return "ready"

    def _searchable(self, name: str) -> dict[str, str]:
        return {ref: text for ref, text in self.records.get(name, {}).items() if (name, ref) in self.ready}


@dataclass
class Vault:
    """Its `behave` is a behaviour of the stub server."""

    notes: dict[str, dict[str, str]] = field(default_factory=dict)
    stored: Counter[str] = field(default_factory=Counter)
    logins: Counter[str] = field(default_factory=Counter)
    """The age of each token in seconds."""
    refused: int = 0
    """Number of requests with an expired token."""
    expires_in: Any = VALID_SECONDS
    one_token: bool = False

    async def behave(self, _: web.BaseRequest, call: Call) -> web.StreamResponse:
        if call.path == "/login":
            if call.json["password"] != PASSWORD:
                return web.json_response({"problem": "password"}, status=401)
            token = f"sentinel-pass-{len(self.logins):06}"
            self.logins[token] = 0
            return web.json_response({"access": token, "expires_in": self.expires_in})
        token = call.headers.get("X-Pass", "")
        self.logins[token] += 1
        newest = [*self.logins][-1]
        if token != newest if self.one_token else self.logins[token] > VALID_SECONDS:
            self.refused += 1
            return web.json_response({"problem": f"{token} has expired"}, status=401)
        match (call.method, *call.path.strip("/").split("/")):
            case ("PUT", "notes", name, id):
                self.notes.setdefault(name, {})[id] = call.json["text"]
                self.stored[id] += 1
                return web.json_response({})
            case ("GET", "notes", name):
                found = _matching(self.notes.get(name, {}), call.query["q"])
                start = PAGE_SIZE * int(call.query["page"])
                return web.json_response({"notes": found[start : start + PAGE_SIZE]})
            case ("DELETE", "notes", name) if name in self.notes:
                del self.notes[name]
                return web.json_response({})
        return web.json_response({"problem": "no such thing"}, status=404)


def _matching(texts: dict[str, str], query: str) -> list[dict[str, Any]]:
    words = set(re.findall(r"\w+", query.lower()))
    rows = [
        {"ref": ref, "id": ref, "text": text, "score": len(words & set(re.findall(r"\w+", text.lower())))}
        for ref, text in texts.items()
    ]
    return sorted((row for row in rows if row["score"]), key=lambda row: (-int(str(row["score"])), row["text"]))


def _cursor_page(found: list[dict[str, Any]], after: str | None) -> dict[str, Any]:
    start = 0 if after is None else int(after.removeprefix("from-"))
    page: dict[str, Any] = {"items": found[start : start + PAGE_SIZE]}
    if start + PAGE_SIZE < len(found):
        page["next"] = f"from-{start + PAGE_SIZE}"
    return page
