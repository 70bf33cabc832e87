"""The metrics of a hygiene run, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memorybench.core.measures import Measure, Metric
from memorybench.core.trials import Outcome, Score, Trial
from memorybench.metrics.rates import Rate

from .claims import Finding


@dataclass(frozen=True, slots=True)
class PhaseRate:
    """The mean of a score over the trials of some phases; only these are planned."""

    name: str
    score: str
    phases: tuple[str, ...]

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get("phase") in self.phases

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        return Rate(self.name, self.score).read(outcome) if self.concerns(outcome.trial) else None

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        return Rate(self.name, self.score).measure(rows, clusters, planned)


MEASURES: tuple[Metric, ...] = (
    PhaseRate("passed", "passed", ("well_behaved", "violation", "real_model")),
    PhaseRate("caught", "caught", ("violation",)),
    PhaseRate("mutation_score", "killed", ("mutant",)),
    PhaseRate("adoption", "adoption", ("real_model",)),
    PhaseRate("restraint", "restraint", ("real_model",)),
)
"""`passed`: phases with a good result. `caught`: declared violations that were blocked by the store or detected; below
1 a scenario has a fault. `mutation_score`: mutants killed; equivalent mutants are planned and do not count in n."""


def rate_scores(findings: Sequence[Finding]) -> list[Score]:
    """Adoption (stored what it should) and restraint (did not store what it should not).

    Two rates, because a memory that stores nothing has perfect restraint. Skipped assertions do not count; a rate
    without any other has no score.
    """
    scores = []
    for rate in ("adoption", "restraint"):
        decided = [finding for finding in findings if finding.rate == rate and finding.status != "skipped"]
        if decided:
            held = sum(finding.status == "held" for finding in decided)
            scores.append(Score(name=rate, value=held / len(decided)))
    return scores
