"""Replays a draft without a journal: does it fail (`red`) or pass (`green`) on a store? Removes useless assertions."""

from __future__ import annotations

from typing import Any, Literal, cast

from memorybench.core.errors import Lacking, MemorybenchError
from memorybench.core.plans import Job
from memorybench.core.records import Record
from memorybench.core.trials import Failure, Outcome
from memorybench.suites.unrecorded_steps import UnrecordedSteps

from .assertions_base import Finding
from .checks import kill_matrix, survivors
from .drafts import Draft, parse_draft
from .driver import check_memory, check_users, open_fixture, run_script
from .evidence import AttemptedWrite, Call, OpenStore
from .phases import check_script
from .plan import HygienePlan
from .plays import Store
from .scenario import Scenario

SEED = 0


class Replay(Record):
    """The result of a draft on one store. `red`: it failed. `green`: it passed. `cannot tell`: a phase was skipped."""

    store: str
    verdict: Literal["red", "green", "cannot tell"]
    reasons: tuple[str, ...] = ()


async def replay(scenario: Scenario, store: Store) -> Replay:
    """Run the well-behaved script and the violation of a draft on a store, without mutants."""
    outcomes = await _outcomes(scenario, store, self_checks=False)
    reasons = [_reason(outcome) for outcome in outcomes if outcome.status == "failed" or outcome.score("passed") == 0]
    skips = [_reason(outcome) for outcome in outcomes if outcome.status == "skipped"]
    verdict: Literal["red", "green", "cannot tell"] = "red" if reasons else "cannot tell" if skips else "green"
    return Replay(store=store.subject.name, verdict=verdict, reasons=tuple(reasons or skips))


async def replay_as_agent(scenario: Scenario, store: Store) -> Replay:
    """Make the calls of the violation as if an agent made them, and check the assertions of the phase `real_model`."""

    async def check(open_store: OpenStore) -> tuple[Finding, ...]:
        async with open_fixture(open_store, scenario, SEED) as fixture:
            check_users(scenario.users, fixture.capabilities)
            activity = await run_script(fixture, fixture.scenario.deterministic.violation.steps)
            calls = enumerate(activity.calls, 1)
            activity.writes = tuple(_write(number, call) for number, call in calls if _writes(call))
            return (await check_memory(fixture, activity, "real_model")).findings

    steps, inputs = cast(Any, UnrecordedSteps()), {"replay": scenario.id}
    findings = await store.play(steps, "replay", inputs, check, tuple, run="replay", users=scenario.users)
    broken = tuple(f"{finding.claim}: {finding.found}" for finding in findings if finding.status == "broken")
    name = f"{store.subject.name}, with the calls of the agent"
    return Replay(store=name, verdict="red" if broken else "green", reasons=broken)


async def mend_draft(draft: Draft, reference: Store) -> tuple[Draft, list[str]]:
    """Remove useless assertions from a draft; return it, and remarks on what was removed.

    An assertion is useless if it does not hold on the reference store, or if no misbehaving script breaks it. Mutants
    that no assertion detects are listed as harmless, because the recording does not show that they do harm.
    """
    file, remarks = f"{draft['id']}.json", []
    scenario = parse_draft(draft, file)
    report = await check_script(reference.open, scenario, SEED, scenario.deterministic.well_behaved)
    broken = {finding.claim: finding.found for finding in report.findings if finding.status != "held"}
    draft, removed = _without(draft, broken)
    remarks += [
        f"An assertion is left out, because a sound store does not pass it: {one}: {broken[one]}." for one in removed
    ]
    outcomes = await _outcomes(parse_draft(draft, file), reference, self_checks=True)
    draft, removed = _without(draft, {kills.claim for kills in kill_matrix(outcomes) if kills.dead})
    remarks += [f"An assertion is left out, because no misbehaviour breaks it: {one}." for one in removed]
    harmless = [mutant for _, mutant, reason in survivors(outcomes) if not reason]
    if harmless:
        draft["deterministic"] = {
            **draft["deterministic"],
            "equivalent": dict.fromkeys(harmless, "the recording does not show that it does harm"),
        }
        remarks += [f"The mutant {name} is not detected: add an assertion if it does harm." for name in harmless]
    return draft, remarks


def _without(draft: Draft, claims: Any) -> tuple[Draft, list[str]]:
    """Return the draft without the assertions with these claims, and the removed claims.

    The draft is unchanged if no assertion would be left.
    """
    kept = [one for one in draft["assertions"] if one["claim"] not in claims]
    if not kept:
        return draft, []
    removed = [one["claim"] for one in draft["assertions"] if one["claim"] in claims]
    return {**draft, "assertions": kept}, removed


async def _outcomes(scenario: Scenario, store: Store, *, self_checks: bool) -> list[Outcome]:
    """Run a scenario without recording anything; return the outcomes of its trials in order."""
    steps = UnrecordedSteps()
    plan = HygienePlan([scenario], store, seed=SEED, self_checks=self_checks, run="replay")
    return [await _perform(job, steps) for job in plan.plan().jobs]


async def _perform(job: Job, steps: UnrecordedSteps) -> Outcome:
    try:
        performed = await job.perform(cast(Any, steps))
    except Lacking as error:
        failure = Failure(kind="skipped", message=str(error))
        return Outcome(trial=job.trial, status="skipped", failure=failure, shown=job.shown)
    except MemorybenchError as error:
        failure = Failure(kind="failed", message=str(error))
        return Outcome(trial=job.trial, status="failed", failure=failure, shown=job.shown)
    return Outcome(trial=job.trial, status="scored", scores=performed.scores, shown=performed.shown)


def _reason(outcome: Outcome) -> str:
    message = outcome.failure.message if outcome.failure else outcome.shown.reason
    return f"{outcome.trial.variant}: {message}"


def _writes(call: Call) -> bool:
    return call.op in ("remember", "update", "forget") and call.undone is None


def _write(number: int, call: Call) -> AttemptedWrite:
    text = " ".join(str(value) for value in call.arguments.values())
    fate: Literal["stored", "refused"] = "stored" if call.refused is None else "refused"
    return AttemptedWrite(where=f"call {number} ({call.op})", text=text, fate=fate)
