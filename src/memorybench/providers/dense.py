"""Search by meaning: the cosine of a question and each turn, with whatever embedder is passed in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from memorybench.core.contracts import Embedder

from .turn_memory import Asked, Hit, TurnMemory, open_turn_memory
from .turn_store import KeptTurn

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

BEFORE_WEIGHT = 0.5
"""How much of the turn before it a turn's vector carries: "Yes, last week" means little alone.

Tuned with perf/tune_embedded.py, on LoCoMo (recall@10 of turns: 0.438, without it 0.358) and LongMemEval mixed
(recall_any@5 of sessions: 0.990, without 0.986).
"""


class VectorIndex:
    def __init__(self, turns: Sequence[KeptTurn], *, before_weight: float = BEFORE_WEIGHT) -> None:
        import numpy as np

        self._directions: NDArray[float32] = np.zeros((0, 0), np.float32)
        if turns:
            vectors = np.stack([np.frombuffer(kept.vector or b"", np.float32) for kept in turns])
            self._directions = normalised(_carrying_before(turns, normalised(vectors), before_weight))

    def best(self, asked: Asked, limit: int) -> Sequence[Hit]:
        return top(self.cosines(asked.vector), limit)

    def cosines(self, vector: Sequence[float]) -> NDArray[float32]:
        import numpy as np

        if not len(self._directions):
            return np.zeros(0, np.float32)
        cosines: NDArray[float32] = self._directions @ normalised(np.asarray([vector], np.float32))[0]
        return cosines

    def close(self) -> None:
        """Nothing is held but memory."""


def _carrying_before(turns: Sequence[KeptTurn], vectors: NDArray[float32], weight: float) -> NDArray[float32]:
    import numpy as np

    follows = np.array([kept.session == before.session for before, kept in pairwise(turns)])
    carried = vectors.copy()
    carried[1:] += weight * vectors[:-1] * follows[:, None]
    return carried


def normalised(vectors: NDArray[float32]) -> NDArray[float32]:
    """Rows of length 1; a row of zeros, which has no direction, stays as it is."""
    import numpy as np

    lengths: NDArray[float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def top(scores: NDArray[float32], limit: int) -> Sequence[Hit]:
    import numpy as np

    order = np.argsort(-scores, kind="stable")[:limit]
    return [Hit(int(row), float(scores[row])) for row in order]


def open_dense(file: Path, embedder: Embedder) -> AbstractAsyncContextManager[TurnMemory]:
    """Memories on disk in `file`, which is created where it is missing."""
    return open_turn_memory("dense", file, VectorIndex, {"before_weight": BEFORE_WEIGHT}, embedder)
