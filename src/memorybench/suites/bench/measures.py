"""What is reported of a bench run, in the order of a reader's interest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorybench.core.measures import Measure, Metric
from memorybench.core.questions import EvidenceLevel
from memorybench.core.trials import Outcome
from memorybench.metrics.rates import Mean, Rate

from .scores import AT_K, CUTS, MISSES, OTHER_LEVEL, PROVENANCE_UNKNOWN


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval score as a rate. A system that never says where a memory came from has none: not 0."""

    name: str

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.name)
        if value is None:
            return None
        return value, float(outcome.score(PROVENANCE_UNKNOWN) is None)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        rate = Rate(self.name, self.name)
        if not any(told for _, told in rows):
            return rate.measure([], [], planned)
        return rate.measure([(value,) for value, _ in rows], clusters, planned)


ALIASES = {
    **{f"{name}_at_{k}": f"{name}@{k}" for name in AT_K for k in CUTS},
    "accuracy_by_question_type": "accuracy",
    "accuracy_by_category": "accuracy",
}
"""Names of the older spec: the same figure, or the same figure by group."""


CORRECTED = {"accuracy": "correct", "answer_f1": "answer_f1", "recall@5": "recall@5", "recall@10": "recall@10"}
"""Measures that are also made with a corrected answer key, and their scores."""


def measures(
    *, answered: bool, corrected: bool = False, levels: tuple[EvidenceLevel, ...] = ("session",)
) -> tuple[Metric, ...]:
    """All metrics of a bench run whose benchmarks count evidence at these levels."""
    found: list[Metric] = []
    if answered:
        found += [
            Rate("accuracy", "correct"),
            Rate("exact_match", "exact_match"),
            Rate("answer_f1", "answer_f1"),
            Rate("similarity", "similarity"),
            *(Rate(name, name, higher_is_better=False) for name in MISSES),
        ]
    if corrected:
        found += [Rate(f"corrected_{name}", f"corrected_{score}") for name, score in CORRECTED.items()]
    found += [Retrieval(f"{name}@{k}") for name in AT_K for k in CUTS]
    found.append(Retrieval("mrr"))
    for level in dict.fromkeys(OTHER_LEVEL[level] for level in levels):
        found += [Retrieval(f"{level}_recall@{k}") for k in CUTS]
        found.append(Retrieval(f"{level}_mrr"))
    found.append(Mean("context_tokens", "context_tokens", higher_is_better=False, unit="tokens"))
    return tuple(found)
