"""Turns on disk: one SQLite file that any number of scopes share.

Kept is what was said, never an index of it: indexes are built per scope when it is searched, so that one scope's
word statistics never lean on another's, and a crash can not leave an index that disagrees with its turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memorybench.core.conversation import Memory, Session, Turn

from .store_file import Format, cut_off_log, incarnation_of, open_store_file

_FORMAT = Format(
    application=0x4D42746D,  # "MBtm"
    version=1,
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


@dataclass(frozen=True, slots=True)
class KeptTurn:
    session: str
    place: int
    """1-based, as the turn stood in its session."""
    turn: str
    lead: str
    """What a reader sees before `said` and a search does not: the date, and the role of a nameless speaker."""
    said: str
    vector: bytes | None = None

    @property
    def memory_id(self) -> str:
        return f"{self.session}#{self.place}"

    def as_memory(self, score: float | None = None) -> Memory:
        return Memory(
            id=self.memory_id,
            content=self.lead + self.said,
            score=score,
            sources=(self.session, self.turn),
        )


def kept_turns(session: Session) -> list[KeptTurn]:
    """The turns of a session that say something."""
    return [
        KeptTurn(
            session=session.id,
            place=place,
            turn=turn.id if turn.id is not None else f"{session.id}:{place}",
            lead=_lead(session, turn),
            said=storable(f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content),
        )
        for place, turn in enumerate(session.turns, start=1)
        if turn.content.strip()
    ]


def storable(text: str) -> str:
    """The text without lone surrogates, which neither SQLite nor an embedder can encode."""
    return text.encode("utf-8", "replace").decode()


def _lead(session: Session, turn: Turn) -> str:
    at = turn.at or session.at
    date = f"[{at.date().isoformat()}] " if at else ""
    return date if turn.speaker else f"{date}{turn.role}: "


class TurnStore:
    """Lives on the thread that opened it. What a method wrote survives a killed process when it has returned."""

    def __init__(self, file: Path) -> None:
        self._db = open_store_file(file, _FORMAT)
        self.store_id = incarnation_of(self._db)

    def replace(self, scope: str, session: str, turns: Sequence[KeptTurn]) -> None:
        """Whatever was kept of this session gives way, so that adding it again after a lost reply changes nothing."""
        with self._db:
            self._db.execute("DELETE FROM turns WHERE scope = ? AND session = ?", (scope, session))
            self._db.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(scope, kept.session, kept.place, kept.turn, kept.lead, kept.said, kept.vector) for kept in turns],
            )

    def turns(self, scope: str) -> list[KeptTurn]:
        """In an order that does not tell when they were added: a resumed ingest ranks ties as an unbroken one."""
        rows = self._db.execute(
            "SELECT session, place, turn, lead, said, vector FROM turns WHERE scope = ? ORDER BY session, place",
            (scope,),
        )
        return [KeptTurn(*row) for row in rows]

    def clear(self, scope: str) -> None:
        with self._db:
            self._db.execute("DELETE FROM turns WHERE scope = ?", (scope,))
        cut_off_log(self._db)

    def close(self) -> None:
        self._db.close()
