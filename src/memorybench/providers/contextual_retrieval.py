"""Contextual retrieval: a model writes what each chunk is about, and the two are found together, by words and by
meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench.core.contracts import Embedder, Model
from memorybench.core.errors import BadInput
from memorybench.core.records import digest
from memorybench.files.templates import Template

from .bm25 import LexicalIndex
from .chunk_memory import ChunkMemory, Enriched, Ranking, open_chunk_memory
from .chunk_store import KeptChunk, Kind
from .chunking import Chunk, tokens
from .config import Local, ProviderConfig, Retrieval
from .dense import top
from .enrichment import Notebook, Scribe
from .hybrid import DENSE_WEIGHT, fused
from .turn_memory import Asked, Hit
from .turn_store import KeptTurn

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

WEIGHTS = {"lexical": 1 - DENSE_WEIGHT, "dense": DENSE_WEIGHT}
"""What `local.retrieval.weights` may name, and what each counts unless it does."""

_AROUND_TOKENS = 4_000
"""Of the session around a chunk, shown to the model. Nearly every session of a chat is shown whole; of a very long one
not, for each of its chunks would be paid with all the others."""
_LONGEST = 1_000
"""Characters of a context. A model that goes on and on would bury the chunk."""

_PROMPT = Template.parse(
    """\
Below is a conversation, or the part of it that surrounds an excerpt.

<conversation>
${around}
</conversation>

This is the excerpt:

<excerpt>
${chunk}
</excerpt>

Say in one or two sentences what the excerpt is about and what else in the conversation one has to know to understand
it: who speaks, when it was, what words like "it", "there" and "that" stand for. A search will find the excerpt by
your sentences, too. Answer with the sentences alone.""",
    {"around", "chunk"},
    "the prompt of contextual-retrieval",
)


def _context(text: str) -> str:
    context = " ".join(text.split())[:_LONGEST]
    if not context:
        raise ValueError("it says nothing")
    return context


def _around(session: Sequence[Chunk], row: int) -> str:
    """The chunk among its neighbours, as far as there is room; first those before it: "it" and "that" refer to them."""
    first, last, room = row, row + 1, _AROUND_TOKENS - tokens(session[row].text)
    while True:
        if first > 0 and tokens(session[first - 1].text) <= room:
            first -= 1
            room -= tokens(session[first].text)
        elif last < len(session) and tokens(session[last].text) <= room:
            room -= tokens(session[last].text)
            last += 1
        else:
            return "\n".join(chunk.text for chunk in session[first:last])


@dataclass(frozen=True, slots=True)
class _Fused:
    lexical: LexicalIndex
    retrieval: Retrieval

    def best(self, asked: Asked, cosines: Mapping[Kind, NDArray[float32]], limit: int) -> Sequence[Hit]:
        most = min(limit, self.retrieval.max_results or limit)
        match self.retrieval.strategy:
            case "lexical":
                return self.lexical.matches(asked.text, most)
            case "dense":
                return top(cosines["chunk"], most)
            case "weighted":
                share = _dense_share(self.retrieval)
                return top(fused(self.lexical.matches(asked.text), cosines["chunk"], share), most)

    def close(self) -> None:
        self.lexical.close()


def _dense_share(retrieval: Retrieval) -> float:
    weights = retrieval.weights or WEIGHTS
    dense, lexical = weights.get("dense", 0.0), weights.get("lexical", 0.0)
    return dense / (dense + lexical)


@dataclass(frozen=True, slots=True)
class _Contexts:
    scribe: Scribe[str] | None
    """None: chunks are kept as they are."""
    retrieval: Retrieval
    settings: Mapping[str, Any]

    async def enrich(self, session: Sequence[Chunk], row: int, notebook: Notebook) -> Enriched:
        if self.scribe is None:
            return Enriched()
        prompt = _PROMPT.render({"around": _around(session, row), "chunk": session[row].text})
        return Enriched(context=await self.scribe.write(prompt, notebook))

    def ranking(self, chunks: Sequence[KeptChunk]) -> Ranking:
        # chunks overlap and have their contexts: unlike turns they need no words of their neighbours
        searched = [KeptTurn(kept.session, kept.place, turn="", lead="", said=kept.content) for kept in chunks]
        return _Fused(LexicalIndex(searched, around_words=0), self.retrieval)


def open_contextual_retrieval(
    config: ProviderConfig, file: Path, embedder: Embedder, model: Model | None, *, config_file: Path | None = None
) -> AbstractAsyncContextManager[ChunkMemory]:
    """Memories in `file`, or in the Postgres that `config` names. `model` writes the contexts, if any are wanted.

    `config_file` is where the paths in `config` are seen from.
    """
    local = config.local or Local()
    scribe, settings = None, {}
    if local.enhancement is not None and local.enhancement.enabled:
        if model is None:
            raise BadInput(f'provider "{config.name}"', "no model writes its contexts", remedy="name enhancement.model")
        scribe = Scribe(model, _context)
        settings = {"model": model.subject.plain(), "prompt": digest(_PROMPT.render({"around": "", "chunk": ""}))}
    return open_chunk_memory(config, file, embedder, _Contexts(scribe, local.retrieval, settings), config_file)
