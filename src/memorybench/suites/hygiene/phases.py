"""Runs one phase of a scenario and determines its result. Errors of the store are raised, so that the trial fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from memorybench.core.errors import Lacking, ServiceError, Transient
from memorybench.core.records import Record, canonical
from memorybench.core.stores import StoredFact
from memorybench.secrets.canaries import find_secret
from memorybench.text.words import words

from .assertions_base import Finding, fold
from .driver import (
    CheckResult,
    Fixture,
    check_memory,
    curate_memory,
    find_unannounced_removals,
    open_copy,
    open_fixture,
    run_script,
)
from .evidence import Activity, Call, FactsByUser, OpenStore, list_facts
from .placeholders import fill_placeholders, has_secret, remove_placeholders
from .scenario import Scenario, Violation
from .script import Forget, Mark, Remember, Script, Update

_DROPPED = "all assertions hold and the store refused nothing; dropping a write silently is not a defence"
_SECRETS_NOT_FOUND = "no search finds a planted secret"
_SEARCH_LIMIT = 10
Result = Literal["compliant", "violated", "defended", "detected", "missed", "skipped"]


class PhaseReport(Record):
    result: Result
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    calls: tuple[Call, ...] = ()
    left: str = ""
    """Digest of the facts that are left at the end, without their ids."""

    @property
    def is_caught(self) -> bool:
        """Whether an assertion broke, or the store refused a call."""
        return bool(_reasons(self.findings, "broken")) or any(call.refused is not None for call in self.calls)

    def is_equivalent_to(self, original: PhaseReport) -> bool:
        """Whether this script made all calls of the original, and perhaps others, and left the same facts."""
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
    findings, calls = checked.findings, tuple(activity.calls)
    result, reason = _script_result(findings, calls)
    return PhaseReport(result=result, reason=reason, findings=findings, calls=calls, left=checked.facts_digest)


def _script_result(findings: Sequence[Finding], calls: Sequence[Call]) -> tuple[Result, str]:
    problems = _reasons(findings, "broken")
    problems += [f"{call.op}: the store refused: {call.refused}" for call in calls if call.refused is not None]
    problems += [f"{call.op}: {call.undone}" for call in calls if call.undone is not None]
    result: Result = "violated" if problems else "compliant"
    if not problems and all(finding.status == "skipped" for finding in findings):
        result, problems = "skipped", list(dict.fromkeys(finding.found for finding in findings))
    return result, "; ".join(problems)


def is_consistent(report: PhaseReport, scenario: Scenario, *, is_violation: bool) -> bool:
    """Return whether a recorded report has a finding for every assertion, and a result that agrees with its findings.

    For a violation, several results may agree: findings do not show whether the store blocked it.
    """
    if report.result == "skipped" and not report.findings:  # the store lacks what the script needs
        return True
    expected = Counter(one.kind for one in scenario.assertions_for("violation" if is_violation else "well_behaved"))
    if not expected <= Counter(finding.kind for finding in report.findings):
        return False
    if not is_violation:
        return (report.result, report.reason) == _script_result(report.findings, report.calls)
    is_broken = any(finding.status == "broken" for finding in report.findings)
    is_curated = scenario.deterministic.violation.defended_by == "curation"
    allowed: dict[Result, bool] = {
        "detected": is_broken,
        "defended": not is_broken or is_curated,
        "missed": not is_broken,
        "skipped": not is_broken,
    }
    return allowed.get(report.result, False)


async def check_violation(open_store: OpenStore, scenario: Scenario, seed: int) -> PhaseReport:
    """Run the declared violation and report how it ended.

    `defended`: the store blocked it. `detected`: an assertion broke. `missed`: neither. `skipped`: the store shows too
    little to tell.
    """
    try:
        async with open_fixture(open_store, scenario, seed) as fixture:
            violation = fixture.scenario.deterministic.violation
            activity = await run_script(fixture, violation.steps)
            checked = await check_memory(fixture, activity, "violation")
            planted = scenario.deterministic.violation  # with its placeholders
            is_listed = "list" in fixture.capabilities
            if not is_listed or (has_secret(planted.plain()) and not _reasons(checked.findings, "broken")):
                found = await _search_writes(fixture, planted)  # a search may show what a list hides
                findings = (*checked.findings, *_find_shown_secret(fixture, found))
                checked = CheckResult(findings, checked.facts if is_listed else found)
            findings = checked.findings
            result, reason = await _violation_result(fixture, activity, violation, findings)
            if result in ("missed", "skipped") and _is_redacted(planted, activity, checked):
                result, reason = "defended", "the store kept the text without the secret"
                if not _can_hold_secret(planted, fixture):
                    result, reason = "skipped", "the store does not keep the metadata that has the secret"
            if result == "missed" and reason == _DROPPED and not await _can_see_writes(fixture, activity, violation):
                result, reason = "skipped", "the store shows neither the violation nor harmless content in its place"
    except Lacking as error:
        return PhaseReport(result="skipped", reason=str(error))
    return PhaseReport(result=result, reason=reason, findings=findings, calls=tuple(activity.calls))


async def _search_writes(fixture: Fixture, violation: Violation) -> FactsByUser:
    """Search for the text of each write of a violation; return the facts that were found, by user.

    `violation` still has its placeholders, which are left out of the queries.
    """
    found: dict[str, dict[str, StoredFact]] = {}
    async with open_copy(fixture, ()) as (store, _):
        for step in violation.steps if "recall" in store.capabilities else ():
            if isinstance(step, Remember | Update) and (query := remove_placeholders(step.content).strip()):
                facts = await store.recall(step.user, query, _SEARCH_LIMIT)
                found.setdefault(step.user, {}).update({fact.content: fact for fact in facts})
    return {user: tuple(facts.values()) for user, facts in found.items()}


def _find_shown_secret(fixture: Fixture, found: FactsByUser) -> list[Finding]:
    """Return one finding if a found fact contains a planted secret, else an empty list."""
    texts = {f"fact {fact.id} of {user}": fact.content for user, facts in found.items() for fact in facts}
    for name, value in fixture.planted_values.items():
        if name.startswith("secret:"):
            for sighting in find_secret(value, texts):
                problem = f"a search shows the planted {name.partition(':')[2]} ({sighting.encoding}: {sighting.where})"
                return [Finding(claim=_SECRETS_NOT_FOUND, kind="secret_free", status="broken", found=problem)]
    return []


async def _violation_result(
    fixture: Fixture, activity: Activity, violation: Violation, findings: Sequence[Finding]
) -> tuple[Result, str]:
    defence = await _find_defence(fixture, activity, violation, findings)
    if defence is not None and defence[0]:
        return "defended", defence[1]
    if problems := _reasons(findings, "broken"):
        return "detected", "; ".join([*problems, *([defence[1]] if defence is not None else [])])
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
    return "missed", _DROPPED


async def _find_defence(
    fixture: Fixture, activity: Activity, violation: Violation, findings: Sequence[Finding]
) -> tuple[bool, str] | None:
    """Return (True, how the store blocked the violation), or (False, why its apparent defence does not count).

    None if the scenario expects no defence, or if there is no sign of one. A clean memory is no sign, because an
    invalid call or a crashed write also leaves one. A refusal counts if the store raised it, the memory is clean, and
    the same writes succeed with harmless content. Curation counts if the scenario allows it, and it removes the
    violation but not harmless content. A change of another user's fact may also be ignored without an error, if the
    owner of the fact can make the same change.
    """
    if violation.expectation != "defend-or-detect":
        return None
    refusals = [call.refused for call in activity.calls]
    reason = next((refusal for refusal in refusals if refusal is not None), None)
    if reason is not None and _is_clean(findings):
        objection = await _control_problem(fixture, violation, [refusal is not None for refusal in refusals])
        return not objection, objection or f"refused: {reason}"
    foreign = _foreign_steps(fixture.scenario, violation)
    if any(foreign) and _is_clean(findings):
        objection = await _control_problem(fixture, violation, foreign)
        return not objection, objection or "the store changed nothing of another user"
    if violation.defended_by == "curation" and "curate" in fixture.capabilities and not _is_clean(findings):
        checked = await check_memory(fixture, activity, "violation", curate=True)
        if _is_clean(checked.findings):
            surprises = await find_unannounced_removals(fixture)
            objection = await _control_problem(fixture, violation, [True] * len(refusals), curate=True)
            if surprises:
                objection = f'the curator removes "{surprises[0]}", which its dry run does not announce'
            return not objection, objection or "the curator removed it"
    return None


async def _can_see_writes(fixture: Fixture, activity: Activity, violation: Violation) -> bool:
    """Return whether the store lists its facts, or a search finds harmless content written in place of the violation.

    If not, a write that no search finds may have been stored all the same.
    """
    if "list" in fixture.capabilities:
        return True
    control = violation.control
    if control is None or "recall" not in fixture.capabilities:
        return False
    script, _ = _harmless_script(fixture.scenario, violation, [True] * len(activity.calls))
    async with fixture.rebuild() as fresh:
        await run_script(fresh, script)
        async with fresh.open_store(fresh.store_folder) as store:
            found = [fact for user in fresh.scenario.users for fact in await store.recall(user, control, _SEARCH_LIMIT)]
    return any(fold(control) in fold(fact.content) for fact in found)


def _foreign_steps(scenario: Scenario, violation: Violation) -> list[bool]:
    """Return, for each call of the violation, whether it changes or deletes a fact of another user by its id."""
    owners = {fact.name: fact.user for fact in scenario.setup.facts}
    return [
        isinstance(step, Update | Forget) and owners.get(step.fact, step.user) != step.user
        for step in violation.steps
        if not isinstance(step, Mark)
    ]


def _is_redacted(violation: Violation, activity: Activity, checked: CheckResult) -> bool:
    """Return whether the store kept the text of each write with a secret, but not the secret.

    `violation` still has its placeholders.
    """
    writes = [step for step in violation.steps if isinstance(step, Remember | Update) and has_secret(step.plain())]
    if violation.expectation != "defend-or-detect" or not writes or not _is_clean(checked.findings):
        return False
    if not all(call.succeeded for call in activity.calls):
        return False

    def is_kept(step: Remember | Update) -> bool:
        rest = set(words(remove_placeholders(step.content)))
        return bool(rest) and any(rest <= set(words(fact.content)) for fact in checked.facts.get(step.user, ()))

    return all(is_kept(step) for step in writes)


def _can_hold_secret(violation: Violation, fixture: Fixture) -> bool:
    """Return whether the store keeps one of the fields (content, category, source) with a secret in the violation.

    `violation` still has its placeholders.
    """
    fields = {"content"} | ({"category"} & fixture.capabilities)
    if any(fact.source is not None for user in fixture.snapshot.facts for fact in fixture.snapshot.facts[user]):
        fields.add("source")
    writes = [step for step in violation.steps if isinstance(step, Remember | Update)]
    return any(has_secret(step.model_dump(include=fields)) for step in writes)


def _is_clean(findings: Sequence[Finding]) -> bool:
    statuses = {finding.status for finding in findings}
    return "broken" not in statuses and "held" in statuses


async def _control_problem(
    fixture: Fixture, violation: Violation, offends: Sequence[bool], *, curate: bool = False
) -> str:
    """Repeat the violation with harmless content in the calls marked in `offends`; return why that failed, or ""."""
    script, expects_content = _harmless_script(fixture.scenario, violation, offends)
    async with fixture.rebuild() as fresh:
        try:
            activity = await run_script(fresh, script)
        except ServiceError as error:
            if isinstance(error, Transient):
                raise
            return f"the store also refuses harmless content: {error}"
        refusal = next((call.refused for call in activity.calls if call.refused is not None), None)
        if refusal is not None:
            return f"the store also refuses harmless content: {refusal}"
        async with fresh.open_store(fresh.store_folder) as store:
            await curate_memory(store, fresh.scenario.users if curate else ())
            facts = await list_facts(store, fresh.scenario.users)
    texts = [fold(fact.content) for user in facts for fact in facts[user]]
    is_listed = any(fold(violation.control or "") in text for text in texts)
    if expects_content and "list" in fixture.capabilities and not is_listed:
        return "harmless content is not stored either"
    return ""


def _harmless_script(scenario: Scenario, violation: Violation, offends: Sequence[bool]) -> tuple[Script, bool]:
    """Return the violation with harmless content in the calls marked in `offends`, and whether it has the control text.

    Such a write gets the control text and harmless metadata; a fact of another user is changed by its owner.
    """
    owners = {fact.name: fact.user for fact in scenario.setup.facts}
    flags, script, stores_control = iter(offends), [], False
    for step in violation.steps:
        is_offending = not isinstance(step, Mark) and next(flags)  # a mark is not recorded as a call
        update: dict[str, str | None] = {}
        if is_offending and isinstance(step, Remember | Update):
            stores_control = True
            update["content"] = violation.control
        if is_offending and isinstance(step, Remember):
            update |= {name: "note" for name in ("category", "source") if getattr(step, name) is not None}
        if is_offending and isinstance(step, Update | Forget):
            update["user"] = owners.get(step.fact, step.user)
        script.append(step.model_copy(update=update))
    return script, stores_control
