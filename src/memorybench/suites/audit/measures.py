"""The metrics of an audit. A measure has no value if there is no probe of its kind."""

from __future__ import annotations

from msgspec.structs import replace

from memorybench.core.trials import Outcome, Trial
from memorybench.metrics.rates import BoundedRate

REVERSED, DATED = "reversed", "dated"
"""Variants of temporal probes. `reversed` asks an order question again with the options exchanged; the pair has one
score. `dated` asks for a date, a duration, or what was true at a time."""
PAIR_UNDECIDED = "pair_undecided"
"""The name of a score: without a judge, code cannot decide an answer of this pair."""
_OF_PAIRS = ("paired", "ordered", "consistent")


class ProbeRate(BoundedRate, frozen=True):
    """The mean of a score over the probes of one kind. Other probes do not count as planned.

    Without a judge, answers that code cannot decide are undecided: code recognises right answers, but few wrong ones,
    so the share of right ones among the decided is too high. With a judge, a few of whose replies cannot be read,
    unscored answers do not count.
    """

    kind: str = ""
    variant: str = ""
    has_judge: bool = True

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get("probe_type") == self.kind and trial.variant == self.variant

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return BoundedRate.read(self, outcome) if self.concerns(outcome.trial) else None

    def is_open(self, outcome: Outcome) -> bool:
        if self.score in _OF_PAIRS:
            return outcome.score(PAIR_UNDECIDED) is not None
        return not self.has_judge and outcome.status == "unscored"


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


def measures(*, has_judge: bool) -> tuple[ProbeRate, ...]:
    return tuple(replace(metric, has_judge=has_judge) for metric in MEASURES)
