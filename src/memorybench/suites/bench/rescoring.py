"""Scores the recorded searches, answers and verdicts of a bench run again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from memorybench.core.contracts import Completion, Provider
from memorybench.core.errors import BadInput
from memorybench.core.plans import Performed
from memorybench.core.questions import Dataset, Question
from memorybench.core.trials import Outcome, Score, Subject
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.prompts import answer_prompt, judge_prompt
from memorybench.journal.rows import Fingerprint
from memorybench.judging.canaries import Canary, choose_canaries
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import JudgePrompt, JudgePrompts
from memorybench.metrics.retrieval import retrieval_metrics
from memorybench.suites.answering import Answering, Scoring, answer, context_of, score
from memorybench.suites.ingest import Ingest
from memorybench.suites.judge_prompts import JUDGE_PROMPT_FLAG, judge_prompts
from memorybench.suites.recorded_ingest import RecordedIngest
from memorybench.suites.repeats import steps_of_repeat
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
    SilentModel,
)
from memorybench.suites.sampling import SIDE_BY_SIDE, describe_sample
from memorybench.suites.search_limits import SearchLimits

from .baselines import Candidate
from .benchmarks import answer_prompts, answer_prompts_text, judge_calls, scoring_method
from .contamination import chance_score
from .measures import measured_on, plugin_metrics, special_measures
from .plan import Bench, RecordedQuestion, _Haystacks, _Questioner, _trial, history_digest, with_evidence
from .recorded import RecordedProvider
from .scores import size_scores
from .selection import choose_questions
from .spec import ANSWERS, MEASURED_ON, BenchSpec


class _Benchmark(Struct, frozen=True):
    """The parts of a benchmark that scores depend on, from the config that the run recorded."""

    config: BenchmarkConfig
    prompts: Mapping[str, Any]
    judge_prompts: JudgePrompts
    are_prompts_known: bool
    """Whether the prompts have the recorded fingerprints. Another version of memorybench may have other prompts."""


@dataclass(slots=True)
class _BenchRescorer(Rescorer):
    run: RecordedRun
    _benchmarks: dict[str, _Benchmark] = field(default_factory=dict)
    _questioners: dict[tuple[str, ...], _Questioner] = field(default_factory=dict)
    """The objects that ask questions, by benchmark, subject, models and repeat. Each caches data of the histories."""

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        trial, spec = outcome.trial, self.run.run.spec
        question = _question(case)
        benchmark = self._benchmark(trial.benchmark)
        search = benchmark.config.search
        expected = _trial(trial.benchmark, question, Candidate(trial.subject), trial.repeat)
        if spec.get("corrected") and trial.benchmark in (spec.get("errata") or {}):
            raise CannotRescore("the run used a corrected answer key (--errata), which a bundle does not contain")
        limits = SearchLimits(
            spec.get("top_k") or search.default_limit,
            spec.get("context_limit") or search.context_limit,
            spec.get("token_budget"),
        )
        is_provider = trial.subject.role == "provider"
        provider = cast(Provider, RecordedProvider(trial.subject)) if is_provider else None
        candidate = Candidate(trial.subject, provider)
        answering = self._answering(benchmark, steps)
        dataset = self.run.datasets.get(trial.benchmark)
        if dataset is None:
            ingest = RecordedIngest(trial.subject) if is_provider else None
            rescored = await self._without_data(
                question, candidate, ingest, limits, benchmark, answering, steps, trial.repeat
            )
            return replace(rescored, trial=expected)
        questioner = self._questioner(dataset, candidate, limits, search.include_chunks, answering, trial.repeat)
        performed = await questioner.perform(question, steps, repeat=trial.repeat)
        return Rescored(performed, are_inputs_known=self._knows_inputs(benchmark, steps), trial=expected)

    def _questioner(
        self,
        dataset: Dataset,
        candidate: Candidate,
        limits: SearchLimits,
        chunks: bool,
        answering: Answering | None,
        repeat: int,
    ) -> _Questioner:
        """Return the object that asks the questions of a benchmark: one per subject, models and repeat."""
        judge = answering.scoring.judge if answering else None
        models = (answering.model.subject.key if answering else "", judge.model.subject.key if judge else "")
        key = (dataset.name, candidate.subject.key, *models, str(repeat))
        if key not in self._questioners:
            bench = Bench(
                dataset,
                (),
                limits=limits,
                chunks=chunks,
                answering=answering,
                repeated=(answering,) * (repeat - 1) if answering else (),
                answered_once=self.run.run.spec.get(ANSWERS, 1) == 1,
            )
            ingest = RecordedIngest(candidate.subject, dataset.haystack) if candidate.provider else None
            metrics = retrieval_metrics(plugin_metrics())
            if len(self._questioners) >= SIDE_BY_SIDE:  # a bundle may name any number of subjects
                self._questioners.clear()
            self._questioners[key] = _Questioner(bench, _Haystacks(dataset), candidate, cast(Ingest, ingest), metrics)
        return self._questioners[key]

    async def _without_data(
        self,
        question: Question,
        candidate: Candidate,
        ingest: RecordedIngest | None,
        limits: SearchLimits,
        benchmark: _Benchmark,
        answering: Answering | None,
        steps: ReplayedSteps,
        repeat: int,
    ) -> Rescored:
        """Return the scores that need no history: sizes of the memories shown, and scores of the answer."""
        scores: list[Score] = []
        context, chunks = None, benchmark.config.search.include_chunks
        if ingest is not None or candidate.name == "none":
            memories = await ingest.search(steps, question.haystack, question.query, limits.depth) if ingest else ()
            seen = limits.cut(memories, chunks=chunks)
            context = context_of(seen, chunks=chunks)
            scores += [*limits.scores(memories, seen), *size_scores(seen, context)]
        if answering is None:
            return Rescored(Performed(scores=tuple(scores)), is_whole=False)
        again = steps_of_repeat(steps, repeat)
        if context is not None:
            answered = steps if self.run.run.spec.get(ANSWERS, 1) == 1 else again
            got = (await answer(answered, answering, question, context)).text
        else:  # what a baseline showed to the model is only in the dataset
            step = steps.next("answer")
            if question.question not in str(step.inputs.get("prompt")):
                raise Contradiction("the recorded answer belongs to another question than that of the trial")
            got = Completion.model_validate(step.result).text
        judged = await score(again, answering.scoring, question, got, context or "")
        return Rescored(
            Performed(scores=(*judged.scores, *scores), unscored=judged.unscored),
            is_whole=False,
            are_inputs_known=self._knows_inputs(benchmark, steps) and context is not None,
        )

    def _knows_inputs(self, benchmark: _Benchmark, steps: ReplayedSteps) -> bool:
        return benchmark.are_prompts_known and self.run.knows_judge(steps)

    def changed_cases(self, dataset: Dataset) -> list[str]:
        """Return the ids of recorded questions that differ from the dataset, in a field or in the gold turns."""
        known = {question.id: question for question in dataset.questions}
        own = {id: case for (benchmark, id), case in self.run.cases.items() if benchmark == dataset.name}
        history = lru_cache(maxsize=1)(lambda id: history_digest(dataset.haystack(id)))
        changed = []
        for id, case in own.items():
            question = known.get(id)
            if question is None or question.plain() != _question(case).plain():
                changed.append(id)
                continue
            expected = with_evidence(question, dataset.haystack(question.haystack), history(question.haystack))
            if not _is_same_case(expected, case):
                if not self.run.is_of_this_version:
                    raise CannotRescore(
                        "another version of memorybench made this run, and this version records other evidence"
                    )
                changed.append(id)
        return changed

    def selected_cases(self, dataset: Dataset) -> list[str]:
        saved = {name: value for name, value in self.run.run.spec.items() if name in BenchSpec.model_fields}
        spec = BenchSpec.model_validate({**saved, "chosen": {}})
        if spec.failed_in is not None:
            raise CannotRescore("the questions were selected by the results of another run (--failed-in)")
        return [question.id for question in choose_questions(dataset, spec)]

    def derived_settings(self) -> dict[str, Any]:
        questions: dict[str, list[Question]] = {}
        for (benchmark, _), case in self.run.cases.items():
            questions.setdefault(benchmark, []).append(_question(case))
        derived: dict[str, Any] = {
            "questions": {name: len(own) for name, own in questions.items()},
            "special_measures": special_measures(one for own in questions.values() for one in own),
            "chance": {name: chance_score(own) for name, own in questions.items()},
        }
        if MEASURED_ON in self.run.run.spec:  # runs of earlier versions lack it, and are reported without it
            derived[MEASURED_ON] = measured_on(questions)
        if self.run.datasets.keys() >= questions.keys():
            data = {name: self.run.datasets[name] for name in questions}
            derived["evidence"] = {name: dataset.evidence for name, dataset in data.items()}
            derived["samples"] = {
                name: describe_sample(questions[name], dataset.questions, lambda one: one.group)
                for name, dataset in data.items()
            }
            derived["methods"] = {
                name: scoring_method(self._benchmark(name).config.evaluation, dataset.questions)
                for name, dataset in data.items()
            }
        return derived

    def judge_calls(self, case: Mapping[str, Any]) -> int:
        if self.run.run.spec.get("corrected"):
            raise CannotRescore("the run used a corrected answer key (--errata), which a bundle does not contain")
        return judge_calls(_question(case))

    def canaries(self) -> Sequence[Canary]:
        prompts: dict[JudgePrompt, None] = {}
        for name in dict.fromkeys(benchmark for benchmark, _ in self.run.cases):
            questions = [_question(case) for (benchmark, _), case in self.run.cases.items() if benchmark == name]
            prompts |= dict.fromkeys(self._benchmark(name).judge_prompts.used(questions))
        return choose_canaries(tuple(prompts))

    def _answering(self, benchmark: _Benchmark, steps: ReplayedSteps) -> Answering | None:
        spec, evaluation = self.run.run.spec, benchmark.config.evaluation
        if not spec.get("answered"):
            return None
        method = (spec.get("methods") or {}).get(benchmark.config.name, evaluation.method)
        if evaluation.method in ("custom", "semantic-similarity"):
            raise CannotRescore(
                f"answers are scored with the method {evaluation.method}, which needs code of the user or a model"
            )
        model = self.run.judge(steps)
        judge = Judge(model, benchmark.judge_prompts) if model else None
        scoring = Scoring(
            method=method,
            partial_credit=evaluation.partial_credit,
            official_f1=evaluation.f1_rule == "locomo",
            judge=judge,
        )
        return Answering(_answerer(steps, spec.get("answerer")), benchmark.prompts, scoring)

    def _benchmark(self, name: str) -> _Benchmark:
        if name not in self._benchmarks:
            self._benchmarks[name] = _read_benchmark(self.run, name)
        return self._benchmarks[name]


def _is_same_case(expected: RecordedQuestion, case: Mapping[str, Any]) -> bool:
    try:
        return bool(RecordedQuestion.model_validate(case).plain() == expected.plain())
    except ValidationError:  # fields are unknown or missing
        return False


def _question(case: Mapping[str, Any]) -> Question:
    if "question" not in case:
        raise CannotRescore("a public bundle does not contain the question")
    return Question.model_validate({name: value for name, value in case.items() if name in Question.model_fields})


def _answerer(steps: ReplayedSteps, name: str | None) -> SilentModel:
    subject = steps.model_of("answer") or Subject(role="model", name=str(name))
    if subject.name != name:
        raise Contradiction(f"a recorded answer is by {subject.name}, but the answering model of the run is {name}")
    return SilentModel(subject)


def _read_benchmark(run: RecordedRun, name: str) -> _Benchmark:
    spec, fingerprints = run.run.spec, run.run.fingerprints
    recorded = fingerprints.get(f"config of {name}")
    if recorded is None or recorded.text is None:
        raise CannotRescore(f"the run does not record the config of the benchmark {name}")
    try:
        content, _ = json.JSONDecoder().raw_decode(recorded.text)
        if "mapping" in content:
            content["schema"] = content.pop("mapping")
        config = BenchmarkConfig.model_validate(content)
        # files are never read: a prompt of the command line is saved as a text
        answers, judged_by = fingerprints.get(f"answer prompts of {name}"), judge_prompts(config)
        prompts, undated = (answer_prompts(config, has_dates=has_dates) for has_dates in (True, False))
        if answers is not None and Fingerprint.of(answer_prompts_text(undated)).digest == answers.digest:
            prompts = undated
        if spec.get("answer_prompt"):
            prompts = {"": answer_prompt(spec["answer_prompt"], "answer_prompt")}
        if spec.get("judge_prompt"):
            # the fingerprint has the name of the flag
            override = judge_prompt(spec["judge_prompt"], JUDGE_PROMPT_FLAG)
            judged_by = JudgePrompts(
                override, judged_by.by_type, judged_by.default, judged_by.names, judged_by.off_by_one
            )
    except (ValueError, TypeError, AttributeError, ValidationError, BadInput) as error:
        raise CannotRescore(f"the recorded config of the benchmark {name} is invalid") from error
    questions = [_question(case) for (owner, _), case in run.cases.items() if owner == name and "question" in case]
    used = {repr(prompt) for prompt in judged_by.used(questions)}
    judges = fingerprints.get(f"judge prompts of {name}")
    is_left_out = (answers is None and spec.get("answered")) or (judges is None and spec.get("judge"))
    if run.is_of_this_version and is_left_out:
        raise CannotRescore(f"the run does not record the prompts of the benchmark {name}")
    are_known = (answers is None or Fingerprint.of(answer_prompts_text(prompts)).digest == answers.digest) and (
        judges is None or Fingerprint.of("\n".join(sorted(used))).digest == judges.digest or _contains(judges, used)
    )
    return _Benchmark(config, prompts, judged_by, are_known)


def _contains(recorded: Fingerprint, prompts: Collection[str]) -> bool:
    """Return whether a fingerprint is of a text with all these prompts. A shard may use only some of them."""
    text = recorded.text or ""
    return Fingerprint.of(text).digest == recorded.digest and {*prompts} <= {*text.split("\n")}


def rescorer(run: RecordedRun) -> _BenchRescorer:
    return _BenchRescorer(run)
