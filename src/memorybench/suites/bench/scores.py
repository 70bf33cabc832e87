"""What a ranking is worth: only from gold evidence, and from the provenance that the system itself gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memorybench.core.conversation import Haystack, Memory
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.trials import Score
from memorybench.metrics import retrieval

CUTS = (1, 3, 5, 10)
PROVENANCE_UNKNOWN = "provenance_unknown"
"""A score on searches that found nothing: they count as 0 only if the same system told its sources elsewhere."""
AT_K = {
    "recall": retrieval.recall,
    "recall_any": retrieval.recall_any,
    "recall_all": retrieval.recall_all,
    "precision": retrieval.precision,
    "ndcg": retrieval.ndcg,
    "ndcg_any": retrieval.ndcg_any,
}
OTHER_LEVEL: Mapping[EvidenceLevel, EvidenceLevel] = {"session": "turn", "turn": "session"}


class Places:
    """Which ids of a haystack are sessions and which are turns."""

    __slots__ = ("_session_of",)

    def __init__(self, haystack: Haystack) -> None:
        self._session_of: dict[str, str] = {}
        for session in haystack.sessions:
            for n, turn in enumerate(session.turns, 1):
                self._session_of[turn.id or f"{session.id}:{n}"] = session.id
        self._session_of.update((session.id, session.id) for session in haystack.sessions)

    def ranking(self, memories: Sequence[Memory], level: EvidenceLevel) -> list[str] | None:
        """The ids at that level, best first; None where the system does not say where its memories came from."""
        ranked: list[str] = []
        told = not memories  # whether it tells at all, an empty-handed search does not show: see `PROVENANCE_UNKNOWN`
        for place, memory in enumerate(memories):
            ids = [id for source in memory.sources or () if (id := self._at(source, level))]
            told = told or bool(ids)
            ranked.extend(ids or [f"?{place}"])  # of unknown origin: it takes a place and is no hit
        return ranked if told else None

    def _at(self, source: str, level: EvidenceLevel) -> str | None:
        session = self._session_of.get(source)
        if level == "session":
            return session
        return source if session is not None and session != source else None


def retrieval_scores(
    memories: Sequence[Memory], question: Question, places: Places, level: EvidenceLevel
) -> list[Score]:
    """Plain names at the level the benchmark counts by, names with a prefix at the other one."""
    scores = []
    other = OTHER_LEVEL[level]
    for at, prefix, measured in ((level, "", AT_K), (other, f"{other}_", {"recall": retrieval.recall})):
        gold = question.gold(at)
        ranked = places.ranking(memories, at)
        if not gold or ranked is None:
            continue
        for name, formula in measured.items():
            for k in CUTS:
                value = formula(ranked, gold, k)
                if value is not None:
                    scores.append(Score(name=f"{prefix}{name}@{k}", value=value))
        first = retrieval.reciprocal_rank(ranked, gold)
        if first is not None:
            scores.append(Score(name=f"{prefix}mrr", value=first))
    return scores


MISSES = {
    "miss_not_retrieved": "the gold evidence was not among the memories shown",
    "miss_not_used": "the gold evidence was shown, and the answer did not use it",
}
"""Why a wrong answer is wrong: the memory's fault, or the reader's."""


def attribution(question: Question, seen: Sequence[Memory], places: Places, scores: Sequence[Score]) -> str | None:
    """Which of the misses a wrong answer is; None where it is right, not decided, or nobody can tell.

    Evidence is shown if any memory names a gold turn as its source, or a gold session where turns are not told.
    """
    if not any(score.name == "correct" and score.value == 0 for score in scores):
        return None
    levels: tuple[EvidenceLevel, ...] = ("turn", "session")
    for level in levels:
        gold, ranked = question.gold(level), places.ranking(seen, level)
        if gold and ranked is not None:
            return "miss_not_used" if set(gold) & set(ranked) else "miss_not_retrieved"
    return None
