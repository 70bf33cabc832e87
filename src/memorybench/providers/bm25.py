"""Lexical search: BM25 by SQLite's FTS5 over stemmed words, one index per scope."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from memorybench.text.words import content_words, space_ideographs

from .turn_memory import Asked, Hit, TurnMemory, open_turn_memory
from .turn_store import KeptTurn

AROUND_WORDS = 60
AROUND_WEIGHT = 0.5
"""An answer seldom repeats the words of its question, so a turn is also found by the end of the turn before it and by
the start of the turn after it; cut, lest a short turn drown between two long ones.

Tuned with perf/tune_embedded.py, on LoCoMo (recall@10 of turns: 0.730, without neighbours 0.631) and LongMemEval mixed
(recall_any@5 of sessions: 0.978, without 0.972). A weight of 0.3 or cuts of 20 and 80 words change neither by 0.01.
"""
_TOKENIZER = "porter unicode61 remove_diacritics 2"


class LexicalIndex:
    """Lives on the thread that built it."""

    def __init__(
        self, turns: Sequence[KeptTurn], *, around_words: int = AROUND_WORDS, around_weight: float = AROUND_WEIGHT
    ) -> None:
        self._around_weight = around_weight
        self._db = sqlite3.connect(":memory:")
        # without content: the turns themselves are kept elsewhere
        self._db.execute(f"CREATE VIRTUAL TABLE spoken USING fts5(said, around, content='', tokenize='{_TOKENIZER}')")
        self._db.executemany("INSERT INTO spoken (rowid, said, around) VALUES (?, ?, ?)", _indexed(turns, around_words))

    def best(self, asked: Asked, limit: int) -> Sequence[Hit]:
        return self.matches(asked.text, limit)

    def matches(self, text: str, limit: int | None = None) -> Sequence[Hit]:
        """The turns that share a word with the text, best first. A text of stop words alone is taken as it stands."""
        telling = content_words(space_ideographs(text))
        if not telling:
            return []
        rows = self._db.execute(
            # FTS5's bm25() is the lower the better
            "SELECT rowid, -bm25(spoken, 1.0, ?) AS score FROM spoken WHERE spoken MATCH ?"
            " ORDER BY score DESC, rowid LIMIT ?",
            # quoted, each word is a string to FTS5 and never an operator
            (self._around_weight, " OR ".join(f'"{word}"' for word in telling), -1 if limit is None else limit),
        )
        return [Hit(row, score) for row, score in rows]

    def close(self) -> None:
        self._db.close()


def _indexed(turns: Sequence[KeptTurn], around_words: int) -> Iterator[tuple[int, str, str]]:
    """Each turn's row, its words, and the words around it in the same session."""
    said = [space_ideographs(kept.said) for kept in turns]
    for row, kept in enumerate(turns):
        around: list[str] = []
        if row > 0 and turns[row - 1].session == kept.session:
            before = said[row - 1].split()
            around += before[max(len(before) - around_words, 0) :]
        if row + 1 < len(turns) and turns[row + 1].session == kept.session:
            around += said[row + 1].split()[:around_words]
        yield row, said[row], " ".join(around)


def open_bm25(file: Path) -> AbstractAsyncContextManager[TurnMemory]:
    """Memories on disk in `file`, which is created where it is missing."""
    return open_turn_memory(
        "bm25",
        file,
        LexicalIndex,
        {"tokenizer": _TOKENIZER, "around_words": AROUND_WORDS, "around_weight": AROUND_WEIGHT},
    )
