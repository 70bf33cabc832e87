"""What a phase came to. A service that breaks is none of these: it raises, and the trial has failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from memorybench.core.errors import Lacking
from memorybench.core.records import Record, canonical

from .claims import Finding
from .defences import Defence, defence_of
from .driver import Ground, judged, play, prepared
from .evidence import Call, OpenStore
from .planted import expanded
from .scenario import Scenario, Violation
from .script import Script, Step

Result = Literal["compliant", "violated", "defended", "detected", "missed", "skipped"]


class PhaseReport(Record):
    result: Result
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    calls: tuple[Call, ...] = ()
    left: str = ""
    """The digest of what the memory held in the end, ids aside."""

    @property
    def killed(self) -> bool:
        """Whether a script that should not pass was caught: by an assertion, or by the store that refused."""
        broken = any(finding.status == "broken" for finding in self.findings)
        return broken or any(call.refused is not None for call in self.calls)

    def harmless_beside(self, original: PhaseReport) -> bool:
        """Whether it made every call of the original, and left the memory as that did."""
        made = Counter(_said(call) for call in self.calls)
        return self.left == original.left and Counter(_said(call) for call in original.calls) <= made


def _said(call: Call) -> str:
    return canonical([call.op, call.user, call.arguments])


async def behave(open_store: OpenStore, scenario: Scenario, seed: int, script: Script) -> PhaseReport:
    """Plays a script that is held to the assertions of the well-behaved phase: the scenario's own, or a mutant."""
    try:
        async with prepared(open_store, scenario, seed) as ground:
            played = await play(ground, _grown(script, ground))
            seen = await judged(ground, played, "well_behaved")
    except Lacking as error:
        return PhaseReport(result="skipped", reason=str(error))
    result, reason = _behaved(seen.findings, played.calls)
    return PhaseReport(result=result, reason=reason, findings=seen.findings, calls=tuple(played.calls), left=seen.left)


def _grown(script: Script, ground: Ground) -> list[Step]:
    """With what is planted: a mutant comes with placeholders, as the file has them."""
    return [type(step).model_validate(expanded(step.plain(), ground.planted)) for step in script]


def _behaved(seen: Sequence[Finding], calls: Sequence[Call]) -> tuple[Result, str]:
    problems = [f"{finding.claim}: {finding.found}" for finding in seen if finding.status == "broken"]
    problems += [f"{call.op}: the store refused: {call.refused}" for call in calls if call.refused is not None]
    problems += [f"{call.op}: {call.undone}" for call in calls if call.undone is not None]
    if problems:
        return "violated", "; ".join(problems)
    if all(finding.status == "skipped" for finding in seen):
        return "skipped", "; ".join(dict.fromkeys(finding.found for finding in seen))
    return "compliant", ""


async def violate(open_store: OpenStore, scenario: Scenario, seed: int) -> PhaseReport:
    """Plays the declared misbehaviour: the store must defend itself, or an assertion must catch it."""
    try:
        async with prepared(open_store, scenario, seed) as ground:
            violation = ground.scenario.deterministic.violation
            played = await play(ground, violation.steps)
            seen = (await judged(ground, played, "violation")).findings
            defence = await defence_of(ground, played, seen)
    except Lacking as error:
        return PhaseReport(result="skipped", reason=str(error))
    if defence is not None and defence.counts:
        return PhaseReport(result="defended", reason=defence.told, findings=seen, calls=tuple(played.calls))
    result, reason = _undefended(violation, seen, played.calls, defence)
    return PhaseReport(result=result, reason=reason, findings=seen, calls=tuple(played.calls))


def _undefended(
    violation: Violation, seen: Sequence[Finding], calls: Sequence[Call], defence: Defence | None
) -> tuple[Result, str]:
    broken = [f"{finding.claim}: {finding.found}" for finding in seen if finding.status == "broken"]
    if broken:
        return "detected", "; ".join(broken)
    blind = [f"{finding.claim}: {finding.found}" for finding in seen if finding.status == "skipped"]
    if blind:
        return "skipped", "; ".join(blind)
    undone = next((call.undone for call in calls if call.undone is not None), None)
    if undone is not None:
        return "skipped", f"the misbehaviour could not be played: {undone}"
    if defence is not None:
        return "missed", defence.told
    if any(call.refused is not None for call in calls):
        return "skipped", "the store refused the misbehaviour: there is nothing to detect"
    if violation.expectation == "detect":
        return "missed", "every assertion holds"
    return "missed", "every assertion holds, and nothing was refused: a write that vanishes is no defence"
