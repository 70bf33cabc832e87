"""The metrics of an audit. Without a probe of a kind, its measure has no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from memorybench.core.measures import Measure
from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.rates import Rate

REVERSED, DATED = "reversed", "dated"
"""Variants of temporal probes: `reversed` asks again with the options exchanged, and the pair has one score; `dated`
asks for a date, a duration or what was true at a time."""


@dataclass(frozen=True, slots=True)
class ProbeRate:
    """The mean of a score over the probes of one kind; only these are planned."""

    is_share: ClassVar[bool] = True

    name: str
    score: str
    kind: str
    higher_is_better: bool = True
    variant: str = ""

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get("probe_type") == self.kind and trial.variant == self.variant

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return Rate(self.name, self.score).read(outcome) if self.concerns(outcome.trial) else None

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        return Rate(self.name, self.score, self.higher_is_better).measure(rows, clusters, planned)


MEASURES: tuple[ProbeRate, ...] = (
    ProbeRate("recall_accuracy", "correct", "recall"),
    ProbeRate("hallucinated_memory_rate", "hallucinated", "hallucination", higher_is_better=False),
    ProbeRate("conflict_resolution_accuracy", "correct", "conflict"),
    ProbeRate("temporal_accuracy", "ordered", "temporal"),
    ProbeRate("answering_rate", "answered", "recall"),
    ProbeRate("paired_rate", "paired", "hallucination"),
    ProbeRate("temporal_consistency", "consistent", "temporal"),
    ProbeRate("dating_accuracy", "correct", "temporal", variant=DATED),
)
