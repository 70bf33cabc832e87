"""The provider hybrid: ranks turns by a weighted sum of the scores of bm25, dense, the speaker and the session."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from pydantic import Field

from memorybench.text.words import content_words, words

from .bm25 import LexicalIndex, LexicalSettings
from .dense import DenseSettings, VectorIndex
from .storage.indexed import Hit, Index, Query, best_rows
from .storage.turns import StoredTurn, TurnMemory

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray

DENSE_WEIGHT = 0.5
"""The default weight of a turn's cosine; its lexical score has the weight 1 minus this. Before the two are added, each
is converted to a z-score over all turns of the scope."""
SESSION_TURNS = 3
"""The score of a session is the mean score of its best turns, of which this many count."""


class HybridSettings(LexicalSettings, DenseSettings):
    """Settings of hybrid. Defaults were chosen by cross-validation on LoCoMo and LongMemEval; see docs/hybrid.md."""

    added_later = frozenset()

    around_words: int = Field(default=120, ge=0)
    """Number of words before a turn, and of words after it, by which the turn can also be found."""
    around_turns: int = Field(default=2, ge=1)
    """Number of turns before, and of turns after, from which the words of `around_words` are taken."""
    before_weight: float = Field(default=0.75, ge=0)
    """Weight of the vector of the turn before; the vector of the turn itself has the weight 1."""
    after_weight: float = Field(default=0.5, ge=0)
    """Weight of the vector of the turn after."""
    dense_weight: float = Field(default=DENSE_WEIGHT, ge=0, le=1)
    """Weight of the scores by vectors; scores by words have the weight 1 minus this."""
    speaker_weight: float = Field(default=1.25, ge=0)
    """Added to the score of a turn if the question names its speaker."""
    session_weight: float = Field(default=0.6, ge=0)
    """Weight of the mean score of the three best turns of a turn's session."""


class HybridIndex(Index):
    def __init__(self, turns: Sequence[StoredTurn], settings: HybridSettings) -> None:
        self._settings = settings
        self._lexical = LexicalIndex(turns, settings)
        self._vectors = VectorIndex(turns, settings)
        self._sessions = [len(list(group)) for _, group in groupby(turns, key=lambda turn: turn.session)]
        self._speakers: dict[str, list[int]] = {}
        for row, turn in enumerate(turns):
            self._speakers.setdefault(turn.speaker, []).append(row)

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        settings = self._settings
        cosines = self._vectors.cosines(query.vector)
        scores = add_scores(self._lexical.matches(query.text), cosines, settings.dense_weight)
        for speaker, rows in self._speakers.items():
            if is_named(speaker, query.text):
                scores[rows] += settings.speaker_weight
        if settings.session_weight and len(scores):
            scores += settings.session_weight * best_of_session(scores, self._sessions)
        return best_rows(scores, limit)

    def close(self) -> None:
        self._lexical.close()


def is_named(speaker: str, question: str) -> bool:
    """Return whether a question contains a word of a speaker's name."""
    return bool(speaker) and not set(words(question)).isdisjoint(content_words(speaker))


def best_of_session(scores: NDArray[float32], sessions: Sequence[int] | NDArray[int64]) -> NDArray[float32]:
    """Return, for each turn, the mean score of the SESSION_TURNS best turns of its session.

    `scores` has one score per turn, session after session; `sessions` has the number of turns of each session.
    """
    import numpy as np

    sizes = np.asarray(sessions)
    starts = np.cumsum(sizes) - sizes
    best_first = np.lexsort((-scores, np.repeat(np.arange(len(sizes)), sizes)))
    counts = np.arange(len(scores)) - np.repeat(starts, sizes) < SESSION_TURNS
    sums = np.add.reduceat(np.where(counts, scores[best_first], np.float32(0)), starts)
    return np.repeat(sums / np.minimum(sizes, SESSION_TURNS), sizes).astype(np.float32)


def add_scores(matches: Sequence[Hit], cosines: NDArray[float32], dense_weight: float) -> NDArray[float32]:
    """Return one score per row: the weighted sum of the z-scores of its lexical score and its cosine.

    The lexical scores are those of `matches`, and 0 for all other rows; they have the weight 1 - `dense_weight`.
    """
    import numpy as np

    lexical = np.zeros_like(cosines)
    for hit in matches:
        lexical[hit.row] = hit.score
    return (1 - dense_weight) * _standardize(lexical) + dense_weight * _standardize(cosines)


def _standardize(scores: NDArray[float32]) -> NDArray[float32]:
    """Return the scores as z-scores: minus their mean, divided by their standard deviation. Zeros if all are equal."""
    import numpy as np

    deviation = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)


class Hybrid(TurnMemory[HybridSettings]):
    name = "hybrid"
    settings_model = HybridSettings
    needs_embedder = True

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> HybridIndex:
        return HybridIndex(entries, self.settings)
