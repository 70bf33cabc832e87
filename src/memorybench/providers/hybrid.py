"""The provider hybrid: the weighted sum of the scores of bm25 and dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from .bm25 import LexicalIndex, LexicalSettings
from .dense import DenseSettings, VectorIndex
from .storage.indexed import Hit, Query, best_rows
from .storage.turns import StoredTurn, TurnMemory

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

DENSE_WEIGHT = 0.5
"""The weight of the cosines. Both scores are divided by their standard deviation over the scope first.

Tuned with perf/tune_embedded.py, on LoCoMo (recall@10 of turns: 0.744; bm25 alone 0.730, dense 0.438) and LongMemEval
(recall_any@5 of sessions: 44 of the 44 questions of S, bm25 40, dense 43; mixed 0.986, bm25 0.978, dense 0.990, which
is two questions of 500). Shares from 0.3 to 0.6 change none of these by more than one question of S, or 0.01.
"""


class HybridSettings(LexicalSettings, DenseSettings):
    added_later = LexicalSettings.added_later | DenseSettings.added_later

    dense_weight: float = Field(default=DENSE_WEIGHT, ge=0, le=1)
    """Weight of the vectors; that of the words is 1 minus this."""


class HybridIndex:
    def __init__(self, turns: Sequence[StoredTurn], settings: HybridSettings) -> None:
        self._dense_weight = settings.dense_weight
        self._lexical = LexicalIndex(turns, settings)
        self._vectors = VectorIndex(turns, settings)

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        cosines = self._vectors.cosines(query.vector)
        return best_rows(add_scores(self._lexical.matches(query.text), cosines, self._dense_weight), limit)

    def close(self) -> None:
        self._lexical.close()


def add_scores(matches: Sequence[Hit], cosines: NDArray[float32], dense_weight: float) -> NDArray[float32]:
    """Return the weighted sum of both scores for each row, also for rows without a lexical match."""
    import numpy as np

    lexical = np.zeros_like(cosines)
    for hit in matches:
        lexical[hit.row] = hit.score
    return (1 - dense_weight) * _standardize(lexical) + dense_weight * _standardize(cosines)


def _standardize(scores: NDArray[float32]) -> NDArray[float32]:
    """Return z-scores; zeros if all scores are equal."""
    import numpy as np

    deviation = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / deviation if deviation > 0 else np.zeros_like(scores)


class Hybrid(TurnMemory[HybridSettings]):
    name = "hybrid"
    settings_model = HybridSettings
    needs_embedder = True

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> HybridIndex:
        return HybridIndex(entries, self.settings)
