"""Assertions that could not look, and why: a phase that is clean without them may be less clean than it seems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorybench.core.trials import Outcome, Score

from .claims import Finding

SKIPPED = "skipped: "
"""Begins the name of a score: the assertion with that claim could not look, or not everywhere."""


def skip_scores(findings: Sequence[Finding]) -> list[Score]:
    """One for each assertion that did not see all it would look at; its reason tells why."""
    return [Score(name=f"{SKIPPED}{one.claim}", value=1.0, reason=one.found) for one in findings if _impaired(one)]


def unseen(findings: Sequence[Finding]) -> str:
    """`2 checks could not look: …`, for whoever reads the result of a phase; "": all could."""
    parts = []
    for ending, status in (("", "skipped"), (" everywhere", "held")):
        claims = [one.claim for one in findings if _impaired(one) and one.status == status]
        if claims:
            counted = f"{len(claims)} check{'' if len(claims) == 1 else 's'}"
            parts.append(f"{counted} could not look{ending}: {', '.join(claims)}")
    return "; ".join(parts)


def skipped_checks(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str, str]]:
    """Scenario, phase, claim, and why nobody could look; each once, however often it was tried."""
    found = (
        (outcome.trial.case_id, outcome.trial.labels.get("phase", ""), score.name.removeprefix(SKIPPED), score.reason)
        for outcome in outcomes
        for score in outcome.scores
        if score.name.startswith(SKIPPED)
    )
    return list(dict.fromkeys(found))


def _impaired(finding: Finding) -> bool:
    return finding.status == "skipped" or (finding.status == "held" and finding.found != "")
