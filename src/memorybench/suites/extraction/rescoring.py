"""Scores the recorded extractions of a run on labelled cases again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memorybench.core.extraction import Extractor
from memorybench.core.trials import Outcome, Subject
from memorybench.judging.judge import Judge
from memorybench.judging.matching_judge import STEP, SUPPORT, EntailmentJudge
from memorybench.suites.replayed_steps import CannotRescore, RecordedRun, ReplayedSteps, Rescored, SilentModel

from .cases import ExtractionCase
from .plan import ExtractionPlan, trial_of


@dataclass(frozen=True, slots=True)
class _RecordedExtractor:
    """Stands in for an extractor whose outputs are recorded."""

    subject: Subject

    async def extract(self, existing_memory: Any, conversation: Any) -> Any:
        raise CannotRescore("the extraction is not recorded")


@dataclass(frozen=True, slots=True)
class _ExtractionRescorer:
    run: RecordedRun
    changed_cases: None = None

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        spec, trial = self.run.run.spec, outcome.trial
        if spec.get("mode", "offline") != "offline":
            raise CannotRescore("scores of traces are not computed again")
        if "conversation" not in case:
            raise CannotRescore("the case is left out of a public bundle")
        labelled = ExtractionCase.model_validate(case)
        expected = trial_of(labelled, trial.benchmark, trial.subject, trial.repeat)
        judge = None
        if spec.get("judge"):
            model = steps.model_of(STEP, SUPPORT) or Subject(role="model", name=spec["judge"])
            judge = EntailmentJudge(Judge(SilentModel(model)))
        extractor: Extractor = _RecordedExtractor(trial.subject)
        plan = ExtractionPlan(trial.benchmark, (labelled,), extractor, judge=judge)
        performed = await plan._perform(labelled, trial.repeat, steps)
        return Rescored(performed, are_inputs_known=True, trial=expected)


def rescorer(run: RecordedRun) -> _ExtractionRescorer:
    return _ExtractionRescorer(run)
