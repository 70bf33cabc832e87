"""The metrics of a bench run, the most important first."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memorybench.catalog.catalog import Catalog
from memorybench.core.measures import Measure, Metric
from memorybench.core.questions import EvidenceLevel
from memorybench.core.trials import Outcome
from memorybench.metrics.rates import Mean, Rate

from .scores import AT_K, CUTS, MISSES, OTHER_LEVEL, PROVENANCE_UNKNOWN


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A retrieval score as a rate. A provider that never names the source of a memory has no value, not 0."""

    name: str

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.name)
        if value is None:
            return None
        return value, float(outcome.score(PROVENANCE_UNKNOWN) is None)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        rate = Rate(self.name, self.name)
        if not any(known for _, known in rows):
            return rate.measure([], [], planned)
        return rate.measure([(value,) for value, _ in rows], clusters, planned)


ALIASES = {
    **{f"{name}_at_{k}": f"{name}@{k}" for name in AT_K for k in CUTS},
    "accuracy_by_question_type": "accuracy",
    "accuracy_by_category": "accuracy",
}
"""Older names of metrics."""


CORRECTED = {"accuracy": "correct", "answer_f1": "answer_f1", "recall@5": "recall@5", "recall@10": "recall@10"}
"""Measures that are repeated with a corrected answer key, and their scores."""


def measures(
    *, answered: bool, corrected: bool = False, levels: tuple[EvidenceLevel, ...] = ("session",)
) -> tuple[Metric, ...]:
    """The metrics of a run whose benchmarks name evidence at these levels."""
    metrics: list[Metric] = []
    if answered:
        metrics += [
            Rate("accuracy", "correct"),
            Rate("exact_match", "exact_match"),
            Rate("answer_f1", "answer_f1"),
            Rate("similarity", "similarity"),
            *(Rate(name, name, higher_is_better=False) for name in MISSES),
        ]
    if corrected:
        metrics += [Rate(f"corrected_{name}", f"corrected_{score}") for name, score in CORRECTED.items()]
    metrics += [Retrieval(f"{name}@{k}") for name in AT_K for k in CUTS]
    metrics.append(Retrieval("mrr"))
    for level in dict.fromkeys(OTHER_LEVEL[level] for level in levels):
        metrics += [Retrieval(f"{level}_recall@{k}") for k in CUTS]
        metrics.append(Retrieval(f"{level}_mrr"))
    metrics.append(Mean("context_tokens", "context_tokens", higher_is_better=False, unit="tokens"))
    return tuple(metrics)


def run_metrics(spec: Mapping[str, Any], plugins: Sequence[Metric] = ()) -> tuple[Metric, ...]:
    """The metrics of a saved run; neither dataset nor provider is needed."""
    levels = tuple(dict.fromkeys(spec["evidence"].values()))
    return (*measures(answered=spec["answered"], corrected=spec["corrected"], levels=levels), *plugins)


def plugin_metrics(catalog: Catalog) -> tuple[Metric, ...]:
    """The metrics of installed plug-ins. They read outcomes only, so every report includes them."""
    metrics = []
    for entry in catalog.entries("metric"):
        try:
            metrics.append(catalog.plugin("metric", entry.name).load())
        except Exception as error:  # third-party code must not stop a report
            print(f"metric {entry.name} of {entry.origin}: skipped: {error}", file=sys.stderr)
    return tuple(metrics)
