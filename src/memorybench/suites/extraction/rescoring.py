"""Scores the recorded extractions of a run on labelled cases again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from memorybench.core.errors import Unreadable
from memorybench.core.extraction import Extractor
from memorybench.core.records import canonical
from memorybench.core.trials import Outcome, Subject
from memorybench.engine.steps import step_key
from memorybench.journal.run_reader import StepRecord
from memorybench.judging.canaries import Canary
from memorybench.judging.judge import Judge
from memorybench.judging.matching import Matching
from memorybench.judging.matching_judge import CANARIES, EntailmentJudge
from memorybench.judging.matching_judge import STEP as ENTAIL
from memorybench.suites.blocking import blocking
from memorybench.suites.replayed_steps import (
    CannotRescore,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
    SilentModel,
)

from .cases import ExtractionCase
from .findings import match_output
from .plan import ExtractionPlan, trial_of


class _RecordedExtractor(Struct, frozen=True):
    """Replaces an extractor whose outputs are recorded."""

    subject: Subject

    async def extract(self, existing_memory: Any, conversation: Any) -> Any:
        raise CannotRescore("the run does not record the memory that the extractor returned")


@dataclass(frozen=True, slots=True)
class _ExtractionRescorer(Rescorer):
    run: RecordedRun

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        spec, trial = self.run.run.spec, outcome.trial
        if spec.get("mode", "offline") != "offline":
            raise CannotRescore("the scores of a run on traces cannot be computed again")
        if "conversation" not in case:
            raise CannotRescore("a public bundle does not contain the case")
        labelled = ExtractionCase.model_validate(case)
        expected = trial_of(labelled, trial.benchmark, trial.subject, trial.repeat)
        model = self.run.judge(steps)
        judge = EntailmentJudge(Judge(model)) if model else None
        extractor: Extractor = _RecordedExtractor(trial.subject)
        plan = ExtractionPlan(trial.benchmark, (labelled,), extractor, judge=judge)
        performed = await plan._perform(labelled, trial.repeat, steps)
        return Rescored(performed, are_inputs_known=self.run.knows_inputs(steps), trial=expected)

    def judge_calls(self, case: Mapping[str, Any]) -> int:
        return 1

    def canaries(self) -> Sequence[Canary]:
        return CANARIES


def replay_matching(case: ExtractionCase, output: Any, records: Sequence[StepRecord]) -> Matching:
    """Match the facts of an output with those of the gold; `records` are the recorded verdicts of the judge.

    If a verdict that is needed is not recorded, for example because a prompt was changed since, the matching is by code
    alone. Raise Malformed if the output is not a memory.
    """
    matching = match_output(case, output)
    verdicts = {step_key(one.name, canonical(one.inputs)): one for one in records}
    steps = ReplayedSteps([*verdicts], verdicts, is_strict=True)
    judge = steps.model_of(ENTAIL)
    if judge is None:
        return matching
    try:
        return blocking(EntailmentJudge(Judge(SilentModel(judge))).decide(steps, matching))
    except (Unreadable, CannotRescore):
        return matching


def rescorer(run: RecordedRun) -> _ExtractionRescorer:
    return _ExtractionRescorer(run)
