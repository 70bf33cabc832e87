"""The provider bm25: lexical search over turns by SQLite's FTS5, with stemming, one index per scope."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import log
from typing import ClassVar

from pydantic import Field

from memorybench.text.words import content_words, space_ideographs

from .storage.indexed import Hit, Index, Query
from .storage.turns import StoredTurn, TurnMemory, TurnSettings

AROUND_WORDS = 60
AROUND_WEIGHT = 0.5
"""The defaults of `around_words` and `around_weight`. An answer seldom repeats the words of its question, so a turn is
also found by the last words of the turn before it and the first words of the turn after it. Their number is limited, so
that long neighbours do not outweigh a short turn.

Both defaults were chosen on LoCoMo and LongMemEval, without cross-validation. The provider hybrid has other defaults.
"""
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_FTS5_K1, _FTS5_B = 1.2, 0.75
"""The values of k1 and b in SQLite's function bm25(), which has no parameters for them."""
_LEAST_IDF = 1e-6
"""The inverse document frequency that FTS5 uses for a word that more than half of the turns contain."""


class LexicalSettings(TurnSettings):
    added_later = frozenset({"k1", "b", "around_turns"})

    k1: float = Field(default=_FTS5_K1, ge=0)
    """How much a repeated word counts; 0: no more than a word that occurs once."""
    b: float = Field(default=_FTS5_B, ge=0, le=1)
    """How much a long turn is penalized; 0: not at all."""
    around_words: int = Field(default=AROUND_WORDS, ge=0)
    """Number of words before a turn, and of words after it, by which the turn can also be found."""
    around_turns: int = Field(default=1, ge=1)
    """Number of turns before, and of turns after, from which the words of `around_words` are taken."""
    around_weight: float = Field(default=AROUND_WEIGHT, ge=0)
    """Weight of the words of `around_words`; the words of the turn itself have the weight 1."""


class LexicalIndex(Index):
    """A full-text index of turns, in memory. Must be used on the thread that built it."""

    def __init__(self, turns: Sequence[StoredTurn], settings: LexicalSettings) -> None:
        self._settings = settings
        self._turns = len(turns)
        self._db = sqlite3.connect(":memory:")
        # contentless, so that the index has no second copy of the text, which is in the store
        self._db.execute(f"CREATE VIRTUAL TABLE turns USING fts5(text, around, content='', tokenize='{_TOKENIZER}')")
        self._db.executemany(
            "INSERT INTO turns (rowid, text, around) VALUES (?, ?, ?)",
            _rows(turns, settings.around_words, settings.around_turns),
        )
        self._uses_fts5 = (settings.k1, settings.b) == (_FTS5_K1, _FTS5_B)
        if not self._uses_fts5:
            self._lengths = self._prepare_own_ranking()

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        return self.matches(query.text, limit)

    def matches(self, text: str, limit: int | None = None) -> Sequence[Hit]:
        """Return a hit for each turn that shares a word with the text, best first; at most `limit` unless it is None.

        Stop words do not count, unless the text has no other words.
        """
        words = content_words(space_ideographs(text))
        if not words:
            return []
        if not self._uses_fts5:
            return self._rank(words)[:limit]
        rows = self._db.execute(
            # for FTS5's bm25(), lower is better
            "SELECT rowid, -bm25(turns, 1.0, ?) AS score FROM turns WHERE turns MATCH ?"
            " ORDER BY score DESC, rowid LIMIT ?",
            # quoted, because FTS5 would read some words as operators
            (self._settings.around_weight, " OR ".join(f'"{word}"' for word in words), -1 if limit is None else limit),
        )
        return [Hit(row, score) for row, score in rows]

    def _prepare_own_ranking(self) -> Mapping[int, int]:
        """Create the tables that `_rank` reads; return the number of words of each turn, by row number."""
        self._db.execute("CREATE VIRTUAL TABLE occurrences USING fts5vocab(turns, instance)")
        self._db.execute(f"CREATE VIRTUAL TABLE query USING fts5(word, content='', tokenize='{_TOKENIZER}')")
        self._db.execute("CREATE VIRTUAL TABLE query_terms USING fts5vocab(query, instance)")
        return dict(self._db.execute("SELECT doc, count(*) FROM occurrences GROUP BY doc"))

    def _rank(self, words: Sequence[str]) -> list[Hit]:
        """Return the turns that contain a word, ranked by the formula of FTS5's bm25() with the configured k1 and b."""
        k1, b, total = self._settings.k1, self._settings.b, self._turns
        average = sum(self._lengths.values()) / max(1, total)
        scores: dict[int, float] = {}
        for term in self._terms(words):
            found = self._db.execute(
                "SELECT doc, sum(CASE col WHEN 'text' THEN 1.0 ELSE ? END) FROM occurrences"
                " WHERE term = ? GROUP BY doc",
                (self._settings.around_weight, term),
            ).fetchall()
            idf = max(_LEAST_IDF, log((total - len(found) + 0.5) / (len(found) + 0.5)))
            for row, count in found:
                penalty = k1 * (1 - b + b * self._lengths[row] / average)
                scores[row] = scores.get(row, 0.0) + idf * count * (k1 + 1) / (count + penalty)
        return [Hit(row, score) for row, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]

    def _terms(self, words: Sequence[str]) -> list[str]:
        """Return the words in the form in which FTS5 indexes them, for example `run` for `Running`."""
        self._db.execute("INSERT INTO query (query) VALUES ('delete-all')")
        self._db.executemany("INSERT INTO query (rowid, word) VALUES (?, ?)", enumerate(words))
        return [term for (term,) in self._db.execute("SELECT term FROM query_terms ORDER BY doc, offset")]

    def close(self) -> None:
        self._db.close()


def _rows(turns: Sequence[StoredTurn], around_words: int, around_turns: int) -> Iterator[tuple[int, str, str]]:
    """Yield for each turn its row number, its text, and the words around it in the same session.

    These are the last `around_words` words of the `around_turns` turns before it, and the first of those after it.
    """
    texts = [space_ideographs(turn.text) for turn in turns]
    for _, session in groupby(range(len(turns)), key=lambda row: turns[row].session):
        rows = list(session)
        for row in rows:
            before = " ".join(texts[max(rows[0], row - around_turns) : row])
            after = " ".join(texts[row + 1 : min(rows[-1], row + around_turns) + 1])
            yield row, texts[row], f"{_last_words(before, around_words)} {_first_words(after, around_words)}"


def _first_words(text: str, count: int) -> str:
    rest = text.split(None, count)[count:]
    return text[: len(text) - len(rest[0])] if rest else text


def _last_words(text: str, count: int) -> str:
    parts = text.rsplit(None, count)
    return text[len(parts[0]) :] if len(parts) > count else text


class Bm25(TurnMemory[LexicalSettings]):
    name = "bm25"
    settings_model = LexicalSettings
    constants: ClassVar = {"tokenizer": _TOKENIZER}

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> LexicalIndex:
        return LexicalIndex(entries, self.settings)
