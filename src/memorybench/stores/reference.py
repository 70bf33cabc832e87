"""The reference memory: what a store that keeps itself clean can do, in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memorybench.core.errors import Refused, ServiceError
from memorybench.core.stores import Capability, Curation, NewFact, Proposal, StoredFact
from memorybench.core.trials import Subject
from memorybench.secrets.credentials import credential_in
from memorybench.text.words import content_words

from .curator import proposals
from .facts_file import open_facts

TRUST = 0.5
"""Of a fact that nobody vouched for."""
_FIELDS = "id, content, category, source, trust, retrieval_count"
_TOKENIZER = "porter unicode61 remove_diacritics 2"


class ReferenceStore:
    """Opened by `open_reference`.

    Statements run where they are called: they take about a millisecond, on a file that one agent has to itself.
    """

    capabilities: frozenset[Capability] = frozenset(
        {
            "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history",
            "files", "sql",
        }
    )  # fmt: skip

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        self.subject = subject
        self._db = db

    async def remember(self, user: str, fact: NewFact) -> str:
        """A text that is held already is not held twice: its fact gets the new pins, and keeps its id."""
        content = _one_line(fact.content)
        category, source = (text and _storable(text) for text in (fact.category, fact.source))
        self._check(content, category, source)
        with self._changing() as db:
            held = db.execute("SELECT id FROM facts WHERE user = ? AND content = ?", (user, content)).fetchone()
            id = held[0] if held else self._insert(user, content)
            db.execute(
                "UPDATE facts SET category = ifnull(?, category), source = ifnull(?, source),"
                " trust = ifnull(?, trust), retrieval_count = ifnull(?, retrieval_count) WHERE id = ?",
                (category, source, fact.trust, fact.retrieval_count, id),
            )
        return str(id)

    async def update(self, user: str, id: str, content: str) -> str:
        """Where another fact says this already, that one stands for both."""
        content = _one_line(content)
        self._check(content)
        with self._changing() as db:
            before = self._held(user, id).content
            if content == before:
                return id
            twin = db.execute("SELECT id FROM facts WHERE user = ? AND content = ?", (user, content)).fetchone()
            if twin is None:
                now = _time()
                db.execute("INSERT INTO history VALUES (?, ?, ?, ?)", (id, user, before, now))
                db.execute("UPDATE facts SET content = ?, updated = ? WHERE id = ?", (content, now, id))
                return id
            self._delete(user, id)
        self._sweep()
        return str(twin[0])

    async def forget(self, user: str, id: str) -> None:
        with self._changing():
            self._delete(user, id)
        self._sweep()

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        with self._changing() as db:
            ids = [hit.id for hit in _ranked(self._facts(user), _storable(query))][: max(limit, 0)]
            db.executemany("UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE id = ?", [(id,) for id in ids])
            return [self._held(user, id) for id in ids]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        proposed = proposals(self._facts(user))
        if apply and proposed:
            with self._changing():
                for proposal in proposed:
                    self._carry_out(user, proposal)
            self._sweep()
        return Curation(applied=apply, proposals=tuple(proposed))

    async def history(self, user: str) -> Sequence[str]:
        return [row[0] for row in self._rows("SELECT content FROM history WHERE user = ? ORDER BY rowid", user)]

    def _check(self, *texts: str | None) -> None:
        """Each text by itself, and all put together: a key may be split over content and metadata."""
        said = [text for text in texts if text]
        if not said or not texts[0]:
            raise Refused("a fact without words is not kept")
        for text in (*said, "".join(said), "".join(reversed(said))):
            kind = credential_in(text)
            if kind is not None:
                raise Refused(f"this holds what looks like a secret ({kind}); secrets are not kept")

    def _insert(self, user: str, content: str) -> int | None:
        now = _time()
        row = self._db.execute(
            "INSERT INTO facts (user, content, trust, retrieval_count, created, updated) VALUES (?, ?, ?, 0, ?, ?)",
            (user, content, TRUST, now, now),
        )
        return row.lastrowid

    def _delete(self, user: str, id: str) -> None:
        self._held(user, id)
        self._db.execute("DELETE FROM facts WHERE id = ?", (id,))

    def _carry_out(self, user: str, proposal: Proposal) -> None:
        """A fact that others are merged into is as trusted as the most trusted, and was retrieved as often as all."""
        gone = [self._held(user, id) for id in proposal.ids]
        if proposal.action == "merge" and proposal.kept is not None:
            trust = max(fact.trust or 0.0 for fact in gone)
            count = sum(fact.retrieval_count or 0 for fact in gone)
            self._db.execute(
                "UPDATE facts SET trust = max(trust, ?), retrieval_count = retrieval_count + ? WHERE id = ?",
                (trust, count, proposal.kept),
            )
        for fact in gone:
            self._delete(user, fact.id)

    def _held(self, user: str, id: str) -> StoredFact:
        rows = self._rows(f"SELECT {_FIELDS} FROM facts WHERE user = ? AND id = ?", user, id)  # noqa: S608 - our own columns
        if not rows:
            raise ServiceError(f"no fact has the id {id}")
        return _fact(rows[0])

    def _facts(self, user: str) -> list[StoredFact]:
        """Oldest first."""
        rows = self._rows(f"SELECT {_FIELDS} FROM facts WHERE user = ? ORDER BY id", user)  # noqa: S608 - our own columns
        return [_fact(row) for row in rows]

    def _rows(self, query: str, *values: str) -> list[Any]:
        with _failing_as_service():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """All of it, or nothing: also where the process is killed in the middle."""
        with _failing_as_service():
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield self._db

    def _sweep(self) -> None:
        """Writes the file anew: a page may still hold a copy of a row that was moved before it was deleted."""
        with _failing_as_service():
            self._db.execute("VACUUM")

    # last, lest its name hide the type in the annotations above
    async def list(self, user: str) -> Sequence[StoredFact]:
        return self._facts(user)


def _ranked(facts: Sequence[StoredFact], query: str) -> list[StoredFact]:
    """Best first. The index is made for the question: none has to be kept in step, and none keeps what is deleted."""
    asked = content_words(query)
    if not asked:
        return []
    index = sqlite3.connect(":memory:")
    try:
        index.execute(f"CREATE VIRTUAL TABLE said USING fts5(content, content='', tokenize='{_TOKENIZER}')")
        index.executemany(
            "INSERT INTO said (rowid, content) VALUES (?, ?)", [(n, fact.content) for n, fact in enumerate(facts)]
        )
        # quoted, each word is a string to FTS5 and never an operator; its bm25() is the lower the better
        matched = index.execute(
            "SELECT rowid, bm25(said) FROM said WHERE said MATCH ?", (" OR ".join(f'"{word}"' for word in asked),)
        )
        ranks = sorted((rank, -(facts[row].trust or 0.0), row) for row, rank in matched)
    finally:
        index.close()
    return [facts[row] for *_, row in ranks]


def _fact(row: tuple[int, str, str | None, str | None, float, int]) -> StoredFact:
    id, content, category, source, trust, count = row
    return StoredFact(id=str(id), content=content, category=category, source=source, trust=trust, retrieval_count=count)


@contextmanager
def _failing_as_service() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise ServiceError(f"memory: {error}") from error


def _one_line(text: str) -> str:
    return " ".join(_storable(text).split())


def _storable(text: str) -> str:
    """Without lone surrogates, which SQLite can not encode, and without NUL, at which others stop reading."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@asynccontextmanager
async def open_reference(
    folder: Path, *, name: str = "reference", kind: type[ReferenceStore] = ReferenceStore
) -> AsyncIterator[ReferenceStore]:
    """A session on the facts in `folder`, which is created where it is missing."""
    db = open_facts(folder)
    try:
        yield kind(Subject(role="store", name=name, settings={"tokenizer": _TOKENIZER}), db)
    finally:
        db.close()
