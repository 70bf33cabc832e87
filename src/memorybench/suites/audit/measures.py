"""The metrics of an audit. A measure has no value if there is no probe of its kind."""

from __future__ import annotations

from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.rates import Rate

REVERSED, DATED = "reversed", "dated"
"""Variants of temporal probes. `reversed` asks an order question again with the options exchanged; the pair has one
score. `dated` asks for a date, a duration, or what was true at a time."""


class ProbeRate(Rate, frozen=True):
    """The mean of a score over the probes of one kind. Other probes do not count as planned."""

    kind: str = ""
    variant: str = ""

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get("probe_type") == self.kind and trial.variant == self.variant

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return Rate.read(self, outcome) if self.concerns(outcome.trial) else None


MEASURES: tuple[ProbeRate, ...] = (
    ProbeRate("recall_accuracy", "correct", kind="recall"),
    ProbeRate("hallucinated_memory_rate", "hallucinated", kind="hallucination", higher_is_better=False),
    ProbeRate("conflict_resolution_accuracy", "correct", kind="conflict"),
    ProbeRate("temporal_accuracy", "ordered", kind="temporal"),
    ProbeRate("answering_rate", "answered", kind="recall"),
    ProbeRate("paired_rate", "paired", kind="hallucination"),
    ProbeRate("temporal_consistency", "consistent", kind="temporal"),
    ProbeRate("dating_accuracy", "correct", kind="temporal", variant=DATED),
)
