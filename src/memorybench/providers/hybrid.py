"""Lexical search and search by meaning, added up."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.contracts import Embedder

from .bm25 import AROUND_WEIGHT, AROUND_WORDS, LexicalIndex
from .dense import BEFORE_WEIGHT, VectorIndex, top
from .turn_memory import Asked, Hit, TurnMemory, open_turn_memory
from .turn_store import KeptTurn

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

DENSE_WEIGHT = 0.5
"""The share of the vectors' say; both sides count in standard deviations over the scope, whatever their scales.

Tuned with perf/tune_embedded.py, on LoCoMo (recall@10 of turns: 0.744; bm25 alone 0.730, dense 0.438) and LongMemEval
(recall_any@5 of sessions: 44 of the 44 questions of S, bm25 40, dense 43; mixed 0.986, bm25 0.978, dense 0.990, which
is two questions of 500). Shares from 0.3 to 0.6 change none of these by more than one question of S, or 0.01.
"""


class FusedIndex:
    def __init__(self, turns: Sequence[KeptTurn], *, dense_weight: float = DENSE_WEIGHT) -> None:
        self._dense_weight = dense_weight
        self._lexical = LexicalIndex(turns)
        self._vectors = VectorIndex(turns)

    def best(self, asked: Asked, limit: int) -> Sequence[Hit]:
        cosines = self._vectors.cosines(asked.vector)
        return top(fused(self._lexical.matches(asked.text), cosines, self._dense_weight), limit)

    def close(self) -> None:
        self._lexical.close()
        self._vectors.close()


def fused(matches: Sequence[Hit], cosines: NDArray[float32], dense_weight: float) -> NDArray[float32]:
    """One score for each row that has a cosine, whether it matches or not."""
    import numpy as np

    lexical = np.zeros_like(cosines)
    for hit in matches:
        lexical[hit.row] = hit.score
    return (1 - dense_weight) * _standardised(lexical) + dense_weight * _standardised(cosines)


def _standardised(scores: NDArray[float32]) -> NDArray[float32]:
    """Zeros where all scores are the same: such a side has nothing to say."""
    import numpy as np

    spread = scores.std() if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros_like(scores)


def open_hybrid(file: Path, embedder: Embedder) -> AbstractAsyncContextManager[TurnMemory]:
    """Memories on disk in `file`, which is created where it is missing."""
    return open_turn_memory(
        "hybrid",
        file,
        FusedIndex,
        {
            "dense_weight": DENSE_WEIGHT,
            "before_weight": BEFORE_WEIGHT,
            "around_words": AROUND_WORDS,
            "around_weight": AROUND_WEIGHT,
        },
        embedder,
    )
