"""Embeddings with word vectors from the installed package wordllama: no server, no key, no download."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

from memorybench.core.errors import BadInput
from memorybench.core.timing import call_on_thread
from memorybench.core.trials import Subject

_MODEL = "l2_supercat"
_DIMENSIONS = 256
_BATCH = 64
"""Number of texts that are tokenized at once; small, because tokens take a hundred times as much memory as the text."""
_INLINE_CHARACTERS = 4_000
"""Texts of at most this many characters in total are embedded in the event loop, because that takes a millisecond."""


class LocalEmbedder:
    """Embeds a text as the mean of its word vectors (WordLlama), scaled to length 1; a text without words as zeros."""

    def __init__(self, model: Any, version: str) -> None:
        tokenizer = model.tokenizer
        tokenizer.no_padding()  # padding makes each text as expensive as the longest in its batch
        # newer versions have a faster method, which leaves out the offsets of tokens that we do not need
        self._tokenize = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        self._word_vectors = model.embedding
        self.subject = Subject(
            role="embedder",
            name="wordllama",
            settings={"model": _MODEL, "dimensions": _DIMENSIONS, "version": version},
        )

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector per text, as the rows of one numpy array."""
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return self._embed(texts)
        return await call_on_thread(None, self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        import numpy as np

        vectors = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            for row, encoded in enumerate(self._tokenize(batch, add_special_tokens=False), start):
                # the sum has the direction of the mean
                vectors[row] = self._word_vectors[encoded.ids].sum(axis=0)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return cast(Sequence[Sequence[float]], vectors)


@asynccontextmanager
async def open_local_embedder() -> AsyncIterator[LocalEmbedder]:
    yield await asyncio.to_thread(_load)


def _load() -> LocalEmbedder:
    try:
        with _root_logger_unchanged():
            import wordllama
        package = Path(wordllama.__file__).parent
        # the tokenizer is in the package, but wordllama searches the cache folder only
        model = wordllama.WordLlama.load(config=_MODEL, dim=_DIMENSIONS, cache_dir=package, disable_download=True)
    except ImportError as error:
        raise _missing(f"wordllama is not installed ({error})") from error
    except FileNotFoundError as error:
        raise _missing(f"the installed wordllama has no model weights ({error})") from error
    return LocalEmbedder(model, wordllama.__version__)


def _missing(problem: str) -> BadInput:
    return BadInput(
        "local embedder",
        problem,
        expected="an installation with the extra embed, which dense and hybrid need",
        remedy='pip install "memorybench[embed]"',
    )


@contextmanager
def _root_logger_unchanged() -> Iterator[None]:
    """Restore the root logger when the context ends, because the import of wordllama changes it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
