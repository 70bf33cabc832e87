"""An embedder for tests: words hashed into a few dimensions, the same on every machine."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from memorybench.core.trials import Subject

_WORD = re.compile(r"\w+")


class ScriptedEmbedder:
    """Texts that share words get similar vectors; synonyms do not."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._subject = Subject(role="embedder", name="scripted", settings={"dimensions": dimensions})

    @property
    def subject(self) -> Subject:
        return self._subject

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        counts = [0.0] * self._dimensions
        for word in _WORD.findall(text.lower()):
            # hash() differs between processes
            counts[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self._dimensions] += 1
        length = math.sqrt(sum(count * count for count in counts))
        return [count / length for count in counts] if length else counts


@asynccontextmanager
async def open_scripted_embedder(dimensions: int = 256) -> AsyncIterator[ScriptedEmbedder]:
    yield ScriptedEmbedder(dimensions)
