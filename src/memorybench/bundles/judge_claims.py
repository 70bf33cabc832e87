"""Checks which models a run called, and the verdicts of its judge on answers and on cases with known answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from memorybench.core.errors import Unreadable
from memorybench.core.trials import Subject
from memorybench.judging.canaries import STEP as CANARY
from memorybench.judging.canaries import CanaryReport, check_judge
from memorybench.judging.judge import Judge, Verdict, reread_verdict
from memorybench.suites.blocking import blocking
from memorybench.suites.judge_check import STEP as JUDGE_CHECK
from memorybench.suites.judge_check import canary_limit, check_note, prompts_digest, unchecked_note
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.replayed_steps import (
    VERDICTS,
    CannotRescore,
    RecordedRun,
    ReplayedSteps,
    Rescorer,
    SilentModel,
)
from memorybench.text.quantities import quantity

from .bundled_run import BundledRun
from .claims import Claim, Level, bundle_text, claim, claims
from .rows import StepRow


def judge_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check which models the steps called, the judge's verdicts, and the judge check (on cases with known answers)."""
    yield from _model_claims(bundle)
    yield from _verdict_claims(bundle)
    yield from _canary_claims(bundle, recorded, rescorer)
    yield from _note_claims(bundle, recorded)


def _model_claims(bundle: BundledRun) -> Iterator[Claim]:
    """Check that every model that a step called is named in the settings."""
    if bundle.is_public:
        return  # the inputs of steps are left out, and listed as unchecked
    judges, answerers = (str(bundle.run.spec.get(key) or "").split(", ") for key in ("judge", "answerer"))
    expected = {**dict.fromkeys((*VERDICTS, JUDGE_CHECK), judges), "answer": answerers}
    wrong, proved, declared = [], 0, Counter[str]()
    settings: dict[str, set[str]] = defaultdict(set)
    for step in bundle.steps.values():
        model = _model_of(step)
        if model is None:
            continue
        if step.name in VERDICTS:
            settings[f"judge {model.name}"].add(model.key)
        elif step.name == "answer":
            settings[f"answering model {model.name}"].add(model.key)
        names = expected.get(step.name, [""])
        if names == [""]:
            declared[bundle_text(step.name)] += 1
        elif model.name in names:
            proved += 1
        else:
            wrong.append(f"{bundle_text(step.name)} {step.key} asked {bundle_text(model.name)}")
    yield from claims("models", "proved", "steps asked the models that the settings name", n=proved)
    yield from claims("models", "declared", "which model these steps asked", list(declared), n=declared.total())
    several = [bundle_text(name) for name, keys in settings.items() if len(keys) > 1]
    yield from claims("models", "declared", "why a model has several settings, such as temperatures", several)
    yield from claims("models", "contradicted", "steps asked other models than the settings name", wrong)
    others = _other_subjects(bundle)
    yield from claims(
        "models", "contradicted", "the model or provider of a step differs from the one in its inputs", others
    )


def _other_subjects(bundle: BundledRun) -> list[str]:
    """Return a text for each search, answer or verdict that names another provider or model than its inputs do."""
    asked = {"search": "provider", "answer": "model", **dict.fromkeys(VERDICTS, "model")}
    wrong = []
    for step in bundle.steps.values():
        role = asked.get(step.name)
        own = step.inputs.get(role) if role and isinstance(step.inputs, dict) else None
        if isinstance(own, dict) and (own.get("name"), own.get("role")) != (step.subject, role):
            wrong.append(
                f"{bundle_text(step.name)} {step.key}: recorded for {bundle_text(step.subject)}, but its inputs name"
                f" another {role}"
            )
    return wrong


def _model_of(step: StepRow) -> Subject | None:
    """Return the model in the inputs of a step; None if there is none."""
    model = step.inputs.get("model") or step.inputs.get("judge") if isinstance(step.inputs, dict) else None
    return Subject.model_validate(model) if isinstance(model, dict) else None


def _verdict_claims(bundle: BundledRun) -> Iterator[Claim]:
    judged = [step for step in bundle.steps.values() if step.name in VERDICTS]
    if bundle.is_public:
        text = "the replies of the judge are left out of a public bundle"
        yield from claims("verdicts", "declared", text, n=len(judged))
        return
    proved, declared, wrong = 0, 0, []
    for step in judged:
        try:
            is_same = reread_verdict(Verdict.model_validate(step.result))
        except ValidationError:
            is_same = False
        except Unreadable:
            declared += 1
            continue
        proved += is_same
        if not is_same:
            wrong.append(f"{bundle_text(step.name)} {step.key}")
    yield from claims(
        "verdicts", "proved", "the recorded replies of the judge, read again, give the recorded verdicts", n=proved
    )
    text = "the recorded reply is not the whole reply, and cannot be read again"
    yield from claims("verdicts", "declared", text, n=declared)
    yield from claims(
        "verdicts",
        "contradicted",
        "a recorded reply of the judge, read again, does not give the recorded verdict",
        wrong,
    )


def _canary_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check that the counts of the judge check follow from the recorded verdicts on canaries (known answers)."""
    checks = [step for step in bundle.steps.values() if step.name == JUDGE_CHECK]
    verdicts = [key for key, step in bundle.steps.items() if step.name == CANARY]
    if not checks:
        if verdicts and bundle.run.status == "complete":
            yield claim(
                "canaries",
                "contradicted",
                "there are verdicts on canaries, but no check of the judge that counts them",
                verdicts,
            )
        elif bundle.run.spec.get("judge"):
            yield claim("canaries", "declared", "that the judge was not checked with known answers")
        return
    for step in checks:
        level, text = _canary_level(bundle, step, verdicts, recorded, rescorer, is_only=len(checks) == 1)
        yield claim("canaries", level, text, [step.key] if level == "contradicted" else (), n=len(verdicts))


def _canary_level(
    bundle: BundledRun,
    step: StepRow,
    verdicts: Sequence[str],
    recorded: RecordedRun,
    rescorer: Rescorer,
    *,
    is_only: bool,
) -> tuple[Level, str]:
    unknown = "how the judge decided cases with known answers"
    if bundle.is_public:
        return "declared", unknown
    steps = ReplayedSteps(verdicts, bundle.steps, is_strict=True)
    try:
        judge, limit = Subject.model_validate(step.inputs["judge"]), int(step.inputs["limit"])
        canaries = rescorer.canaries()
        if canaries is None:
            return "declared", unknown
        report = blocking(check_judge(steps, Judge(SilentModel(judge)), canaries[:limit]))
    except (CannotRescore, *ERRORS) as error:
        return "declared", f"{unknown} ({bundle_text(str(error))})"
    is_same = report.plain() == step.result
    # another version may have had other prompts or canaries
    if prompts_digest(canaries) != step.inputs.get("prompts") or (report.unreadable and steps.unused()):
        return "declared", f"{unknown}, which are not those of this version"
    if not is_same or (steps.other_verdicts and recorded.is_of_this_version):
        return "contradicted", "the counts of the check differ from those of the recorded verdicts"
    if steps.other_verdicts or steps.redacted_verdicts:
        return "declared", "that the judge gave these verdicts on known answers: a reply cannot be read again"
    expected = _expected_canaries(bundle, rescorer)
    if recorded.is_of_this_version and limit < 1:
        return "contradicted", "the judge was checked with no known answers"
    if recorded.is_of_this_version and is_only and steps.unused():
        return "contradicted", "not all recorded verdicts on known answers are counted"
    if recorded.is_of_this_version and expected is not None and limit != expected:
        return "contradicted", f"the settings ask for {expected} known answers, but the check used {limit}"
    if report.unreadable:
        return "declared", f"that the judge gave {quantity(report.unreadable, 'reply', 'replies')} that cannot be read"
    if expected != limit or steps.unused() or not report.counts:
        return "declared", "that the judge was checked with these known answers, and no others"
    bundle.same_inputs.update((step.key, *steps.same_inputs))
    return "proved", "the check of the judge counts its recorded verdicts on cases with known answers"


def _expected_canaries(bundle: BundledRun, rescorer: Rescorer) -> int | None:
    """Return how many canaries (known answers) the settings require; None if unknown."""
    asked = bundle.run.spec.get("canaries")
    if asked is not None:
        return asked if isinstance(asked, int) else 0
    if not bundle.is_whole:
        return None
    trials = (row.body.trial for row in bundle.outcomes)
    try:
        calls = [rescorer.judge_calls(bundle.cases[trial.benchmark, trial.case_id].body) for trial in trials]
    except (CannotRescore, LookupError):  # cases of failed trials may be missing
        return None
    return None if None in calls else canary_limit(None, sum(one or 0 for one in calls))


def _note_claims(bundle: BundledRun, recorded: RecordedRun) -> Iterator[Claim]:
    """Yield one claim with all notes about the judge that differ from those that its check gives."""
    checks = [step for step in bundle.steps.values() if step.name == JUDGE_CHECK]
    if any(step.result is None for step in checks) or not recorded.is_of_this_version:
        return  # left out, or written in other words
    # a run of the suite online checks the judge of each kind of operation
    kinds = {row.body.trial.benchmark for row in bundle.outcomes} if bundle.run.suite == "online" else set()
    named = ("", *kinds)  # earlier versions do not name the kind
    expected = {check_note(CanaryReport.model_validate(step.result), kind) for step in checks for kind in named}
    if len(checks) < max(1, len(kinds)):
        expected |= {unchecked_note(str(bundle.run.spec.get("judge")), kind) for kind in named}
    wrong = [bundle_text(text) for text in bundle.judge_notes if text not in expected]
    if not bundle.judge_notes and checks:
        wrong.append("the note is missing")
    yield from claims(
        "canaries", "contradicted", "a note about the judge differs from the one that its check gives", wrong
    )
