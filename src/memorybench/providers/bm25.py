"""The provider bm25: lexical search over turns by SQLite's FTS5, with stemming, one index per scope."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import ClassVar

from memorybench.text.words import content_words, space_ideographs

from .storage.indexed import Hit, Query
from .storage.turns import StoredTurn, TurnMemory

AROUND_WORDS = 60
AROUND_WEIGHT = 0.5
"""An answer seldom repeats the words of its question, so a turn is also found by the last words of the turn before it
and the first words of the turn after it. The number is limited so that long neighbours do not outweigh a short turn.

Tuned with perf/tune_embedded.py, on LoCoMo (recall@10 of turns: 0.730, without neighbours 0.631) and LongMemEval mixed
(recall_any@5 of sessions: 0.978, without 0.972). A weight of 0.3 or cuts of 20 and 80 words change neither by 0.01.
"""
_TOKENIZER = "porter unicode61 remove_diacritics 2"


class LexicalIndex:
    """A full-text index in memory. Must be used on the thread that built it."""

    def __init__(
        self, turns: Sequence[StoredTurn], *, around_words: int = AROUND_WORDS, around_weight: float = AROUND_WEIGHT
    ) -> None:
        self._around_weight = around_weight
        self._db = sqlite3.connect(":memory:")
        # contentless: the text itself is in the store
        self._db.execute(f"CREATE VIRTUAL TABLE turns USING fts5(text, around, content='', tokenize='{_TOKENIZER}')")
        self._db.executemany("INSERT INTO turns (rowid, text, around) VALUES (?, ?, ?)", _rows(turns, around_words))

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        return self.matches(query.text, limit)

    def matches(self, text: str, limit: int | None = None) -> Sequence[Hit]:
        """Return the turns that share a word with the text, best first."""
        words = content_words(space_ideographs(text))
        if not words:
            return []
        rows = self._db.execute(
            # for FTS5's bm25(), lower is better
            "SELECT rowid, -bm25(turns, 1.0, ?) AS score FROM turns WHERE turns MATCH ?"
            " ORDER BY score DESC, rowid LIMIT ?",
            # quoted, because FTS5 would read some words as operators
            (self._around_weight, " OR ".join(f'"{word}"' for word in words), -1 if limit is None else limit),
        )
        return [Hit(row, score) for row, score in rows]

    def close(self) -> None:
        self._db.close()


def _rows(turns: Sequence[StoredTurn], around_words: int) -> Iterator[tuple[int, str, str]]:
    """Yield for each turn its row, its words, and the words around it in the same session."""
    texts = [space_ideographs(turn.text) for turn in turns]
    for row, turn in enumerate(turns):
        around: list[str] = []
        if row > 0 and turns[row - 1].session == turn.session:
            before = texts[row - 1].split()
            around += before[max(len(before) - around_words, 0) :]
        if row + 1 < len(turns) and turns[row + 1].session == turn.session:
            around += texts[row + 1].split()[:around_words]
        yield row, texts[row], " ".join(around)


class Bm25(TurnMemory):
    name = "bm25"
    settings: ClassVar = {"tokenizer": _TOKENIZER, "around_words": AROUND_WORDS, "around_weight": AROUND_WEIGHT}

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> LexicalIndex:
        return LexicalIndex(entries)
