"""Scores one question's ranking by the gold evidence and the sources that the provider reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from memorybench.core.conversation import Haystack, Memory
from memorybench.core.measures import RetrievalMetric
from memorybench.core.questions import EvidenceLevel, Question
from memorybench.core.trials import Score
from memorybench.metrics.retrieval import RETRIEVAL_METRICS
from memorybench.suites.answering import RUBRIC_MET, estimated_tokens

OTHER_LEVEL: Mapping[EvidenceLevel, EvidenceLevel] = {"session": "turn", "turn": "session"}


class Places:
    """The ids of the sessions and turns of a haystack.

    A source of a memory is the id of a session or of a turn. The methods return sources as ids of one level.
    """

    __slots__ = ("_ids",)

    def __init__(self, haystack: Haystack) -> None:
        sessions: dict[str, str] = {}
        for session in haystack.sessions:
            sessions.update((id, session.id) for id, _ in session.named_turns())
        sessions.update((session.id, session.id) for session in haystack.sessions)
        turns = {id: id for id, session in sessions.items() if id != session}
        self._ids: Mapping[EvidenceLevel, Mapping[str, str]] = {"session": sessions, "turn": turns}

    def sources(self, memory: Memory, level: EvidenceLevel) -> set[str]:
        """Return the ids of the sessions or turns, by `level`, that a memory comes from; empty if unknown."""
        ids_by_source = self._ids[level]
        return {id for source in memory.sources or () if (id := ids_by_source.get(source))}

    def ranking(self, memories: Sequence[Memory], level: EvidenceLevel) -> list[str] | None:
        """Return the distinct ids of the sessions or turns, by `level`, of a search result, best first.

        None if there are memories and none reports such a source. One that does not takes a rank, but is never a hit.
        """
        ranked: list[str] = []
        ids_by_source = self._ids[level]
        has_sources = not memories  # an empty result does not show whether sources are reported: PROVENANCE_UNKNOWN
        for place, memory in enumerate(memories):
            ids = [id for source in memory.sources or () if (id := ids_by_source.get(source))]
            has_sources = has_sources or bool(ids)
            ranked.extend(ids or [f"?{place}"])
        return list(dict.fromkeys(ranked)) if has_sources else None


def retrieval_scores(
    memories: Sequence[Memory],
    question: Question,
    places: Places,
    level: EvidenceLevel,
    metrics: Sequence[RetrievalMetric] = RETRIEVAL_METRICS,
) -> list[Score]:
    """Return the scores at the benchmark's own level, then some at the other level, prefixed by `session_` or `turn_`.

    There are none at a level without gold evidence, or if the provider does not report sources.
    """
    other = OTHER_LEVEL[level]
    scores: list[Score] = []
    for at, prefix in ((level, ""), (other, f"{other}_")):
        gold, ranked = question.gold(at), places.ranking(memories, at)
        if gold and ranked is not None:
            for metric in metrics:
                if at == level or metric.both_levels:
                    scores += metric.scores(ranked, gold, prefix)
    return scores


MISSES = {
    "miss_not_retrieved": "the gold evidence was not among the memories shown",
    "miss_not_used": "the gold evidence was among the memories shown, and the answer did not use it",
}
"""The two reasons why an answer can be wrong, each with the text that explains it in reports."""


def attribution(question: Question, seen: Sequence[Memory], places: Places, scores: Sequence[Score]) -> str | None:
    """Return why an answer is wrong, as a key of MISSES.

    None if it is not wrong, or if gold evidence or sources are unknown. Evidence counts as shown if a memory has a gold
    turn among its sources, or a gold session if turns are not reported.
    """
    if not any(score.name in ("correct", RUBRIC_MET) and score.value == 0 for score in scores):
        return None
    levels: tuple[EvidenceLevel, ...] = ("turn", "session")
    for level in levels:
        gold, ranked = question.gold(level), places.ranking(seen, level)
        if gold and ranked is not None:
            return "miss_not_used" if set(gold) & set(ranked) else "miss_not_retrieved"
    return None


FORBIDDEN_HIT, DRIFT, MEMORY_BYTES = "forbidden_hit", "drift", "bytes_per_memory"


def size_scores(seen: Sequence[Memory], context: str) -> Iterator[Score]:
    """Yield the tokens of the context and, if any memory is shown, the mean size of the memories in UTF-8 bytes."""
    yield Score(name="context_tokens", value=estimated_tokens(context))
    if seen:
        contents = "".join(memory.content for memory in seen)
        yield Score(name=MEMORY_BYTES, value=len(contents.encode("utf-8", "surrogatepass")) / len(seen))


def forbidden_scores(
    question: Question, seen: Sequence[Memory], places: Places, level: EvidenceLevel
) -> Iterator[Score]:
    """Yield FORBIDDEN_HIT, 1 if any memory shown is forbidden, and DRIFT, the share of the memories shown that are.

    A memory is forbidden if it comes from a source that must not be retrieved, or contains a text that the answer must
    not contain (PrecisionMemBench 2026). If a memory has no sources, DRIFT is unknown, and so is FORBIDDEN_HIT unless
    another memory is forbidden. Unknown scores are left out, and DRIFT if no memory is shown: 0 would count as perfect.
    """
    if not question.forbidden and not question.must_not_contain:
        return
    from memorybench.metrics.answers import contains

    hits, unknown = 0, 0
    for memory in seen:
        sources = places.sources(memory, level)
        is_hit = bool(sources & set(question.forbidden)) or any(
            contains(memory.content, text) for text in question.must_not_contain
        )
        hits += is_hit
        unknown += bool(question.forbidden) and not sources and not is_hit
    if hits or not unknown:
        yield Score(name=FORBIDDEN_HIT, value=float(hits > 0))
    if seen and not unknown:
        yield Score(name=DRIFT, value=hits / len(seen))
