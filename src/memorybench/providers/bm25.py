"""Lexical search: BM25 by SQLite's FTS5 over stemmed words, one index per scope."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

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

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
"""Scripts written without blanks, of which FTS5 would take a whole sentence for one word."""

# Closed classes of English words, and what the apostrophe cuts off. Not "will", "may" and "us": they may be names.
_STOP_WORDS = frozenset(
    _WORD.findall("""
    a an the this that these those and or but nor so if than then as because while
    i me my mine you your yours he him his she her hers it its we our ours they them their theirs
    am is are was were be been being do does did doing have has had having can could would should shall must
    at by for from in into of off on onto out over to up with about after before between during through under until
    what when where which who whom whose why how there here
    not no any some all both each such very too also just only own same other more most
    d ll m re s t ve
    """)
)


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
        telling = telling_words(text)
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


def telling_words(text: str) -> list[str]:
    """Its words, each once and without stop words; all of them, where it has no others."""
    words = list(dict.fromkeys(_WORD.findall(_spaced(text).lower())))
    return [word for word in words if word not in _STOP_WORDS] or words


def _indexed(turns: Sequence[KeptTurn], around_words: int) -> Iterator[tuple[int, str, str]]:
    """Each turn's row, its words, and the words around it in the same session."""
    said = [_spaced(kept.said) for kept in turns]
    for row, kept in enumerate(turns):
        around: list[str] = []
        if row > 0 and turns[row - 1].session == kept.session:
            before = said[row - 1].split()
            around += before[max(len(before) - around_words, 0) :]
        if row + 1 < len(turns) and turns[row + 1].session == kept.session:
            around += said[row + 1].split()[:around_words]
        yield row, said[row], " ".join(around)


def _spaced(text: str) -> str:
    return _UNSPACED.sub(r" \g<0> ", text)


def open_bm25(file: Path) -> AbstractAsyncContextManager[TurnMemory]:
    """Memories on disk in `file`, which is created where it is missing."""
    return open_turn_memory(
        "bm25",
        file,
        LexicalIndex,
        {"tokenizer": _TOKENIZER, "around_words": AROUND_WORDS, "around_weight": AROUND_WEIGHT},
    )
