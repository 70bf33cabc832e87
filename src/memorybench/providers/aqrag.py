"""The provider aqrag: compares a query with each chunk, and with questions about the chunk that a model wrote."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pydantic import ValidationError

from memorybench.core.contracts import Model
from memorybench.core.records import Record, digest
from memorybench.files.templates import Template

from .config.sections import Enhancement
from .storage.chunk_memory import Addition, ChunkIndex, ChunkMemory, Enrichment
from .storage.indexed import Hit, Query, best_rows

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from .storage.chunk_memory import Cosines

_PROMPT = Template.parse(
    """\
Below is a part of a conversation that is being stored, so that questions about it can be answered later.

<conversation>
${chunk}
</conversation>

Write ${count} questions that somebody may ask one day and that this part answers. Ask about different facts. Each
must be understood by itself: name the people, things and dates that it is about, and choose other words than the
conversation does where you can.

Answer with JSON: {"questions": ["…", "…"]}""",
    {"chunk", "count"},
    "aqrag's prompt",
)


class _Reply(Record):
    questions: tuple[str, ...]


def _parse_questions(text: str, limit: int) -> Addition:
    try:
        reply = _Reply.model_validate_json(text)
    except ValidationError:
        raise ValueError('the reply is not JSON of the form {"questions": ["…"]}') from None
    questions = list(dict.fromkeys(question.strip() for question in reply.questions if question.strip()))
    if not questions:
        raise ValueError("the reply contains no question")
    return Addition(questions=questions[:limit])


_DEFAULT_WEIGHTS = {"chunk": 0.5, "questions": 0.5}


class _WeightedIndex(ChunkIndex):
    def rank(self, query: Query, cosines: Cosines, limit: int) -> Sequence[Hit]:
        """Rank chunks by the weighted sum of two cosines: that of the chunk, and that of its most similar question.

        If a chunk has no questions, its own cosine is used for both.
        """
        import numpy as np

        weights = self.retrieval.weights or _DEFAULT_WEIGHTS
        questions: NDArray[float32] = np.where(np.isnan(cosines["question"]), cosines["chunk"], cosines["question"])
        scores = weights.get("chunk", 0.0) * cosines["chunk"] + weights.get("questions", 0.0) * questions
        return best_rows(scores, limit)


class Aqrag(ChunkMemory):
    index_class = _WeightedIndex
    strategies = ("weighted",)
    weights: ClassVar = _DEFAULT_WEIGHTS

    @classmethod
    def is_enriched(cls, enhancement: Enhancement) -> bool:
        return enhancement.enabled and enhancement.generate_questions

    @classmethod
    def make_enrichment(cls, enhancement: Enhancement, model: Model) -> Enrichment:
        count = enhancement.questions_per_chunk
        questions = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": count}
        schema = {"type": "object", "properties": {"questions": questions}}
        settings = {
            "questions_per_chunk": count,
            "model": model.subject.plain(),
            "prompt": digest(_PROMPT.render({"chunk": "", "count": count})),
        }
        return Enrichment(
            model,
            lambda chunks, row: _PROMPT.render({"chunk": chunks[row].text, "count": count}),
            partial(_parse_questions, limit=count),
            settings,
            schema,
        )
