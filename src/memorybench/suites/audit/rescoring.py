"""Scores the recorded answers and verdicts of an audit again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memorybench.core.contracts import Completion
from memorybench.core.errors import Unreadable
from memorybench.core.plans import Performed, Steps
from memorybench.core.trials import Failure, Outcome, Score, Subject
from memorybench.judging.judge import Judge
from memorybench.suites.answering import BY_CODE
from memorybench.suites.repeats import steps_of_repeat
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    SilentModel,
)

from .judgement import Judgement, is_declined, judge_answer, judge_prompts, names_stale
from .plan import MISS_INVENTED, MISS_STALE, trial_of
from .probes import Probe


@dataclass(frozen=True, slots=True)
class _AuditRescorer:
    """Computes verdicts. Whether evidence was retrieved depends on the conversations, which are not recorded."""

    run: RecordedRun
    changed_cases: None = None

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        spec, trial = self.run.run.spec, outcome.trial
        if spec.get("verify") or spec.get("probe_model"):
            raise CannotRescore("probes that a model wrote or verified are not scored again")
        if "question" not in case:
            raise CannotRescore("the probe is left out of a public bundle")
        probe = Probe.model_validate(case)
        expected = trial_of(probe, trial.benchmark, trial.subject, trial.repeat)
        judge = None
        if spec.get("judge"):
            model = steps.model_of("judge") or Subject(role="model", name=spec["judge"])
            if model.name != spec["judge"]:
                raise Contradiction(f"step judge asked {model.name}, and the run says {spec['judge']}")
            judge = Judge(SilentModel(model), judge_prompts())
        again = steps_of_repeat(steps, trial.repeat)
        answer = _answer(steps, probe)
        try:
            judgement = await _judge(again, judge, probe, answer)
        except Unreadable as error:
            failure = Failure(kind="Unreadable", message=str(error))
            return Rescored(Performed(unscored=failure), is_whole=False, trial=expected)
        scores = [Score(name="correct", value=float(judgement.correct), reason=judgement.reason)]
        if judge is not None and not judgement.by_judge:
            scores.append(Score(name=BY_CODE, value=1.0))
        if not judgement.correct:
            scores += await _miss_scores(again, judge, probe, answer)
        if probe.abstain:
            scores.append(Score(name="hallucinated", value=float(not judgement.correct)))
        elif probe.type == "recall" and judgement.correct:
            scores.append(Score(name="answered", value=1.0))
        scores += await self._pair_scores(steps, again, judge, trial.benchmark, probe, judgement)
        return Rescored(Performed(scores=tuple(scores)), is_whole=False, trial=expected)

    async def _pair_scores(
        self, steps: ReplayedSteps, again: Steps, judge: Judge | None, benchmark: str, probe: Probe, own: Judgement
    ) -> list[Score]:
        case = self.run.cases.get((benchmark, probe.twin or ""))
        if case is None or probe.reversed or probe.type not in ("temporal", "hallucination"):
            return []
        if "answer" not in steps.unused():
            return []  # the twin has no answer; its own trial reports the reason
        twin = Probe.model_validate(case)
        try:
            other = await _judge(again, judge, twin, _answer(steps, twin))
        except Unreadable:
            return []
        both = float(own.correct and other.correct)
        if probe.type == "hallucination":
            return [Score(name="paired", value=both)]
        scores = [Score(name="ordered", value=both)]
        if own.choice is not None and other.choice is not None:
            same = probe.options[own.choice] == twin.options[other.choice]
            scores.append(Score(name="consistent", value=float(same)))
        return scores


async def _judge(steps: Steps, judge: Judge | None, probe: Probe, answer: str) -> Judgement:
    judgement = await judge_answer(steps, judge, probe, answer)
    if probe.options:
        chosen = None if judgement.choice is None else probe.options[judgement.choice]
        if judgement.by_judge and judgement.correct != (chosen == probe.expected_answer):
            raise Contradiction("the verdict does not fit the option that the judge names")
    return judgement


def _answer(steps: ReplayedSteps, probe: Probe) -> str:
    step = steps.next("answer")
    if probe.question not in str(step.inputs.get("prompt")):
        raise Contradiction("the answer is about another question")
    return Completion.model_validate(step.result).text


async def _miss_scores(steps: Steps, judge: Judge | None, probe: Probe, answer: str) -> list[Score]:
    if names_stale(probe, answer):
        return [Score(name=MISS_STALE, value=1.0)]
    is_silent = False if probe.abstain else await is_declined(steps, judge, probe, answer)
    scores = [] if is_silent is None or probe.type != "recall" else [Score(name="answered", value=float(not is_silent))]
    if is_silent is False and not probe.options:
        scores.append(Score(name=MISS_INVENTED, value=1.0))
    return scores


def rescorer(run: RecordedRun) -> _AuditRescorer:
    return _AuditRescorer(run)
