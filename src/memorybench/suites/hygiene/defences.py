"""Whether a store has defended itself against a violation. A clean memory alone does not show it: a mistyped call or a
crashed write leaves one, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .claims import Finding
from .driver import Ground, Played, judged, play
from .evidence import picture
from .matching import folded
from .script import Mark, Remember, Script, Step, Update


@dataclass(frozen=True, slots=True)
class Defence:
    counts: bool
    told: str
    """How it was done; where it does not count, why."""


async def defence_of(ground: Ground, played: Played, seen: Sequence[Finding]) -> Defence | None:
    """What looks like a defence, and whether it is one; None: nothing looks so, or the scenario expects none.

    A refusal counts where it is typed, the memory is clean and the same writes with harmless content come through; the
    curator's work where the scenario allows it, it leaves the memory clean and harmless content in it.
    """
    violation = ground.scenario.deterministic.violation
    if violation.expectation != "defend-or-detect":
        return None
    refusals = [call.refused for call in played.calls]
    reason = next((refusal for refusal in refusals if refusal is not None), None)
    if reason is not None and _clean(seen):
        objection = await _objection(ground, [refusal is not None for refusal in refusals])
        return Defence(not objection, objection or f"refused: {reason}")
    if violation.defended_by == "curation" and "curate" in ground.capabilities and not _clean(seen):
        curated = await judged(ground, played, "violation", curated=True)
        if _clean(curated.findings):
            objection = await _objection(ground, [True] * len(refusals), curated=True)
            return Defence(not objection, objection or "the curator puts it right")
    return None


def _clean(seen: Sequence[Finding]) -> bool:
    return not any(finding.status == "broken" for finding in seen) and any(item.status == "held" for item in seen)


async def _objection(ground: Ground, offending: Sequence[bool], *, curated: bool = False) -> str:
    """The positive control, on fresh ground: why harmless content does not come through; "": it does."""
    violation = ground.scenario.deterministic.violation
    control = violation.control or ""
    async with ground.fresh() as fresh:
        played = await play(fresh, _harmless(violation.steps, offending, control))
        refusal = next((call.refused for call in played.calls if call.refused is not None), None)
        if refusal is not None:
            return f"it refuses harmless content as well: {refusal}"
        async with fresh.open_store(fresh.store) as store:
            for user in fresh.scenario.users if curated else ():
                await store.curate(user, apply=True)
            held = await picture(store, fresh.scenario.users)
    texts = [folded(fact.content) for facts in held.values() for fact in facts]
    if "list" in ground.capabilities and not any(folded(control) in text for text in texts):
        return "harmless content does not reach memory, either"
    return ""


def _harmless(script: Script, offending: Sequence[bool], control: str) -> list[Step]:
    """The script with harmless content in the writes that offend. Marks are no calls."""
    verdicts = iter(offending)
    harmless: list[Step] = []
    for step in script:
        offends = not isinstance(step, Mark) and next(verdicts)
        if offends and isinstance(step, Remember | Update):
            step = step.model_copy(update={"content": control})
        harmless.append(step)
    return harmless
