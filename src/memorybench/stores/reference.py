"""The reference memory store: facts in one SQLite file. It refuses credentials, and the file keeps no deleted text.

Scenarios may query its tables:

facts(id, user, content, category, source, trust, retrieval_count, created, updated)
history(fact, user, content, replaced)    earlier texts of updated facts; deleted with the fact
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memorybench.core.errors import BadInput, Refused, ServiceError
from memorybench.core.stores import Capability, Curation, NewFact, StoredFact
from memorybench.core.trials import Subject
from memorybench.secrets.credentials import cached_credential_in
from memorybench.text.words import content_words

from .curator import propose_changes

FILE = "memory.db"
DEFAULT_TRUST = 0.5
_APPLICATION_ID = 0x4D42686D  # "MBhm": distinguishes our files from those of other programs
_VERSION = 1
_BUSY_SECONDS = 30.0
"""Seconds to wait for another session that writes to the same file."""
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_TABLES = (
    # AUTOINCREMENT: the id of a deleted fact is never used again
    """CREATE TABLE facts (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        user TEXT NOT NULL,
        content TEXT NOT NULL,
        category TEXT,
        source TEXT,
        trust REAL NOT NULL,
        retrieval_count INTEGER NOT NULL,
        created TEXT NOT NULL,
        updated TEXT NOT NULL,
        UNIQUE (user, content)
    )""",
    """CREATE TABLE history (
        fact INTEGER NOT NULL REFERENCES facts (id) ON DELETE CASCADE,
        user TEXT NOT NULL,
        content TEXT NOT NULL,
        replaced TEXT NOT NULL
    )""",
)
_SELECT_FACTS = "SELECT id, content, category, source, trust, retrieval_count FROM facts WHERE user = ?"


class ReferenceStore:
    """The reference store. Opened by `open_reference`.

    SQL runs in the event loop, because a statement takes only about a millisecond.
    """

    capabilities: frozenset[Capability] = frozenset(
        {
            "update", "forget", "recall", "list", "curate", "trust", "retrieval_count", "category", "users", "history",
            "files", "sql", "get",
        }
    )  # fmt: skip

    def __init__(self, subject: Subject, db: sqlite3.Connection) -> None:
        self.subject = subject
        self._db = db

    async def remember(self, user: str, fact: NewFact) -> str:
        """Store a fact and return its id. If the user already has a fact with this text, update its other fields."""
        content = _normalize(fact.content)
        category, source = (text and _storable(text) for text in (fact.category, fact.source))
        await asyncio.to_thread(self._check_texts, content, category, source)
        with self._transaction() as db:
            id = self._find_id(user, content)
            if id is None:
                now = _now()
                id = db.execute(
                    "INSERT INTO facts (user, content, trust, retrieval_count, created, updated)"
                    " VALUES (?, ?, ?, 0, ?, ?)",
                    (user, content, DEFAULT_TRUST, now, now),
                ).lastrowid
            db.execute(
                "UPDATE facts SET category = ifnull(?, category), source = ifnull(?, source),"
                " trust = ifnull(?, trust), retrieval_count = ifnull(?, retrieval_count) WHERE id = ?",
                (category, source, fact.trust, fact.retrieval_count, id),
            )
        return str(id)

    async def update(self, user: str, id: str, content: str) -> str:
        """Change the text of a fact and return its id.

        If another fact has the new text already, delete the fact `id` and return the id of the other.
        """
        content = _normalize(content)
        await asyncio.to_thread(self._check_texts, content)
        with self._transaction() as db:
            previous = self._load_fact(user, id).content
            if content == previous:
                return id
            duplicate = self._find_id(user, content)
            if duplicate is None:
                now = _now()
                db.execute("INSERT INTO history VALUES (?, ?, ?, ?)", (id, user, previous, now))
                db.execute("UPDATE facts SET content = ?, updated = ? WHERE id = ?", (content, now, id))
                return id
            self._delete(user, id)
        self._vacuum()
        return str(duplicate)

    async def forget(self, user: str, id: str) -> None:
        with self._transaction():
            self._delete(user, id)
        self._vacuum()

    async def recall(self, user: str, query: str, limit: int) -> Sequence[StoredFact]:
        with self._transaction() as db:
            ids = [fact.id for fact in _search(self._load_facts(user), _storable(query))][: max(limit, 0)]
            db.executemany("UPDATE facts SET retrieval_count = retrieval_count + 1 WHERE id = ?", [(id,) for id in ids])
            return [self._load_fact(user, id) for id in ids]

    async def curate(self, user: str, *, apply: bool) -> Curation:
        """Propose merges and deletions of facts; with `apply`, perform them.

        A fact into which another is merged gets the higher trust of the two and the sum of their retrieval counts.
        """
        proposals = propose_changes(self._load_facts(user))
        if apply and proposals:
            with self._transaction() as db:
                for proposal in proposals:
                    removed = [self._load_fact(user, id) for id in proposal.ids]
                    if proposal.action == "merge" and proposal.kept is not None:
                        trust = max(fact.trust or 0.0 for fact in removed)
                        count = sum(fact.retrieval_count or 0 for fact in removed)
                        db.execute(
                            "UPDATE facts SET trust = max(trust, ?), retrieval_count = retrieval_count + ?"
                            " WHERE id = ?",
                            (trust, count, proposal.kept),
                        )
                    for fact in removed:
                        self._delete(user, fact.id)
            self._vacuum()
        return Curation(applied=apply, proposals=tuple(proposals))

    async def get(self, user: str, id: str) -> StoredFact | None:
        rows = self._query(f"{_SELECT_FACTS} AND id = ?", user, id)
        return _read_fact(rows[0]) if rows else None

    async def history(self, user: str) -> Sequence[str]:
        return [row[0] for row in self._query("SELECT content FROM history WHERE user = ? ORDER BY rowid", user)]

    def _check_texts(self, content: str, *others: str | None) -> None:
        """Raise Refused if the content is empty, or if one of the texts or the joined texts contain a credential."""
        if not content:
            raise Refused("the fact is empty")
        texts = [content, *filter(None, others)]
        for text in (*texts, "".join(texts), "".join(reversed(texts))):
            kind = cached_credential_in(text)
            if kind is not None:
                raise Refused(f"the fact contains a credential ({kind}); credentials are not stored")

    def _delete(self, user: str, id: str) -> None:
        self._load_fact(user, id)
        self._db.execute("DELETE FROM facts WHERE id = ?", (id,))

    def _find_id(self, user: str, content: str) -> int | None:
        row = self._db.execute("SELECT id FROM facts WHERE user = ? AND content = ?", (user, content)).fetchone()
        return row[0] if row else None

    def _load_fact(self, user: str, id: str) -> StoredFact:
        rows = self._query(f"{_SELECT_FACTS} AND id = ?", user, id)
        if not rows:
            raise ServiceError(f"unknown fact id {id}")
        return _read_fact(rows[0])

    def _load_facts(self, user: str) -> list[StoredFact]:
        """Return all facts of a user, oldest first."""
        return [_read_fact(row) for row in self._query(f"{_SELECT_FACTS} ORDER BY id", user)]

    def _query(self, query: str, *values: str) -> list[Any]:
        with _sqlite_errors():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _sqlite_errors():
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield self._db

    def _vacuum(self) -> None:
        """Rewrite the file without its unused pages, because they may contain copies of deleted rows."""
        with _sqlite_errors():
            self._db.execute("VACUUM")

    # last, because its name hides the type `list` in the annotations above
    async def list(self, user: str) -> Sequence[StoredFact]:
        return self._load_facts(user)


def _search(facts: Sequence[StoredFact], query: str) -> list[StoredFact]:
    """Return the facts that share a word with the query, best first.

    The index is built again for each query, so that it needs no updates and never contains deleted facts.
    """
    keywords = content_words(query)
    if not keywords:
        return []
    index = sqlite3.connect(":memory:")
    try:
        index.execute(f"CREATE VIRTUAL TABLE texts USING fts5(content, content='', tokenize='{_TOKENIZER}')")
        index.executemany(
            "INSERT INTO texts (rowid, content) VALUES (?, ?)", [(n, fact.content) for n, fact in enumerate(facts)]
        )
        # a quoted word is never an FTS5 operator; bm25() is lower for better matches
        matches = index.execute(
            "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?", (" OR ".join(f'"{word}"' for word in keywords),)
        )
        ranks = sorted((rank, -(facts[row].trust or 0.0), row) for row, rank in matches)
    finally:
        index.close()
    return [facts[row] for *_, row in ranks]


def _read_fact(row: tuple[int, str, str | None, str | None, float, int]) -> StoredFact:
    id, content, category, source, trust, count = row
    return StoredFact(id=str(id), content=content, category=category, source=source, trust=trust, retrieval_count=count)


@contextmanager
def _sqlite_errors() -> Iterator[None]:
    """Turn errors of SQLite that are raised in the context into ServiceError."""
    try:
        yield
    except sqlite3.Error as error:
        raise ServiceError(f"{FILE}: {error}") from error


def _normalize(text: str) -> str:
    """Return the text on one line, without repeated spaces."""
    return " ".join(_storable(text).split())


def _storable(text: str) -> str:
    """Replace the characters that cause problems: lone surrogates, which SQLite cannot encode, and NUL, at which some
    programs stop reading."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@asynccontextmanager
async def open_reference(
    folder: Path, *, name: str = "reference", kind: type[ReferenceStore] = ReferenceStore
) -> AsyncIterator[ReferenceStore]:
    """Open the reference store in `folder`, which is created if it is missing."""
    with closing(_open_file(folder)) as db:
        yield kind(Subject(role="store", name=name, settings={"tokenizer": _TOKENIZER}), db)


def _open_file(folder: Path) -> sqlite3.Connection:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / FILE
    try:
        # created here and not by SQLite, so that only its owner can read it
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(file, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            _prepare_tables(db, file)
        except BaseException:
            db.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise _unusable(file, str(error)) from error
    return db


def _prepare_tables(db: sqlite3.Connection, file: Path) -> None:
    """Create the tables of a new file. Raise BadInput if an existing file is of another program or version."""
    # The rollback journal stays on: it is deleted after each transaction, while a write-ahead log would retain
    # deleted text. Without syncs, a killed process loses nothing; only a power cut does.
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("BEGIN IMMEDIATE")  # two sessions may open a new file at the same time
    with db:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            for statement in _TABLES:
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_VERSION}")
        elif application != _APPLICATION_ID:
            raise _unusable(file, "the file is a database of another program")
        elif version != _VERSION:
            raise _unusable(file, f"the file has format {version}; this version of memorybench reads format {_VERSION}")


def _unusable(file: Path, problem: str) -> BadInput:
    return BadInput(
        str(file),
        problem,
        expected="a memory store of memorybench, or a path without a file",
        remedy="use another folder",
    )
