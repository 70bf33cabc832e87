"""Arithmetic on vectors and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .indexed import Hit

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


def normalize(vectors: NDArray[float32]) -> NDArray[float32]:
    """Scale each row to length 1; a row of zeros stays as it is."""
    import numpy as np

    lengths: NDArray[float32] = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def best_rows(scores: NDArray[float32], limit: int) -> Sequence[Hit]:
    """Return the rows with the highest scores, best first; ties in their order."""
    import numpy as np

    order = np.argsort(-scores, kind="stable")[:limit]
    return [Hit(int(row), float(scores[row])) for row in order]
