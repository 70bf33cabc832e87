"""Which assertion caught what. One that never catches anything, of all that was done wrong before its eyes, is dead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorybench.vocabulary.records import Record
from memorybench.vocabulary.trials import Outcome, Score

from .claims import Finding

KILL = "kill: "
"""Begins the name of a score: whether the assertion with that claim broke on a misbehaving script."""


class Kills(Record):
    """One row of the kill matrix."""

    scenario: str
    claim: str
    by: tuple[str, ...]
    """The scripts that it caught."""
    total: int
    """The scripts that it was held against."""

    @property
    def score(self) -> float:
        return len(self.by) / self.total

    @property
    def dead(self) -> bool:
        return not self.by


def kill_scores(findings: Sequence[Finding]) -> list[Score]:
    """One for each assertion that could look."""
    return [
        Score(name=f"{KILL}{finding.claim}", value=float(finding.status == "broken"), reason=finding.found)
        for finding in findings
        if finding.status != "skipped"
    ]


def kill_matrix(outcomes: Iterable[Outcome]) -> tuple[Kills, ...]:
    """From the outcomes of violations and mutants, by scenario and assertion. It reads nothing else of them."""
    held: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    for outcome in outcomes:
        for score in outcome.scores:
            if score.name.startswith(KILL):
                key = outcome.trial.case_id, score.name.removeprefix(KILL)
                held.setdefault(key, []).append((outcome.trial.variant, score.value == 1))
    return tuple(
        Kills(
            scenario=scenario,
            claim=claim,
            by=tuple(script for script, killed in scripts if killed),
            total=len(scripts),
        )
        for (scenario, claim), scripts in held.items()
    )


def survivors(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Scenario, mutant, and why it does no harm; "": nobody knows, and it is a hole."""
    found = []
    for outcome in outcomes:
        equivalent = next((score for score in outcome.scores if score.name == "equivalent"), None)
        if equivalent is not None or outcome.score("killed") == 0:
            found.append((outcome.trial.case_id, outcome.trial.variant, equivalent.reason if equivalent else ""))
    return found
