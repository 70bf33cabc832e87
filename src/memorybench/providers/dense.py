"""The provider dense: ranks turns by the cosine between the question's vector and each turn's vector."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import Field

from .storage.indexed import Hit, Index, Query, best_rows, normalize
from .storage.turns import StoredTurn, TurnMemory, TurnSettings

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

BEFORE_WEIGHT = 0.5
"""The default of `before_weight`. The turn before counts, because a turn such as "Yes, last week" means little alone.

Chosen on LoCoMo and LongMemEval, without cross-validation. The provider hybrid has another default.
"""


class DenseSettings(TurnSettings):
    added_later = frozenset({"after_weight"})

    before_weight: float = Field(default=BEFORE_WEIGHT, ge=0)
    """Weight of the vector of the turn before; the vector of the turn itself has the weight 1."""
    after_weight: float = Field(default=0.0, ge=0)
    """Weight of the vector of the turn after."""


class VectorIndex(Index):
    def __init__(self, turns: Sequence[StoredTurn], settings: DenseSettings) -> None:
        import numpy as np

        self._directions: NDArray[float32] = np.zeros((0, 0), np.float32)
        if turns:
            vectors = normalize(np.stack([np.frombuffer(turn.vector or b"", np.float32) for turn in turns]))
            same_session = np.array([turn.session == before.session for before, turn in pairwise(turns)])
            with_neighbours = vectors.copy()
            with_neighbours[1:] += settings.before_weight * vectors[:-1] * same_session[:, None]
            with_neighbours[:-1] += settings.after_weight * vectors[1:] * same_session[:, None]
            self._directions = normalize(with_neighbours)

    def search(self, query: Query, limit: int) -> Sequence[Hit]:
        return best_rows(self.cosines(query.vector), limit)

    def cosines(self, vector: Sequence[float]) -> NDArray[float32]:
        import numpy as np

        if not len(self._directions):
            return np.zeros(0, np.float32)
        cosines: NDArray[float32] = self._directions @ normalize(np.asarray([vector], np.float32))[0]
        return cosines


class Dense(TurnMemory[DenseSettings]):
    name = "dense"
    settings_model = DenseSettings
    needs_embedder = True

    def build_index(self, scope: str, entries: Sequence[StoredTurn]) -> VectorIndex:
        return VectorIndex(entries, self.settings)
