"""Which assertion caught what. One that catches nothing, of all that a scenario has to show it, is dead.

Where a store could not be shown all of it, nothing is proven of an assertion that caught nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from memorybench.core.records import Record
from memorybench.core.trials import Outcome, Score

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
    whole: bool = True
    """Whether the violation and every mutant of the scenario was played."""

    @property
    def score(self) -> float:
        return len(self.by) / self.total

    @property
    def verdict(self) -> Literal["", "dead", "not proven here"]:
        """What is to be said of it; "": it does its work."""
        if self.by:
            return ""
        return "dead" if self.whole else "not proven here"

    @property
    def dead(self) -> bool:
        return self.verdict == "dead"


def kill_scores(findings: Sequence[Finding]) -> list[Score]:
    """One for each assertion that could look."""
    return [
        Score(name=f"{KILL}{finding.claim}", value=float(finding.status == "broken"), reason=finding.found)
        for finding in findings
        if finding.status != "skipped"
    ]


def kill_matrix(outcomes: Iterable[Outcome]) -> tuple[Kills, ...]:
    """From the outcomes of violations and mutants, by scenario and assertion."""
    held: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    played = tuple(outcomes)
    for outcome in played:
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
            whole=_whole(scenario, played),
        )
        for (scenario, claim), scripts in held.items()
    )


def _whole(scenario: str, outcomes: Sequence[Outcome]) -> bool:
    """Idle agents are played with the mutants: where there are none, mutants were not asked for."""
    own = [outcome for outcome in outcomes if outcome.trial.case_id == scenario]
    harmful = [outcome for outcome in own if outcome.trial.labels.get("phase") in ("violation", "mutant")]
    checked = any(outcome.trial.labels.get("phase") == "agent" for outcome in own)
    return checked and all(outcome.status == "scored" for outcome in harmful)


def survivors(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Scenario, mutant, and why it does no harm; "": nobody knows, and it is a hole."""
    found = []
    for outcome in outcomes:
        equivalent = next((score for score in outcome.scores if score.name == "equivalent"), None)
        if equivalent is not None or outcome.score("killed") == 0:
            found.append((outcome.trial.case_id, outcome.trial.variant, equivalent.reason if equivalent else ""))
    return found
