"""A small memory server: what a memory system must be able to do, and nothing else. Python and SQLite alone.

    python server.py --port 8765 --data ./memories.db

| request | body or query | answer |
|---|---|---|
| POST /memories | scope, id, text, metadata (an object, optional) | 201 {id, status}; the same id again replaces |
| GET /memories/ID | ?scope= | {id, status}: stored, or pending |
| GET /memories | ?scope= | {memories: [{id, text, metadata}]}, the oldest first |
| POST /search | scope, query, limit (1 to 1000) | {results: [{id, text, metadata, score}]}, the best first |
| DELETE /memories | ?scope= | {deleted: how many} |
| GET /health | | {status: ok} |

All else is refused with 4xx and {error}. With `--indexing when-asked` it answers an add with 202 and `pending`, as
services do that index later: a memory is searchable from the second time on that its status is asked for. A clock would
do the same less predictably.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import sqlite3
import sys
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LARGEST_BODY = 4 * 2**20
LONGEST_ID = 200
LARGEST_LIMIT = 1000
STATUS_REQUESTS_UNTIL_STORED = 2
K1, B = 1.2, 0.75
"""BM25 as usual: how soon a repeated word stops counting, and how much a long text is held back."""

_TABLES = """
CREATE TABLE IF NOT EXISTS memories (
    place INTEGER PRIMARY KEY, scope TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL,
    length INTEGER NOT NULL, asked INTEGER NOT NULL DEFAULT 0, stored INTEGER NOT NULL, UNIQUE (scope, id)
);
CREATE TABLE IF NOT EXISTS words (
    scope TEXT NOT NULL, word TEXT NOT NULL, place INTEGER NOT NULL, times INTEGER NOT NULL,
    PRIMARY KEY (scope, word, place)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS words_of_a_memory ON words (place);
"""


class Refused(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class Memories:
    """Texts by scope and id, found by their words. Each scope is ranked by its own statistics: none sees another."""

    def __init__(self, file: str, at_once: bool) -> None:
        self._at_once = at_once
        self._lock = threading.Lock()  # one connection, used by the thread of each request in turn
        self._db = sqlite3.connect(file, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.executescript(_TABLES)

    def add(self, scope: str, id: str, text: str, metadata: dict[str, Any]) -> bool:
        """Whether it is searchable yet."""
        words = Counter(_words(text))
        with self._lock, self._db:
            self._db.execute(
                "DELETE FROM words WHERE place = (SELECT place FROM memories WHERE scope = ? AND id = ?)", (scope, id)
            )
            [place] = self._db.execute(
                "INSERT INTO memories (scope, id, text, metadata, length, stored) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (scope, id) DO UPDATE SET text = excluded.text, metadata = excluded.metadata,"
                " length = excluded.length, stored = excluded.stored, asked = 0 RETURNING place",
                (scope, id, text, json.dumps(metadata), words.total(), self._at_once),
            ).fetchone()
            self._db.executemany(
                "INSERT INTO words VALUES (?, ?, ?, ?)", [(scope, word, place, times) for word, times in words.items()]
            )
        return self._at_once

    def ask(self, scope: str, id: str) -> bool | None:
        """Whether it is searchable; None: there is no such memory."""
        with self._lock, self._db:
            row = self._db.execute(
                "UPDATE memories SET asked = asked + 1, stored = stored OR asked + 1 >= ? WHERE scope = ? AND id = ?"
                " RETURNING stored",
                (STATUS_REQUESTS_UNTIL_STORED, scope, id),
            ).fetchone()
        return None if row is None else bool(row[0])

    def all(self, scope: str) -> list[dict[str, Any]]:
        with self._lock:
            rows = self._db.execute(
                "SELECT id, text, metadata FROM memories WHERE scope = ? AND stored ORDER BY place", (scope,)
            ).fetchall()
        return [{"id": id, "text": text, "metadata": json.loads(metadata)} for id, text, metadata in rows]

    def search(self, scope: str, query: str, limit: int) -> list[dict[str, Any]]:
        with self._lock:
            scores = self._scores(scope, dict.fromkeys(_words(query)))
            worst = sorted(scores.values(), reverse=True)[:limit][-1:]
            found = [
                (
                    score,
                    *self._db.execute("SELECT text, id, metadata FROM memories WHERE place = ?", (place,)).fetchone(),
                )
                for place, score in scores.items()
                if score >= worst[0]
            ]
        # equals are ordered by their text: in which order they were added makes no difference
        found.sort(key=lambda one: (-one[0], one[1], one[2]))
        return [
            {"id": id, "text": text, "metadata": json.loads(metadata), "score": score}
            for score, text, id, metadata in found[:limit]
        ]

    def _scores(self, scope: str, words: dict[str, None]) -> dict[int, float]:
        """BM25 (Robertson and Zaragoza 2009) of each memory of the scope that holds a word of the query."""
        count, mean = self._db.execute(
            "SELECT count(*), avg(length) FROM memories WHERE scope = ? AND stored", (scope,)
        ).fetchone()
        scores: defaultdict[int, float] = defaultdict(float)
        for word in words:
            holders = self._db.execute(
                "SELECT place, times, length FROM words JOIN memories USING (place)"
                " WHERE words.scope = ? AND word = ? AND stored",
                (scope, word),
            ).fetchall()
            rarity = math.log(1 + (count - len(holders) + 0.5) / (len(holders) + 0.5))
            for place, times, length in holders:
                scores[place] += rarity * times * (K1 + 1) / (times + K1 * (1 - B + B * length / mean))
        return scores

    def clear(self, scope: str) -> int:
        with self._lock, self._db:
            self._db.execute("DELETE FROM words WHERE scope = ?", (scope,))
            return self._db.execute("DELETE FROM memories WHERE scope = ?", (scope,)).rowcount

    def close(self) -> None:
        self._db.close()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


class Handler(BaseHTTPRequestHandler):
    memories: Memories
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go out as two packets, and the second must not wait
    timeout = 60

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        try:
            status, answer = self._reply()
        except Refused as refused:
            status, answer = refused.status, {"error": str(refused)}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _reply(self) -> tuple[int, dict[str, Any]]:
        content = self._content()  # read in any case: the next request begins behind it
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        match self.command, [unquote(part) for part in url.path.split("/")[1:]]:
            case "GET", ["health"]:
                return 200, {"status": "ok"}
            case "POST", ["memories"]:
                added = _Fields(_object(content), ("scope", "id", "text", "metadata"))
                id = added.name("id")
                stored = self.memories.add(added.name("scope"), id, added.text("text"), added.object("metadata"))
                return (201, _status(id, stored)) if stored else (202, _status(id, stored))
            case "GET", ["memories"]:
                return 200, {"memories": self.memories.all(_scope(query))}
            case "DELETE", ["memories"]:
                return 200, {"deleted": self.memories.clear(_scope(query))}
            case "GET", ["memories", id]:
                known = self.memories.ask(_scope(query), id)
                if known is None:
                    raise Refused(404, "no such memory")
                return 200, _status(id, known)
            case "POST", ["search"]:
                asked = _Fields(_object(content), ("scope", "query", "limit"))
                found = self.memories.search(asked.name("scope"), asked.text("query"), asked.limit())
                return 200, {"results": found}
        raise Refused(404, "no such request")

    def _content(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            raise Refused(411, "say the length of the body")
        if int(length) > LARGEST_BODY:
            self.close_connection = True
            raise Refused(413, f"the body is larger than {LARGEST_BODY} bytes")
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: Any) -> None:
        """What is asked and answered is nobody's business but the client's."""


class _Fields:
    """The fields of a body, each checked as it is taken."""

    def __init__(self, body: dict[str, Any], known: tuple[str, ...]) -> None:
        unknown = sorted(set(body) - set(known))
        if unknown:
            raise Refused(400, f"unknown field {unknown[0]!r}; known are {', '.join(known)}")
        self._body = body

    def name(self, field: str) -> str:
        return _name(self._body.get(field), field)

    def text(self, field: str) -> str:
        return _text(self._body.get(field), field)

    def object(self, field: str) -> dict[str, Any]:
        value = self._body.get(field, {})
        if not isinstance(value, dict):
            raise Refused(400, f"{field} must be an object")
        return value

    def limit(self) -> int:
        value = self._body.get("limit")
        if type(value) is not int or not 1 <= value <= LARGEST_LIMIT:
            raise Refused(400, f"limit must be a number from 1 to {LARGEST_LIMIT}")
        return value


def _object(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "the body must be an object")
    return body


def _scope(query: dict[str, list[str]]) -> str:
    if set(query) != {"scope"} or len(query["scope"]) != 1:
        raise Refused(400, "the query must be ?scope=…, and nothing else")
    return _name(query["scope"][0], "scope")


def _name(value: Any, field: str) -> str:
    if not 1 <= len(_text(value, field)) <= LONGEST_ID:
        raise Refused(400, f"{field} must be a text of 1 to {LONGEST_ID} characters")
    return str(value)


def _text(value: Any, field: str) -> str:
    # half a surrogate pair is possible in JSON and in no file
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise Refused(400, f"{field} must be a text")
    return value


def _status(id: str, stored: bool) -> dict[str, Any]:
    return {"id": id, "status": "stored" if stored else "pending"}


def main() -> None:
    parser = argparse.ArgumentParser(description="A small memory server.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765, help="0: any that is free; it is printed")
    parser.add_argument("--data", default="memories.db", help="SQLite file, made where it is missing")
    parser.add_argument("--indexing", choices=["at-once", "when-asked"], default="at-once")
    args = parser.parse_args()
    memories = Handler.memories = Memories(args.data, at_once=args.indexing == "at-once")
    # as the first process of a container it would not hear of SIGTERM otherwise
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ThreadingHTTPServer((args.host, args.port), Handler) as server:
        server.daemon_threads = True  # else an idle connection would hold up the end
        print(f"listening on http://{args.host}:{server.server_address[1]}", flush=True)
        try:
            with suppress(KeyboardInterrupt):
                server.serve_forever()
        finally:
            memories.close()


if __name__ == "__main__":
    main()
