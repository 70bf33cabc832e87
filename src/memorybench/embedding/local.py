"""Vectors from weights that lie in a Python package: no server, no key, no download."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

from memorybench.core.errors import BadInput
from memorybench.core.trials import Subject

_MODEL = "l2_supercat"
_DIMENSIONS = 256
_BATCH = 256
_INLINE_CHARACTERS = 4_000
"""Below this an embedding takes about a millisecond, less than the way to a thread and back is worth."""


class LocalEmbedder:
    """The mean of a text's word vectors (WordLlama), of length 1; the zero vector for a text without words."""

    def __init__(self, model: Any, version: str) -> None:
        self._tokenizer = model.tokenizer
        self._tokenizer.no_padding()  # padded to the longest of its batch, a text would cost what that one costs
        self._word_vectors = model.embedding
        self._subject = Subject(
            role="embedder",
            name="wordllama",
            settings={"model": _MODEL, "dimensions": _DIMENSIONS, "version": version},
        )

    @property
    def subject(self) -> Subject:
        return self._subject

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Rows of one numpy array."""
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return self._embed(texts)
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        import numpy as np

        vectors = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            for row, encoded in enumerate(self._tokenizer.encode_batch(batch, add_special_tokens=False), start):
                # the sum points where the mean does, and only its direction is kept
                vectors[row] = self._word_vectors[encoded.ids].sum(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return cast(Sequence[Sequence[float]], vectors)


@asynccontextmanager
async def open_local_embedder() -> AsyncIterator[LocalEmbedder]:
    yield await asyncio.to_thread(_load)


def _load() -> LocalEmbedder:
    try:
        with _root_logger_kept():
            import wordllama
        package = Path(wordllama.__file__).parent
        # its tokenizer lies beside its weights, but is looked for in the cache folder alone
        model = wordllama.WordLlama.load(config=_MODEL, dim=_DIMENSIONS, cache_dir=package, disable_download=True)
    except ImportError as error:
        raise _missing(f"wordllama is not installed ({error})") from error
    except FileNotFoundError as error:
        raise _missing(f"this wordllama came without its weights ({error})") from error
    return LocalEmbedder(model, wordllama.__version__)


def _missing(problem: str) -> BadInput:
    return BadInput(
        "local embedder",
        problem,
        expected="the providers dense and hybrid need it",
        remedy='pip install "memorybench[embed]"',
    )


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """wordllama sets up logging for the whole process when it is imported; that is not its to decide."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
