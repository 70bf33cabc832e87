"""How well the assertions work: which scripts they detect, which mutants survive, which assertions were skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from memorybench.core.records import Record
from memorybench.core.trials import Outcome, Score

from .assertions_base import Finding

KILL = "kill: "
"""Prefix of a score name, before the claim of an assertion: 1 if a misbehaving script broke it, else 0."""
SKIPPED = "skipped: "
"""Prefix of a score name, before the claim of an assertion that was skipped or could not read all places."""

RESIDUE = "residue: "
"""Prefix of a score name, before the claim of an assertion that found a text in files: the number of places."""

ATTEMPT = "attempt"
"""Beginning of a score name such as `attempt 2: CLAIM`: 1 if the write of an agent against CLAIM was stored, else 0."""
_ATTEMPT = re.compile(rf"{ATTEMPT}(?: \d+)?: (?P<claim>.*)", re.DOTALL)


class Kills(Record):
    """One row of the kill matrix: which misbehaving scripts one assertion detected."""

    scenario: str
    claim: str
    by: tuple[str, ...]
    """The scripts that the assertion detected."""
    total: int
    """The number of scripts on which the assertion was checked, that is, not skipped."""
    is_complete: bool = True
    """Whether the violation and every mutant of the scenario were run."""

    @property
    def score(self) -> float:
        return len(self.by) / self.total

    @property
    def verdict(self) -> Literal["", "dead", "not proven here"]:
        """Empty if the assertion detected a script. Else `dead`, or `not proven here` if not all scripts were run."""
        if self.by:
            return ""
        return "dead" if self.is_complete else "not proven here"

    @property
    def dead(self) -> bool:
        return self.verdict == "dead"


def kill_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return one score per assertion that was not skipped: 1 if the script broke it, else 0."""
    return [
        Score(name=f"{KILL}{finding.claim}", value=float(finding.status == "broken"), reason=finding.found)
        for finding in findings
        if finding.status != "skipped"
    ]


def kill_matrix(outcomes: Iterable[Outcome]) -> tuple[Kills, ...]:
    """Return one row per scenario and assertion, from the outcomes of violations and mutants."""
    rows: dict[tuple[str, str], list[tuple[str, bool]]] = {}
    incomplete, with_agents = set(), set()
    for outcome in outcomes:
        scenario, phase = outcome.trial.case_id, outcome.trial.labels.get("phase")
        if phase == "agent":
            with_agents.add(scenario)  # agents and mutants run together: without agents, mutants were switched off
        if phase in ("violation", "mutant") and outcome.status != "scored":
            incomplete.add(scenario)
        for score in outcome.scores:
            if score.name.startswith(KILL):
                row = rows.setdefault((scenario, score.name.removeprefix(KILL)), [])
                row.append((outcome.trial.variant, score.value == 1))
    return tuple(
        Kills(
            scenario=scenario,
            claim=claim,
            by=tuple(script for script, is_killed in scripts if is_killed),
            total=len(scripts),
            is_complete=scenario in with_agents - incomplete,
        )
        for (scenario, claim), scripts in rows.items()
    )


def survivors(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Return (scenario, mutant, reason why it does no harm) of each mutant that no check detected.

    An empty reason means that the mutant does harm and the assertions have a gap.
    """
    rows = []
    for outcome in outcomes:
        equivalent = next((score for score in outcome.scores if score.name == "equivalent"), None)
        if equivalent is not None or outcome.score("killed") == 0:
            rows.append((outcome.trial.case_id, outcome.trial.variant, equivalent.reason if equivalent else ""))
    return rows


def skip_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return one score, always 1, per assertion that was skipped or could not read all places, with the reason."""
    return [Score(name=f"{SKIPPED}{one.claim}", value=1.0, reason=one.found) for one in findings if _is_limited(one)]


def residue_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return one score per assertion that found a text in files: the number of places, which the reason lists."""
    return [
        Score(name=f"{RESIDUE}{one.claim}", value=float(len(one.places)), reason="; ".join(map(str, one.places)))
        for one in findings
        if one.places
    ]


def fate_scores(findings: Sequence[Finding]) -> list[Score]:
    """Return one score per forbidden write of an agent: 1 if it was stored, else 0. The reason begins with its fate.

    A broken finding whose writes are unknown has one score. The names of the second and further scores of a claim have
    a number.
    """
    fates = [
        (one.claim, fate, found)
        for one in findings
        if one.fate is not None
        for fate, found in ([(write.fate, str(write)) for write in one.writes] or [(one.fate, one.found)])
    ]
    counts: Counter[str] = Counter()
    scores = []
    for claim, fate, found in fates:
        counts[claim] += 1
        name = f"{ATTEMPT}: {claim}" if counts[claim] == 1 else f"{ATTEMPT} {counts[claim]}: {claim}"
        scores.append(Score(name=name, value=float(fate == "stored"), reason=f"{fate}: {found}"))
    return scores


def attempts_in(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str, str]]:
    """Return (scenario, attempt, claim, fate, description of the write) of each forbidden write of an agent."""
    return [
        (outcome.trial.case_id, outcome.trial.variant, attempt["claim"], *score.reason.partition(": ")[::2])
        for outcome in outcomes
        for score in outcome.scores
        if (attempt := _ATTEMPT.fullmatch(score.name))
    ]


def residue(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """Return (scenario, phase, claim, files with offsets) of each assertion that found a text in files."""
    return _reasons(outcomes, RESIDUE)


def add_skips(reason: str, findings: Sequence[Finding]) -> str:
    """Append a text such as `2 checks skipped: …; 1 check limited: …` to the reason, if there are such checks."""
    parts = [reason] if reason else []
    for status, word in (("skipped", "skipped"), ("held", "limited")):
        claims = [finding.claim for finding in findings if _is_limited(finding) and finding.status == status]
        if claims:
            parts.append(f"{len(claims)} check{'' if len(claims) == 1 else 's'} {word}: {', '.join(claims)}")
    return "; ".join(parts)


def skipped_checks(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """Return (scenario, phase, claim, reason) of each assertion that was skipped or could not read all places."""
    return _reasons(outcomes, SKIPPED)


def _reasons(outcomes: Iterable[Outcome], prefix: str) -> list[tuple[str, str, str, str]]:
    rows = (
        (outcome.trial.case_id, outcome.trial.labels.get("phase", ""), score.name.removeprefix(prefix), score.reason)
        for outcome in outcomes
        for score in outcome.scores
        if score.name.startswith(prefix)
    )
    return list(dict.fromkeys(rows))


def _is_limited(finding: Finding) -> bool:
    return finding.status == "skipped" or (finding.status == "held" and finding.found != "")
