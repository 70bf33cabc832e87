"""Asks another judge about a sample of the recorded verdicts of a bundle, and compares the verdicts of the two judges.

The calls are a run in the journal, so each verdict is paid for once: repeating the command resumes the run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from memorybench.core.contracts import Model
from memorybench.core.errors import BadInput
from memorybench.core.plans import Job, Performed, Plan, Steps
from memorybench.core.records import Record, canonical, digest
from memorybench.core.trials import Exhibit, Outcome, Score, Status, Subject, Trial
from memorybench.engine.steps import step_key
from memorybench.journal.places import journal_of
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.judging.judge import Verdict, ask_other_judge, self_judged
from memorybench.judging.matching_judge import COVERAGE, STEP, SUPPORT
from memorybench.metrics.agreement import Confusion, kappa
from memorybench.metrics.intervals import Interval, interval
from memorybench.suites.answering import estimated_tokens
from memorybench.suites.estimates import VERDICT_TOKENS
from memorybench.suites.model_runs import model_run, perform_with_model
from memorybench.suites.run_costs import RunCosts
from memorybench.suites.wiring import ResolvedModel, Wiring
from memorybench.text.sanitize import printable, shorten

from .archive import OUTCOMES, STEPS, open_archive
from .claims import Verification, outcome_name
from .contents import Rows
from .rows import OutcomeRow, StepRow

SUITE = "rejudge"
_JUDGED = ("judge", STEP, COVERAGE, SUPPORT)
"""The names of steps whose verdict is used for a score; verdicts on canaries (known answers) are not included."""
_JUDGE = "judge model"
"""The name of the fingerprint, in the run of the second judge's calls, of the second judge."""
_LONGEST = 200


class JudgedStep(Struct, frozen=True):
    """A recorded verdict, with the prompt that the judge got."""

    key: str
    name: str
    prompt: str
    verdict: Verdict
    judge: Subject
    trials: tuple[str, ...]
    """The names of the trials whose scores depend on this verdict."""


class Sample(Struct, frozen=True):
    root: str
    seed: int
    steps: tuple[JudgedStep, ...]
    available: int
    """The number of verdicts that the sample is drawn from."""
    left_out: Mapping[str, int]
    """The number of verdicts that the other judge cannot be asked for, by reason."""


class Rejudged(Record):
    """A recorded verdict of the sample, and the other judge's verdict, which is None if that judge gave none."""

    key: str
    step: str
    trial: str
    trials: int
    is_prompt_proved: bool
    recorded: bool
    recorded_score: float | None
    recorded_reason: str
    status: Status
    verdict: bool | None = None
    score: float | None = None
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return (self.verdict, self.score) == (self.recorded, self.recorded_score)


class Rejudging(Struct, frozen=True):
    """The recorded and the other judge's verdicts on a sample, and how far they agree."""

    judge: str
    recorded_judges: tuple[str, ...]
    is_same_judge: bool
    sample: Sample
    verdicts: tuple[Rejudged, ...]
    run_id: str
    costs: RunCosts
    """The costs of the calls. Replies that were reused from an earlier sample cost nothing."""
    is_interrupted: bool
    problem: str = ""
    """Why the judge was not asked about the whole sample, such as a server that cannot be reached, and what to do."""

    @property
    def compared(self) -> list[Rejudged]:
        return [one for one in self.verdicts if one.verdict is not None]

    @property
    def missing(self) -> list[Rejudged]:
        return [one for one in self.verdicts if one.verdict is None]

    @property
    def disagreements(self) -> list[Rejudged]:
        return [one for one in self.compared if not one.agrees]

    @property
    def confusion(self) -> Confusion:
        """The confusion matrix of the two judges, in which the recorded judge is the reference."""
        return Confusion.of((one.recorded, bool(one.verdict)) for one in self.compared)

    @property
    def agreement(self) -> Interval:
        agreed = [float(one.agrees) for one in self.compared]
        return interval(agreed, [""] * len(agreed))

    @property
    def kappa(self) -> Interval:
        return kappa(self.confusion)

    def document(self) -> dict[str, Any]:
        counts = Counter(one.status for one in self.verdicts)
        cells = self.confusion
        return {
            "judge": self.judge,
            "recorded_judges": list(self.recorded_judges),
            "same_judge": self.is_same_judge,
            "run_id": self.run_id,
            "seed": self.sample.seed,
            "available": self.sample.available,
            "left_out": dict(self.sample.left_out),
            "sampled": len(self.verdicts),
            "prompts_proved": sum(one.is_prompt_proved for one in self.verdicts),
            "counts": dict(counts),
            "problem": self.problem,
            "compared": len(self.compared),
            "agreed": len(self.compared) - len(self.disagreements),
            "agreement": self.agreement._asdict(),
            "kappa": self.kappa._asdict(),
            "verdicts": {
                "both_yes": cells.both_yes,
                "recorded_yes": cells.person_yes,
                "other_yes": cells.judge_yes,
                "both_no": cells.both_no,
            },
            "cost": self.costs.known_cost,
            **self.costs.plain(),
            "sample": [{**one.plain(), "agrees": None if one.verdict is None else one.agrees} for one in self.verdicts],
        }


def draw_sample(path: Path, found: Verification, size: int, seed: int) -> Sample:
    """Draw `size` verdicts of a verified bundle at random.

    With the same seed, a larger sample contains a smaller one.
    """
    if found.public:
        raise BadInput(
            "--rejudge",
            "the bundle is public, so it does not contain prompts and answers",
            expected="a bundle with texts",
            remedy="ask the author for a bundle made without --public",
        )
    with open_archive(path) as archive:
        if archive.manifest.root != found.root or archive.changed_files():
            raise BadInput(str(path), "the file was changed while it was read", remedy="run the command again")
        rows = Rows.in_archive(archive)
        trials: dict[str, list[str]] = defaultdict(list)
        for row in rows.of(OUTCOMES, OutcomeRow):
            if row.body.status == "scored":
                for key in dict.fromkeys(row.body.steps):
                    trials[key].append(_text(outcome_name(row.body)))
        steps, left_out = [], Counter[str]()
        for step in rows.of(STEPS, StepRow):
            if step.name not in _JUDGED or step.key not in trials:
                continue
            reason = _cannot_ask(step)
            if reason:
                left_out[reason] += 1
            else:
                steps.append(_judged_step(step, trials[step.key]))
    if not steps:
        raise BadInput(
            "--rejudge", f"{path} has no verdicts that another model can judge again", remedy="leave out --rejudge"
        )
    chosen = sorted(steps, key=lambda step: digest([seed, step.key]))[:size]
    return Sample(found.root, seed, tuple(chosen), len(steps), dict(left_out))


def _cannot_ask(step: StepRow) -> str:
    if step_key(step.name, canonical(step.inputs)) != step.key:
        return "a secret was removed from the prompt"
    return "the judge names an option" if step.result.get("choice") else ""


def _judged_step(step: StepRow, trials: Sequence[str]) -> JudgedStep:
    return JudgedStep(
        key=step.key,
        name=step.name,
        prompt=step.inputs["prompt"],
        verdict=Verdict.model_validate(step.result),
        judge=Subject.model_validate(step.inputs["model"]),
        trials=tuple(trials),
    )


def expected_cost(sample: Sample, model: ResolvedModel) -> float | None:
    """Return the estimated cost of all calls in dollars; None if a price is unknown."""
    prices = _expected_prices(sample.steps, model)
    return None if None in prices else sum(price or 0.0 for price in prices)


def _expected_prices(steps: Iterable[JudgedStep], model: ResolvedModel) -> list[float | None]:
    return [model.price(estimated_tokens(step.prompt), VERDICT_TOKENS) for step in steps]


def _recorded_steps(results: Path, judge: Fingerprint) -> set[str]:
    """Return the keys of the steps on which this other judge has already given a verdict, in any earlier sample."""
    if not journal_of(results).exists():
        return set()
    with RunReader.open(results) as run_reader:
        return {
            outcome.trial.case_id
            for run in run_reader.runs()
            if run.suite == SUITE and run.fingerprints[_JUDGE].digest == judge.digest
            for outcome in run_reader.outcomes(run.id)
            if outcome.status == "scored"
        }


def _calls_within(budget: float | None, concurrency: int, steps: Iterable[JudgedStep], model: ResolvedModel) -> int:
    """Return how many calls may be in flight at once, so that together they cost at most the budget.

    The author of the bundle decides how long the prompts are, so a call may be expensive. Raise BadInput if a single
    call would cost more than the budget.
    """
    dearest = max((price or 0.0 for price in _expected_prices(steps, model)), default=0.0)
    if budget is None or not dearest:
        return concurrency
    if dearest > budget:
        raise BadInput(
            "--budget",
            f"one call of the sample costs about ${dearest:.4f}, which is more than the budget of ${budget:.4f}",
            remedy="increase --budget; --dry-run shows the cost of all calls",
        )
    return min(concurrency, int(budget / dearest))


def rejudge(
    sample: Sample,
    found: Verification,
    model: ResolvedModel,
    results: Path,
    wiring: Wiring,
    *,
    concurrency: int = 10,
    budget: float | None = None,
) -> Rejudging:
    """Ask the model for its own verdict on each step of the sample, until `budget` dollars are spent (None: no end)."""
    marks = {
        "bundle": Fingerprint.of(sample.root),
        "sample": Fingerprint.of_list([step.key for step in sample.steps]),
        _JUDGE: Fingerprint.of(model.described()),
    }
    recorded_steps = _recorded_steps(results, marks[_JUDGE])
    unpaid = [step for step in sample.steps if step.key not in recorded_steps]
    concurrency = _calls_within(budget, concurrency, unpaid, model)
    run = model_run(SUITE, SUITE, "verdicts", model, marks, len(sample.steps))
    judges: list[Subject] = []

    def plan(opened: Model) -> Plan:
        judges.append(opened.subject)
        return Plan(jobs=_jobs(sample, opened), size=len(sample.steps))

    ending = perform_with_model(plan, run, model, results, wiring, concurrency=concurrency, budget=budget)
    with RunReader.open(results) as run_reader:
        outcomes = {outcome.trial.case_id: outcome for outcome in run_reader.outcomes(run.id)}
        costs = RunCosts.of(run_reader, run_reader.run(run.id))
    recorded = {step.judge.name: step.judge for step in sample.steps}
    problem = "the budget is used up; repeat the command with a larger --budget" if ending.is_blocked else ""
    if ending.paused:
        problem = f"{ending.paused}; start the service, then repeat the command"
    return Rejudging(
        judge=model.name,
        recorded_judges=tuple(_text(name) for name in recorded),
        is_same_judge=any(self_judged(judge, other) for judge in judges for other in recorded.values()),
        sample=sample,
        verdicts=tuple(_rejudged(step, outcomes.get(step.key), found) for step in sample.steps),
        run_id=run.id,
        costs=costs,
        is_interrupted=ending.interrupted,
        problem=problem,
    )


def _jobs(sample: Sample, model: Model) -> Iterator[Job]:
    for place, step in enumerate(sample.steps):
        trial = Trial(suite=SUITE, benchmark="verdicts", case_id=step.key, subject=model.subject)
        yield Job(trial=trial, perform=partial(_ask, model, step), ordinal=place, spends=True)


async def _ask(model: Model, step: JudgedStep, steps: Steps) -> Performed:
    verdict = await ask_other_judge(steps, SUITE, model, step.prompt, step.verdict)
    scores = [Score(name="verdict", value=float(verdict.correct))]
    if verdict.score is not None:
        scores.append(Score(name="item", value=verdict.score))
    return Performed(scores=tuple(scores), shown=Exhibit(reason=verdict.reason))


def _rejudged(step: JudgedStep, outcome: Outcome | None, found: Verification) -> Rejudged:
    verdict = None if outcome is None or outcome.status != "scored" else outcome.score("verdict")
    reason = "the judge was not asked"
    if outcome is not None:
        reason = outcome.failure.message if outcome.failure is not None else outcome.shown.reason
    return Rejudged(
        key=step.key,
        step=step.name,
        trial=step.trials[0],
        trials=len(step.trials),
        is_prompt_proved=step.key in found.same_inputs,
        recorded=step.verdict.correct,
        recorded_score=step.verdict.score,
        recorded_reason=_text(step.verdict.reason),
        status="blocked" if outcome is None else outcome.status,
        verdict=None if verdict is None else verdict == 1,
        score=None if outcome is None or verdict is None else outcome.score("item"),
        reason=_text(reason),
    )


def _text(text: str) -> str:
    return shorten(printable(text), _LONGEST)
