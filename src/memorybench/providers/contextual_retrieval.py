"""The provider contextual-retrieval: a model writes a sentence or two of context for each chunk; both are searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from memorybench.core.contracts import Model
from memorybench.core.records import digest
from memorybench.files.templates import Template

from .bm25 import LexicalIndex, LexicalSettings
from .config.sections import Enhancement
from .hybrid import DENSE_WEIGHT, add_scores
from .storage.chunk_memory import Addition, ChunkIndex, ChunkMemory, Enrichment
from .storage.chunking import Chunk, count_tokens
from .storage.chunks import StoredChunk
from .storage.indexed import Hit, Query, best_rows
from .storage.turns import StoredTurn

if TYPE_CHECKING:
    from .storage.chunk_memory import Cosines

_EXCERPT_TOKENS = 4_000
"""Maximum number of tokens of a session that the model sees with a chunk. Nearly all sessions are shorter. Without this
limit, the model would read a very long session as a whole for each of its chunks."""
_MAX_CHARACTERS = 1_000
"""Maximum length of a context in characters: a longer one would outweigh its chunk in a search."""

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


def _parse_context(text: str) -> Addition:
    context = " ".join(text.split())[:_MAX_CHARACTERS]
    if not context:
        raise ValueError("the reply is empty")
    return Addition(context=context)


def _prompt(chunks: Sequence[Chunk], row: int) -> str:
    return _PROMPT.render({"around": _excerpt(chunks, row), "chunk": chunks[row].text})


def _excerpt(chunks: Sequence[Chunk], row: int) -> str:
    """Return the text of `chunks[row]` and of as many neighbouring chunks as fit into _EXCERPT_TOKENS.

    Earlier chunks are added first, because words such as "it" usually refer to earlier text.
    """
    first, last, room = row, row + 1, _EXCERPT_TOKENS - count_tokens(chunks[row].text)
    while True:
        if first > 0 and count_tokens(chunks[first - 1].text) <= room:
            first -= 1
            room -= count_tokens(chunks[first].text)
        elif last < len(chunks) and count_tokens(chunks[last].text) <= room:
            room -= count_tokens(chunks[last].text)
            last += 1
        else:
            return "\n".join(chunk.text for chunk in chunks[first:last])


_DEFAULT_WEIGHTS = {"lexical": 1 - DENSE_WEIGHT, "dense": DENSE_WEIGHT}


class _FusedIndex(ChunkIndex):
    def __init__(self, chunks: Sequence[StoredChunk], *arguments: Any) -> None:
        super().__init__(chunks, *arguments)
        # without words of the neighbours: unlike turns, chunks overlap and have a context
        turns = [StoredTurn(one.session, one.place, turn="", lead="", text=one.content) for one in chunks]
        self._lexical = LexicalIndex(turns, LexicalSettings(around_words=0))

    def rank(self, query: Query, cosines: Cosines, limit: int) -> Sequence[Hit]:
        match self.retrieval.strategy:
            case "lexical":
                return self._lexical.matches(query.text, limit)
            case "dense":
                return best_rows(cosines["chunk"], limit)
            case "weighted":
                weights = self.retrieval.weights or _DEFAULT_WEIGHTS
                dense, lexical = weights.get("dense", 0.0), weights.get("lexical", 0.0)
                matches = self._lexical.matches(query.text)
                return best_rows(add_scores(matches, cosines["chunk"], dense / (dense + lexical)), limit)

    def close(self) -> None:
        self._lexical.close()


class ContextualRetrieval(ChunkMemory):
    index_class = _FusedIndex
    strategies = ("lexical", "dense", "weighted")
    unused_settings = ("enhancement.generate_questions", "enhancement.questions_per_chunk")
    weights: ClassVar = _DEFAULT_WEIGHTS

    @classmethod
    def make_enrichment(cls, enhancement: Enhancement, model: Model) -> Enrichment:
        settings = {"model": model.subject.plain(), "prompt": digest(_PROMPT.render({"around": "", "chunk": ""}))}
        return Enrichment(model, _prompt, _parse_context, settings)
