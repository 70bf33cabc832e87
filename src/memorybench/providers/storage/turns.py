"""Stored turns, and the base class of the providers that search them: bm25, dense, hybrid.

In a run, turns are kept in memory; if the process is killed, the resumed run adds them again from the dataset. They are
stored on disk only if their vectors cost money, or if the store is opened several times.

A store contains text, never an index: indexes are built per scope when it is searched, so that the word statistics of
one scope do not depend on another, and a crash cannot leave an index that disagrees with its turns.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from msgspec import Struct

from memorybench.core.contracts import Embedder, Receipt, Scope
from memorybench.core.conversation import Memory, Session
from memorybench.core.records import Record, digest
from memorybench.core.trials import Subject
from memorybench.providers.plugin import OpenContext

from .indexed import INDEX_THREADS, IndexedMemory, open_on_threads
from .sqlite_store import Format, SqliteStore


class StoredTurn(Struct):
    """A turn as the provider stores it."""

    session: str
    place: int
    """1-based position among the turns of its session, which include blank turns."""
    turn: str
    lead: str
    """Shown before `text`, but not searched: the date, and the role if the speaker has no name, such as
    `[2024-03-02] user: `."""
    text: str
    vector: bytes | None = None

    @property
    def memory_id(self) -> str:
        return f"{self.session}#{self.place}"

    @property
    def speaker(self) -> str:
        """The name of the speaker, with which `text` begins; "" if the speaker has no name."""
        return "" if self.lead.endswith(": ") else self.text.partition(": ")[0]

    def as_memory(self, score: float | None = None) -> Memory:
        sources = (self.session, self.turn)
        return Memory(id=self.memory_id, content=self.lead + self.text, score=score, sources=sources)


def stored_turns(session: Session) -> list[StoredTurn]:
    """Return the turns of a session in the form in which they are stored; blank turns are left out."""
    turns = []
    session_date = _date_text(session.at)
    for place, (id, turn) in enumerate(session.named_turns(), start=1):
        if turn.content.strip():
            date = _date_text(turn.at) if turn.at else session_date
            turns.append(
                StoredTurn(
                    session=session.id,
                    place=place,
                    turn=id,
                    lead=date if turn.speaker else f"{date}{turn.role}: ",
                    text=replace_surrogates(f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content),
                )
            )
    return turns


def _date_text(at: datetime | None) -> str:
    return f"[{at.date().isoformat()}] " if at else ""


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by question marks, because neither SQLite nor an embedder can encode them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class TurnStore(SqliteStore):
    format = Format(
        application=0x4D42746D,  # "MBtm"
        version=1,
        table_names=("turns",),
        tables=(
            """CREATE TABLE turns (
                scope TEXT NOT NULL,
                session TEXT NOT NULL,
                place INTEGER NOT NULL,
                turn TEXT NOT NULL,
                lead TEXT NOT NULL,
                said TEXT NOT NULL,
                vector BLOB,
                UNIQUE (scope, session, place)
            )""",
        ),
    )

    def replace(self, scope: str, session: str, turns: Sequence[StoredTurn]) -> None:
        """Store the turns of a session instead of those that an earlier add of the session stored."""
        with self.transaction() as cursor:
            cursor.execute("DELETE FROM turns WHERE scope = ? AND session = ?", (scope, session))
            cursor.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(scope, turn.session, turn.place, turn.turn, turn.lead, turn.text, turn.vector) for turn in turns],
            )

    def entries(self, scope: str) -> Sequence[StoredTurn]:
        """Return all turns of a scope, in an order that does not depend on when they were added."""
        with self.transaction() as cursor:
            rows = cursor.execute(
                "SELECT session, place, turn, lead, said, vector FROM turns WHERE scope = ? ORDER BY session, place",
                (scope,),
            )
            return [StoredTurn(*row) for row in rows]


class TurnLists:
    """A store of turns in memory, with the methods of TurnStore. Each scope must be used on one thread only."""

    def __init__(self) -> None:
        self.store_id = secrets.token_hex(16)
        self._scopes: dict[str, dict[str, Sequence[StoredTurn]]] = {}

    def replace(self, scope: str, session: str, turns: Sequence[StoredTurn]) -> None:
        self._scopes.setdefault(scope, {})[session] = turns

    def entries(self, scope: str) -> Sequence[StoredTurn]:
        return [turn for _, turns in sorted(self._scopes.get(scope, {}).items()) for turn in turns]

    def clear(self, scope: str) -> None:
        self._scopes.pop(scope, None)

    def close(self) -> None:
        """Do nothing: the turns are in memory only."""


class TurnSettings(Record):
    added_later: ClassVar[frozenset[str]] = frozenset()
    """The names of settings that earlier versions did not have."""

    def identity(self) -> dict[str, Any]:
        """Return the settings that are part of the provider's subject, which a resumed run must match.

        A setting in `added_later` is left out if it has its default, so that runs of older versions still match.
        """
        return self.model_dump(exclude=set(self.added_later - self._changed()))

    def _changed(self) -> set[str]:
        return {name for name, field in type(self).model_fields.items() if getattr(self, name) != field.default}


C = TypeVar("C", bound=TurnSettings)


class TurnMemory(IndexedMemory[StoredTurn, TurnStore | TurnLists], Generic[C]):
    """Base class of providers whose results are single turns."""

    name: ClassVar[str]
    settings_model: ClassVar[type[TurnSettings]] = TurnSettings
    constants: ClassVar[Mapping[str, Any]] = {}
    """Values that are part of the provider's subject like its settings, although users cannot set them."""

    def __init__(
        self,
        store: TurnStore | TurnLists,
        threads: Sequence[ThreadPoolExecutor],
        embedder: Embedder | None,
        settings: TurnSettings,
    ) -> None:
        self.settings = cast("C", settings)
        self.batch_size = None if isinstance(store, TurnLists) else 1
        store_id, identity = store.store_id, {**self.constants, **settings.identity()}
        if embedder is not None:
            # vectors of different embedders cannot be compared, so the store id depends on the embedder
            store_id = digest([store_id, embedder.subject.key])
            identity["embedder"] = embedder.subject.model_dump(mode="json")
        subject = Subject(role="provider", name=self.name, settings=identity)
        super().__init__(subject, store_id, store, threads, embedder)

    @classmethod
    @asynccontextmanager
    async def open(cls, context: OpenContext) -> AsyncIterator[Self]:
        embedder = await context.open_embedder() if cls.needs_embedder else None
        file = context.store_file if context.keep_on_disk else None
        async with cls.open_file(file, embedder, context.settings) as memory:
            yield memory

    @classmethod
    def open_file(
        cls, file: Path | None, embedder: Embedder | None = None, settings: TurnSettings | None = None
    ) -> AbstractAsyncContextManager[Self]:
        """Open the memories in the SQLite file `file`, which is created if it is missing. None: keep them in memory."""
        chosen = settings or cls.settings_model()
        open_store: Callable[[], TurnStore | TurnLists] = TurnLists if file is None else partial(TurnStore, file)
        return open_on_threads(
            cls.name,
            open_store,
            lambda store, threads: cls(store, threads, embedder, chosen),
            threads=INDEX_THREADS if file is None else 1,
        )

    async def add(self, scope: Scope, session: Session) -> Receipt:
        turns = await self._store_turns(scope, [session])
        return Receipt(ids=tuple(turn.memory_id for turn in turns))

    async def add_batch(self, scope: Scope, sessions: Sequence[Session]) -> Receipt:
        await self._store_turns(scope, sessions)
        return Receipt()  # without ids: those of hundreds of turns would only enlarge the journal

    async def _store_turns(self, scope: Scope, sessions: Sequence[Session]) -> Sequence[StoredTurn]:
        by_session = {session.id: stored_turns(session) for session in sessions}
        turns = [turn for one in by_session.values() for turn in one]
        if self._embedder is not None and turns:
            import numpy as np

            vectors = await self._embedder.embed([turn.text for turn in turns])
            for turn, vector in zip(turns, vectors, strict=True):
                turn.vector = np.asarray(vector, dtype=np.float32).tobytes()

        def change(store: TurnStore | TurnLists) -> None:
            for session, stored in by_session.items():
                store.replace(scope.name, session, stored)

        await self._change(scope.name, change)
        return turns
