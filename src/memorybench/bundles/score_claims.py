"""Checks scores, by computing them again from the case and the recorded steps of each trial."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from msgspec import Struct, field

from memorybench.core.errors import Lacking, MemorybenchError
from memorybench.core.measures import Metric
from memorybench.core.trials import Outcome, Score
from memorybench.metrics.names import METRIC_NAMES
from memorybench.metrics.rates import Mean, Pooled, Rate, Total
from memorybench.metrics.retrieval import RetrievalMean
from memorybench.suites.blocking import blocking
from memorybench.suites.recorded_form import ERRORS
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
)
from memorybench.text.quantities import quantity
from memorybench.text.sanitize import printable

from .bundled_run import BundledRun
from .claims import Claim, bundle_text, claim, claims, name_list, outcome_name

_OTHER_INPUTS = "recorded steps give them, but nothing here shows that these are the steps of the trial"
_NOT_SCORED = "nothing here shows that the trial could not be scored"
_NO_RESULT = "a call of the trial has no result, so that scores may be missing"
_REDACTED_VERDICT = "a secret was removed from a reply of the judge, which cannot be read again"
_OTHER_VERDICT = "a reply of the judge, read again, does not give its verdict"
TOLERANCE = 1e-9
"""The largest accepted relative difference between a recorded and a recomputed number. Versions of numpy round
differently."""


def score_claims(bundle: BundledRun, recorded: RecordedRun, rescorer: Rescorer) -> Iterator[Claim]:
    """Check the scores of each trial by computing them again from its case and its recorded steps."""
    found = blocking(_rescore(bundle, rescorer, is_of_this_version=recorded.is_of_this_version))
    text = f"computed again from cases and recorded steps: {name_list(found.proved)}"
    yield from claims("scores", "proved", text, n=sum(found.proved.values()), names=sorted(found.proved))
    for reason, names in found.declared.items():
        text = f"not proved ({reason}): {name_list(names)}"
        yield claim("scores", "declared", text, n=sum(names.values()), names=sorted(names))
    yield from claims(
        "scores", "contradicted", "computed again from the recorded steps, the result differs", found.wrong
    )
    yield from claims(
        "texts",
        "proved",
        "the texts that reports show of trials, such as answers, are those of the recorded steps",
        n=found.texts,
    )
    if found.texts < len(bundle.outcomes):
        text = "the texts that reports show of trials, such as answers or errors"
        yield claim("texts", "declared", text, n=len(bundle.outcomes) - found.texts)
    bundle.same_inputs.update(found.same_inputs)
    text = "the inputs of steps are exactly those that this version computes from the case and earlier steps"
    yield from claims("prompts", "proved", text, n=len(bundle.same_inputs))
    others = Counter(bundle_text(step.name) for key, step in bundle.steps.items() if key not in bundle.same_inputs)
    if others and not bundle.is_public:
        text = "inputs of steps that are not computed again here, such as what was added to a memory"
        yield claim("prompts", "declared", text, [f"{name}: {n:,}" for name, n in others.items()], n=others.total())
    text = "labels and clusters of trials, from which tables and intervals are computed"
    yield from claims("groups", "declared", text, n=found.groups)


def impossible_scores(outcomes: Iterable[Outcome], metrics: Sequence[Metric]) -> Iterator[Claim]:
    """Yield a contradicted claim if there are scores that no run can have, such as a share below 0 or above 1.

    A trial cannot have two different scores with the same name either. Two equal scores are accepted, because earlier
    versions recorded them.
    """
    wrong = []
    for outcome in outcomes:
        if len({score.name for score in outcome.scores}) != len(set(outcome.scores)):
            wrong.append(f"{outcome_name(outcome)}: has two different values of one score")
        for metric in metrics:
            values, (lowest, highest) = metric.read(outcome) or (), _range(metric)
            if not all(lowest <= value <= highest for value in values):
                wrong.append(f"{outcome_name(outcome)}: {bundle_text(metric.name)} is {values[0]:g}")
    yield from claims(
        "scores", "contradicted", "scores are outside of their range, or have two different values", wrong
    )


def _range(metric: Metric) -> tuple[float, float]:
    """Return the lowest and the highest possible score of a metric. Amounts, such as tokens, have no upper limit."""
    is_built_in = isinstance(metric, RetrievalMean) and metric.name in METRIC_NAMES
    if isinstance(metric, Rate) or is_built_in:
        return 0, 1 + TOLERANCE
    is_amount = isinstance(metric, (Mean, Total)) and metric.unit
    return (0, inf) if is_amount or isinstance(metric, Pooled) else (-inf, inf)  # metric of a plug-in: unknown


async def _rescore(bundle: BundledRun, rescorer: Rescorer, *, is_of_this_version: bool) -> _Rescores:
    found = _Rescores()
    for row in bundle.outcomes:
        outcome = row.body
        case = bundle.cases.get((outcome.trial.benchmark, outcome.trial.case_id))
        if outcome.status in ("failed", "blocked"):
            found.declare("the trial has no result", {outcome.status: 1})
            found.groups += 1
            continue
        names = Counter(score.name for score in outcome.scores) or Counter([outcome.status])
        if bundle.is_public or case is None:
            found.declare("left out of a public bundle" if bundle.is_public else "the case is not recorded", names)
            found.groups += 1
            continue
        steps = ReplayedSteps(outcome.steps, bundle.steps)
        try:
            rescored = await rescorer.rescore(outcome, case.body, steps)
        except CannotRescore as error:
            found.declare(printable(str(error)), names)
            found.groups += 1
            continue
        except Lacking:
            if outcome.status != "skipped":
                found.wrong.append(
                    f"{outcome_name(outcome)}: its status is {outcome.status}, but computed again it is skipped"
                )
            else:
                found.declare(_NOT_SCORED, {"skipped": 1})
                found.groups += 1
            continue
        except Contradiction as error:
            found.wrong.append(f"{outcome_name(outcome)}: {bundle_text(str(error))}")
            continue
        except (*ERRORS, RuntimeError, MemorybenchError) as error:
            # a coroutine turns StopIteration into RuntimeError
            problem = str(error).splitlines()[0] if str(error) else "?"
            found.wrong.append(f"{outcome_name(outcome)}: {bundle_text(problem)}")
            continue
        found.same_inputs += steps.same_inputs
        found.compare(outcome, rescored, steps, is_of_this_version=is_of_this_version)
    return found


class _Rescores(Struct):
    proved: Counter[str] = field(default_factory=Counter)
    """The number of scores that were computed again with the same result, by name."""
    declared: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """The number of scores that were not computed again, by reason and name."""
    wrong: list[str] = field(default_factory=list)
    same_inputs: list[str] = field(default_factory=list)
    groups: int = 0
    """The number of trials whose labels and clusters were not computed again."""
    texts: int = 0
    """The number of trials whose displayed texts were computed again with the same result."""

    def declare(self, reason: str, names: Mapping[str, int]) -> None:
        self.declared[reason].update(names)

    def compare(self, outcome: Outcome, rescored: Rescored, steps: ReplayedSteps, *, is_of_this_version: bool) -> None:
        name, performed = outcome_name(outcome), rescored.performed
        if steps.missing and rescored.are_inputs_known and is_of_this_version:
            self.wrong.append(
                f"{name}: steps that its scores need are not recorded: {bundle_text(', '.join(steps.missing))}"
            )
        elif steps.missing or steps.failed:
            self.declare(_NO_RESULT, {"missing": 1})
        if rescored.trial is None:
            self.groups += 1
        elif rescored.trial.plain() != outcome.trial.plain():
            self.wrong.append(f"{name}: its recorded labels differ from those computed from its case")
        if rescored.are_inputs_known and steps.other_inputs:
            number = quantity(steps.other_inputs, "step")
            self.wrong.append(f"{name}: the recorded inputs of {number} differ from those that this version computes")
        if rescored.is_whole and (unused := steps.unused()):
            self.wrong.append(
                f"{name}: steps are recorded that its scores do not use: {bundle_text(', '.join(unused))}"
            )
        if (performed.unscored is not None) != (outcome.status == "unscored"):
            result = "it has a score" if performed.unscored is None else "it has no score"
            self.wrong.append(f"{name}: its status is {outcome.status}, but computed again {result}")
            return
        if outcome.status == "skipped":
            self.wrong.append(f"{name}: its status is skipped, but computed again it has a score")
            return
        # if the inputs are unknown, steps of another trial may have been put in the place of the trial's own
        is_proof = rescored.are_inputs_known and not steps.other_inputs
        reason = "" if is_proof else _OTHER_INPUTS
        if is_proof and steps.other_verdicts and is_of_this_version:
            self.wrong.append(f"{name}: {_OTHER_VERDICT}: {', '.join(steps.other_verdicts)}")
        elif is_proof and (steps.other_verdicts or steps.redacted_verdicts):
            reason = _OTHER_VERDICT if steps.other_verdicts else _REDACTED_VERDICT
            is_proof = False
        unproved: Counter[str] = Counter()
        expected = {score.name: score for score in performed.scores}
        recorded = {score.name: score for score in outcome.scores}
        for score in expected.values():
            if score.name not in recorded or not _is_same(score, recorded[score.name]):
                own = f"recorded as {recorded[score.name].value}" if score.name in recorded else "not recorded"
                self.wrong.append(f"{name}: {bundle_text(score.name)} is {own}, but computed again {score.value:g}")
            elif is_proof:
                self.proved[score.name] += 1
            else:
                unproved[score.name] += 1
        if unproved:
            self.declare(reason, unproved)
        others = {own: 1 for own in recorded if own not in expected}
        if others and rescored.is_whole:
            self.wrong.append(
                f"{name}: recorded, but without a value if computed again: {bundle_text(', '.join(others))}"
            )
        elif others:
            self.declare("the data is not available here", others)
        if rescored.is_whole and performed.shown != outcome.shown:
            self.wrong.append(f"{name}: the texts that reports show of it differ from those of its steps")
        self.texts += rescored.is_whole and is_proof
        if outcome.status == "unscored":
            self.declare(_NOT_SCORED, {"unscored": 1})


def _is_same(first: Score, second: Score) -> bool:
    difference = abs(first.value - second.value)
    return difference <= TOLERANCE * max(abs(first.value), abs(second.value)) and first.reason == second.reason
