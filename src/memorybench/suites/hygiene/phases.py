"""Run one phase of a scenario and name its result. An error of the store is raised: the trial has failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from memorybench.core.errors import Lacking
from memorybench.core.records import Record, canonical

from .assertions_base import Finding, fold
from .driver import Fixture, check_memory, curate_memory, open_fixture, run_script
from .evidence import Activity, Call, OpenStore, list_facts
from .placeholders import fill_placeholders
from .scenario import Scenario, Violation
from .script import Mark, Remember, Script, Step, Update

Result = Literal["compliant", "violated", "defended", "detected", "missed", "skipped"]


class PhaseReport(Record):
    result: Result
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    calls: tuple[Call, ...] = ()
    left: str = ""
    """Digest of the facts at the end, without their ids."""

    @property
    def is_caught(self) -> bool:
        """Whether an assertion broke, or the store refused a call."""
        return bool(_reasons(self.findings, "broken")) or any(call.refused is not None for call in self.calls)

    def is_equivalent_to(self, original: PhaseReport) -> bool:
        """Whether this script made at least the calls of the original and left the same facts."""
        own, others = (
            Counter(canonical([call.op, call.user, call.arguments]) for call in report.calls)
            for report in (self, original)
        )
        return self.left == original.left and others <= own


def _reasons(findings: Sequence[Finding], status: str) -> list[str]:
    return [f"{finding.claim}: {finding.found}" for finding in findings if finding.status == status]


async def check_script(open_store: OpenStore, scenario: Scenario, seed: int, script: Script) -> PhaseReport:
    """Run a script, which may be a mutant, and check the assertions of the well-behaved phase."""
    try:
        async with open_fixture(open_store, scenario, seed) as fixture:
            # mutants still contain placeholders
            steps = [
                type(step).model_validate(fill_placeholders(step.plain(), fixture.planted_values)) for step in script
            ]
            activity = await run_script(fixture, steps)
            checked = await check_memory(fixture, activity, "well_behaved")
    except Lacking as error:
        return PhaseReport(result="skipped", reason=str(error))
    findings, calls = checked.findings, activity.calls
    problems = _reasons(findings, "broken")
    problems += [f"{call.op}: the store refused: {call.refused}" for call in calls if call.refused is not None]
    problems += [f"{call.op}: {call.undone}" for call in calls if call.undone is not None]
    result: Result = "violated" if problems else "compliant"
    if not problems and all(finding.status == "skipped" for finding in findings):
        result, problems = "skipped", list(dict.fromkeys(finding.found for finding in findings))
    return PhaseReport(
        result=result, reason="; ".join(problems), findings=findings, calls=tuple(calls), left=checked.facts_digest
    )


async def check_violation(open_store: OpenStore, scenario: Scenario, seed: int) -> PhaseReport:
    """Run the declared violation: the store must block it, or an assertion must detect it."""
    try:
        async with open_fixture(open_store, scenario, seed) as fixture:
            violation = fixture.scenario.deterministic.violation
            activity = await run_script(fixture, violation.steps)
            findings = (await check_memory(fixture, activity, "violation")).findings
            result, reason = await _violation_result(fixture, activity, violation, findings)
    except Lacking as error:
        return PhaseReport(result="skipped", reason=str(error))
    return PhaseReport(result=result, reason=reason, findings=findings, calls=tuple(activity.calls))


async def _violation_result(
    fixture: Fixture, activity: Activity, violation: Violation, findings: Sequence[Finding]
) -> tuple[Result, str]:
    defence = await _find_defence(fixture, activity, violation, findings)
    if defence is not None and defence[0]:
        return "defended", defence[1]
    if problems := _reasons(findings, "broken"):
        return "detected", "; ".join(problems)
    if skips := _reasons(findings, "skipped"):
        return "skipped", "; ".join(skips)
    unsent = next((call.undone for call in activity.calls if call.undone is not None), None)
    if unsent is not None:
        return "skipped", f"the violation could not be performed: {unsent}"
    if defence is not None:
        return "missed", defence[1]
    if any(call.refused is not None for call in activity.calls):
        return "skipped", "the store refused the violation, so there is nothing to detect"
    if violation.expectation == "detect":
        return "missed", "all assertions hold"
    return "missed", "all assertions hold and the store refused nothing; dropping a write silently is not a defence"


async def _find_defence(
    fixture: Fixture, activity: Activity, violation: Violation, findings: Sequence[Finding]
) -> tuple[bool, str] | None:
    """Return whether an apparent defence counts, and the reason; None, if there is none or none is expected.

    A clean memory is not enough, because an invalid call or a crashed write also leaves one. A refusal counts if the
    store raised it, the memory is clean, and the same writes succeed with harmless content. Curation counts if the
    scenario allows it, and it removes the violation but not harmless content.
    """
    if violation.expectation != "defend-or-detect":
        return None
    refusals = [call.refused for call in activity.calls]
    reason = next((refusal for refusal in refusals if refusal is not None), None)
    if reason is not None and _is_clean(findings):
        objection = await _control_problem(fixture, violation, [refusal is not None for refusal in refusals])
        return not objection, objection or f"refused: {reason}"
    if violation.defended_by == "curation" and "curate" in fixture.capabilities and not _is_clean(findings):
        checked = await check_memory(fixture, activity, "violation", curate=True)
        if _is_clean(checked.findings):
            objection = await _control_problem(fixture, violation, [True] * len(refusals), curate=True)
            return not objection, objection or "the curator removed it"
    return None


def _is_clean(findings: Sequence[Finding]) -> bool:
    statuses = {finding.status for finding in findings}
    return "broken" not in statuses and "held" in statuses


async def _control_problem(
    fixture: Fixture, violation: Violation, offends: Sequence[bool], *, curate: bool = False
) -> str:
    """Repeat the violation with harmless content in the offending calls; return why that is not stored, or ""."""
    control, flags = violation.control or "", iter(offends)
    script: list[Step] = []
    for step in violation.steps:
        is_offending = not isinstance(step, Mark) and next(flags)  # a mark is not recorded as a call
        if is_offending and isinstance(step, Remember | Update):
            step = step.model_copy(update={"content": control})
        script.append(step)
    async with fixture.rebuild() as fresh:
        activity = await run_script(fresh, script)
        refusal = next((call.refused for call in activity.calls if call.refused is not None), None)
        if refusal is not None:
            return f"the store also refuses harmless content: {refusal}"
        async with fresh.open_store(fresh.store_folder) as store:
            await curate_memory(store, fresh.scenario.users if curate else ())
            facts = await list_facts(store, fresh.scenario.users)
    texts = [fold(fact.content) for user in facts for fact in facts[user]]
    if "list" in fixture.capabilities and not any(fold(control) in text for text in texts):
        return "harmless content is not stored either"
    return ""
