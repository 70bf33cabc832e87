"""Checks that a bundle has the trials that its settings ask for, with their cases and steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TypeGuard

from memorybench.core.records import canonical
from memorybench.engine.steps import step_key
from memorybench.secrets.redaction import REDACTED
from memorybench.suites.replayed_steps import CannotRescore, Rescorer
from memorybench.text.quantities import quantity

from .bundled_run import BundledRun
from .claims import Claim, bundle_text, claim, claims, outcome_name


def input_claims(bundle: BundledRun) -> Iterator[Claim]:
    """Check that the key of each step is the digest of its name and inputs."""
    if bundle.is_public:
        yield claim("inputs of steps", "unchecked", "left out of a public bundle", n=len(bundle.steps))
        return
    wrong, redacted = [], 0
    for key, step in bundle.steps.items():
        inputs = canonical(step.inputs)
        if step_key(step.name, inputs) != key:
            if REDACTED in inputs:
                redacted += 1
            else:
                wrong.append(f"{bundle_text(step.name)} {key}")
    proved = len(bundle.steps) - len(wrong) - redacted
    yield claim("inputs of steps", "proved", "the key of each step is the digest of its inputs", n=proved)
    yield from claims("inputs of steps", "unchecked", "a secret was removed from them", n=redacted)
    yield from claims("inputs of steps", "contradicted", "the key of a step is not the digest of its inputs", wrong)


def trial_claims(bundle: BundledRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check that each planned trial has one outcome, with recorded steps and a recorded case."""
    wrong, unknown = [], ""
    places = set()
    for row in bundle.outcomes:
        outcome, name = row.body, outcome_name(row.body)
        if outcome.trial.key != row.trial:
            wrong.append(f"{name}: its recorded key is not the digest of its trial")
        if row.ordinal in places:
            wrong.append(f"{name}: another outcome has the same place in the order of trials")
        places.add(row.ordinal)
        if outcome.trial.suite != bundle.run.suite:
            wrong.append(
                f"{name}: belongs to the suite {bundle_text(outcome.trial.suite)}, but the run to {bundle.run.suite}"
            )
        if outcome.status == "scored":
            if (outcome.trial.benchmark, outcome.trial.case_id) not in bundle.cases:
                wrong.append(f"{name}: its case is not in the bundle")
            missing = [key for key in outcome.steps if key not in bundle.steps and key not in bundle.attempted]
            wrong += [f"{name}: its step {key} is not in the bundle" for key in missing]
            if outcome.failure is not None:
                wrong.append(f"{name}: its status is scored, but a failure is recorded for it")
        elif outcome.scores and outcome.status != "unscored":
            wrong.append(f"{name}: its status is {outcome.status}, but scores are recorded for it")
    planned, found = bundle.run.planned, len(bundle.outcomes)
    if found > planned or (found < planned and bundle.run.status == "complete"):
        wrong.append(f"the bundle has {quantity(found, 'outcome')}, but the run planned {quantity(planned, 'trial')}")
    if bundle.is_whole and places and (len(places) != planned or max(places) >= planned):
        wrong.append("some places in the order of trials have no outcome")
    if found < planned:
        unknown = f"the run is not complete: {planned - found} planned trials have no outcome"
    else:  # also in a shard, and in a run with failed trials
        try:
            wrong += _other_subjects(bundle) or _other_trials(bundle, rescorer)
        except CannotRescore as error:
            unknown = bundle_text(str(error))
    asked = {(row.body.trial.benchmark, row.body.trial.case_id) for row in bundle.outcomes}
    wrong += [
        f"case {bundle_text(id)}: has no outcome" for benchmark, id in bundle.cases if (benchmark, id) not in asked
    ]
    if wrong:
        yield claim("trials", "contradicted", "outcomes do not fit the run, its cases and its steps", wrong)
    elif unknown:
        yield claim("trials", "declared", f"that no trials are missing or added ({unknown})", n=found)
    else:
        text = "each subject of the settings has an outcome for each trial of each case, with its steps"
        yield claim("trials", "proved", text, n=found)


def _other_subjects(bundle: BundledRun) -> list[str]:
    """Return a text per benchmark or subject for which the outcomes of a complete run differ from its settings."""
    spec = bundle.run.spec
    benchmarks, subjects = spec.get("benchmarks"), spec.get("subjects")
    if not _are_names(benchmarks) or not _are_names(subjects):
        raise CannotRescore("the recorded settings do not name the benchmarks and subjects of the run")
    keys: dict[str, set[str]] = defaultdict(set)
    found: dict[tuple[str, str], int] = Counter()
    for row in bundle.outcomes:
        trial = row.body.trial
        keys[trial.subject.name].add(trial.subject.key)
        found[trial.benchmark, trial.subject.name] += 1
    saved = spec.get("questions")
    sizes = saved if isinstance(saved, dict) else {}
    # traces may have no operations of one kind
    named = [name for name in benchmarks if sizes.get(name) != 0 or any(own == name for own, _ in found)]
    expected = {(benchmark, subject) for benchmark in named for subject in subjects}
    wrong = [
        f"{bundle_text(name)}: its outcomes record different settings" for name, own in keys.items() if len(own) > 1
    ]
    wrong += [
        f"{bundle_text(one)}: {bundle_text(name)} has no outcomes" for one, name in sorted(expected - found.keys())
    ]
    wrong += [
        f"{bundle_text(one)}: the settings do not name {bundle_text(name)}, which has outcomes"
        for one, name in sorted(found.keys() - expected)
    ]
    if len(set(subjects)) != len(subjects):
        wrong.append("the settings name a subject twice")
    return wrong


def _other_trials(bundle: BundledRun, rescorer: Rescorer) -> list[str]:
    """Return one text per problem if not every subject of a complete run has every case in every repeat."""
    repeats = bundle.run.spec.get("repeats") or 1
    if not isinstance(repeats, int) or not 1 <= repeats <= max(1, len(bundle.outcomes)):
        return ["the number of repeats in the settings does not fit the number of outcomes"]
    found: dict[tuple[str, str, str], list[tuple[str, int]]] = defaultdict(list)
    cases: dict[str, set[str]] = defaultdict(set)
    subjects = set()
    for row in bundle.outcomes:
        trial = row.body.trial
        found[trial.benchmark, trial.case_id, trial.subject.key].append((trial.variant, trial.repeat))
        cases[trial.benchmark].add(trial.case_id)
        subjects.add(trial.subject.key)
    if len(subjects) * sum(map(len, cases.values())) > len(bundle.outcomes):
        return ["a subject has no outcomes for cases that another subject has"]
    wrong = []
    for benchmark, ids in cases.items():
        for id in sorted(ids):
            case = bundle.cases.get((benchmark, id))
            expected = rescorer.trials_of_case(case.body if case else None)
            for subject in subjects:
                own = sorted(found[benchmark, id, subject])
                if expected is None:  # one trial per repeat; its variant is compared with the case elsewhere
                    is_same = sorted(repeat for _, repeat in own) == list(range(1, repeats + 1))
                else:
                    is_same = own == sorted(expected)
                if not is_same:
                    case_name = f"{bundle_text(benchmark)} × {bundle_text(id)}"
                    wrong.append(f"{case_name}: the trials of a subject are not those that the settings ask for")
    return wrong


def _are_names(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
