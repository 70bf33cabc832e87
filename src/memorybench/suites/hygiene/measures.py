"""The metrics of a hygiene run, the most important first."""

from __future__ import annotations

from collections.abc import Sequence

from memorybench.core.measures import Metric
from memorybench.core.trials import Score, Trial
from memorybench.metrics.rates import Rate

from .assertions_base import Finding


class PhaseRate(Rate, frozen=True):
    """The mean of a score over the trials of some phases. Only trials of these phases count as planned."""

    phases: tuple[str, ...] = ()

    def concerns(self, trial: Trial) -> bool:
        return trial.labels.get("phase") in self.phases


MEASURES: tuple[Metric, ...] = (
    PhaseRate("passed", "passed", phases=("well_behaved", "violation", "real_model")),
    PhaseRate("caught", "caught", phases=("violation",)),
    PhaseRate("mutation_score", "killed", phases=("mutant",)),
    PhaseRate("adoption", "adoption", phases=("real_model",)),
    PhaseRate("restraint", "restraint", phases=("real_model",)),
    PhaseRate("refused_by_store", "refused_by_store", phases=("real_model",)),
)
"""Shares. `passed`: phases with a good result. `caught`: declared violations that the store blocked or an assertion
detected; if it is below 1, a scenario is faulty. `mutation_score`: mutants killed; equivalent mutants are planned, but
do not count in n. `adoption`, `restraint`: see `rate_scores`. `refused_by_store`: forbidden writes of an agent that the
store refused; only attempts with such writes count in n."""


def rate_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return the scores `adoption` and `restraint`: of the assertions with that rate, the share that held.

    Adoption: facts that should be stored are stored. Restraint: the agent did not attempt to write what should not be
    stored, whether or not the store refused it. There are two rates because an agent that stores nothing has perfect
    restraint. Skipped assertions do not count; a rate with no other assertions has no score.
    """
    scores = []
    for rate in ("adoption", "restraint"):
        statuses = [finding.status for finding in findings if finding.rate == rate and finding.status != "skipped"]
        if statuses:
            scores.append(Score(name=rate, value=statuses.count("held") / len(statuses)))
    return scores


def refusal_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return the score `refused_by_store`: of an agent's forbidden writes that the store refused or stored, the share
    that it refused.

    The list is empty if there was no such write. A write that breaks several assertions counts once.
    """
    known = {write.where: write.fate for finding in findings for write in finding.writes}
    unknown = [finding.fate for finding in findings if finding.fate is not None and not finding.writes]
    fates = [fate for fate in (*known.values(), *unknown) if fate in ("stored", "refused")]
    return [Score(name="refused_by_store", value=fates.count("refused") / len(fates))] if fates else []
