"""Anticipatory questions: a model writes what each chunk answers, and a question is matched with questions, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from memorybench.core.contracts import Embedder, Model
from memorybench.core.errors import BadInput
from memorybench.core.records import Record, digest
from memorybench.files.templates import Template

from .chunk_memory import ChunkMemory, Enriched, Ranking, open_chunk_memory
from .chunk_store import KeptChunk, Kind
from .chunking import Chunk
from .config import Local, ProviderConfig, Retrieval
from .dense import top
from .enrichment import Notebook, Scribe
from .turn_memory import Asked, Hit

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

WEIGHTS = {"chunk": 0.5, "questions": 0.5}
"""What `local.retrieval.weights` may name, and what each counts unless it does."""

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


def _schema(most: int) -> Mapping[str, Any]:
    questions = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": most}
    return {"type": "object", "properties": {"questions": questions}}


def _questions(text: str, most: int) -> Sequence[str]:
    try:
        told = _Reply.model_validate_json(text).questions
    except ValidationError:
        raise ValueError('it is not JSON of the form {"questions": ["…"]}') from None
    questions = list(dict.fromkeys(question.strip() for question in told if question.strip()))
    if not questions:
        raise ValueError("it holds no question")
    return questions[:most]


@dataclass(frozen=True, slots=True)
class _Weighted:
    weights: Mapping[str, float]
    most: int | None

    def best(self, asked: Asked, cosines: Mapping[Kind, NDArray[float32]], limit: int) -> Sequence[Hit]:
        """The weighted sum of a chunk's own cosine and that of the nearest of its questions.

        Where a chunk has no questions its own cosine stands in for theirs: it is neither favoured nor punished.
        """
        import numpy as np

        questions: NDArray[float32] = np.where(np.isnan(cosines["question"]), cosines["chunk"], cosines["question"])
        scores = self.weights["chunk"] * cosines["chunk"] + self.weights["questions"] * questions
        return top(scores, min(limit, self.most or limit))

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class _Anticipation:
    scribe: Scribe[Sequence[str]] | None
    """None: chunks are kept without questions."""
    count: int
    retrieval: Retrieval
    settings: Mapping[str, Any]

    async def enrich(self, session: Sequence[Chunk], row: int, notebook: Notebook) -> Enriched:
        if self.scribe is None:
            return Enriched()
        prompt = _PROMPT.render({"chunk": session[row].text, "count": self.count})
        return Enriched(questions=await self.scribe.write(prompt, notebook))

    def ranking(self, chunks: Sequence[KeptChunk]) -> Ranking:
        return _Weighted(weights_of(self.retrieval), self.retrieval.max_results)


def weights_of(retrieval: Retrieval) -> Mapping[str, float]:
    """Those named, and 0 for the others; the usual ones where none is named."""
    return {**dict.fromkeys(WEIGHTS, 0.0), **retrieval.weights} if retrieval.weights else WEIGHTS


def open_aqrag(
    config: ProviderConfig, file: Path, embedder: Embedder, model: Model | None, *, config_file: Path | None = None
) -> AbstractAsyncContextManager[ChunkMemory]:
    """Memories in `file`, or in the Postgres that `config` names. `model` writes the questions, if any are wanted.

    `config_file` is where the paths in `config` are seen from.
    """
    local = config.local or Local()
    enhancement = local.enhancement
    asks = enhancement is not None and enhancement.enabled and enhancement.generate_questions
    count = enhancement.questions_per_chunk if enhancement else 0
    scribe, settings = None, {}
    if asks:
        if model is None:
            raise BadInput(
                f'provider "{config.name}"', "no model writes its questions", remedy="name enhancement.model"
            )
        scribe = Scribe(model, partial(_questions, most=count), _schema(count))
        settings = {
            "questions_per_chunk": count,
            "model": model.subject.plain(),
            "prompt": digest(_PROMPT.render({"chunk": "", "count": count})),
        }
    method = _Anticipation(scribe, count, local.retrieval, settings)
    return open_chunk_memory(config, file, embedder, method, config_file)
