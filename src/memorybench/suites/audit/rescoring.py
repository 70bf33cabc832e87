"""Scores the recorded answers and verdicts of an audit again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from memorybench.core.contracts import Completion
from memorybench.core.conversation import Memory
from memorybench.core.plans import Steps
from memorybench.core.trials import Outcome, Score, Subject, Trial
from memorybench.datasets.audit import AuditDataset
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.prompts import load_prompt
from memorybench.judging.canaries import Canary, choose_canaries
from memorybench.judging.judge import Judge
from memorybench.suites.answering import Answering, Scoring
from memorybench.suites.comparison import MODEL_MARK
from memorybench.suites.ingest import Ingest
from memorybench.suites.recorded_ingest import RecordedIngest
from memorybench.suites.replayed_steps import (
    CannotRescore,
    Contradiction,
    RecordedRun,
    ReplayedSteps,
    Rescored,
    Rescorer,
    SilentModel,
)
from memorybench.suites.search_limits import SearchLimits

from .judgement import Judgement, judge_prompts, question_of
from .plan import SHOWN, AuditedSubject, AuditPlan, Transcripts, _Probing, _Reply, trial_of
from .prepare import make_probes
from .probes import Probe
from .spec import AuditSpec


@dataclass(slots=True)
class _AuditRescorer(Rescorer):
    """Computes scores again. If the conversations are missing, it computes only the verdicts on recorded answers."""

    run: RecordedRun
    _probes: dict[str, list[Probe]] = field(default_factory=dict)
    _transcripts: dict[str, Transcripts] = field(default_factory=dict)
    _probing: dict[tuple[str, ...], _Probing] = field(default_factory=dict)

    async def rescore(self, outcome: Outcome, case: Mapping[str, Any], steps: ReplayedSteps) -> Rescored:
        spec, trial = self.run.run.spec, outcome.trial
        if spec.get("probe_model"):
            raise CannotRescore("a model wrote or verified the probes (--probe-model), and code cannot repeat that")
        if "question" not in case:
            raise CannotRescore("a public bundle does not contain the probe")
        probe = Probe.model_validate(case)
        expected = trial_of(probe, trial.benchmark, trial.subject, trial.repeat)
        model = self.run.judge(steps)
        judge = Judge(model, judge_prompts()) if model else None
        dataset = self.run.audit_datasets.get(trial.benchmark)
        if dataset is None:
            if spec.get("verify_probes"):
                raise CannotRescore(
                    "the run used --verify-probes, and that check cannot be repeated without the conversations"
                )
            probing = self._probing_without_data(trial, judge)
        else:
            probing = self._probing_of(dataset, trial, judge, steps)
        performed = await probing.perform(probe, steps, repeat=trial.repeat)
        are_inputs_known = dataset is not None and self.run.knows_inputs(steps)
        return Rescored(performed, dataset is not None, are_inputs_known=are_inputs_known, trial=expected)

    def _probing_without_data(self, trial: Trial, judge: Judge | None) -> _Probing:
        key = (trial.benchmark, trial.subject.key, judge.model.subject.key if judge else "")
        if key not in self._probing:
            transcripts = Transcripts(AuditDataset(trial.benchmark, ()))
            audited = AuditedSubject(trial.subject, ())
            plan = AuditPlan(transcripts, self._probes_of(trial.benchmark), (audited,), judge)
            self._probing[key] = _ProbingWithoutData(plan, audited)
        return self._probing[key]

    def _probing_of(self, dataset: AuditDataset, trial: Trial, judge: Judge | None, steps: ReplayedSteps) -> _Probing:
        """Return the object that performs the probes of a subject with the recorded models."""
        model = steps.model_of("answer") or Subject(role="model", name=self._answerers[0])
        if model.name not in self._answerers:
            raise Contradiction(
                f"a recorded answer is by {model.name}, but the run has only the models {', '.join(self._answerers)}"
            )
        judged_by = judge.model.subject.key if judge else ""
        key = (dataset.id, trial.subject.key, model.key, judged_by, str(trial.repeat))
        if key not in self._probing:
            if dataset.id not in self._transcripts:
                self._transcripts[dataset.id] = Transcripts(dataset)
            transcripts, spec = self._transcripts[dataset.id], self.run.run.spec
            audited = self._audited(trial.subject, model, transcripts, trial.repeat)
            depth = spec.get("top_k") or max(SHOWN, spec.get("context_limit") or 0)
            limits = SearchLimits(depth, spec.get("context_limit") or SHOWN, spec.get("token_budget"))
            plan = AuditPlan(
                transcripts,
                self._probes_of(dataset.id),
                (audited,),
                judge,
                limits,
                verify=bool(spec.get("verify_probes")),
            )
            self._probing[key] = _Probing(plan, audited)
        return self._probing[key]

    def _audited(self, subject: Subject, model: Subject, transcripts: Transcripts, repeat: int) -> AuditedSubject:
        recorded = self.run.run.fingerprints.get("prompt")
        text = self.run.run.spec.get("answer_prompt") or (recorded and recorded.text) or load_prompt("audit-answer")
        answering = Answering(SilentModel(model), {"": answer_prompt(text, "answer_prompt")}, Scoring(method="audit"))
        if subject.role == "model":
            if subject.plain() != model.plain():
                raise Contradiction(f"a recorded answer is by {model.name}, but the trial is about {subject.name}")
            return AuditedSubject(subject, (answering,) * repeat)
        name = subject.name
        if len(self._answerers) > 1:
            mark = f"{MODEL_MARK}{model.name}"
            if not name.endswith(mark):
                raise Contradiction(f"a recorded answer is by {model.name}, but the trial is about {subject.name}")
            name = name.removesuffix(mark)
        if subject.role == "baseline":
            return AuditedSubject(subject, (answering,) * repeat, baseline=name)
        own = Subject(role=subject.role, name=name, settings=subject.settings)
        ingest = cast(Ingest, RecordedIngest(own, transcripts.haystack))
        return AuditedSubject(subject, (answering,) * repeat, ingest)

    @property
    def _answerers(self) -> list[str]:
        return str(self.run.run.spec.get("answerer")).split(", ")

    def _probes_of(self, benchmark: str) -> list[Probe]:
        if benchmark not in self._probes:
            own = [case for (name, _), case in self.run.cases.items() if name == benchmark]
            self._probes[benchmark] = [Probe.model_validate(case) for case in own]
        return self._probes[benchmark]

    def changed_cases(self, dataset: AuditDataset) -> list[str]:
        """Return the ids of recorded probes that differ from those that code makes from the data."""
        made = {probe.id: probe.plain() for probe in self._made_probes(dataset)}
        changed = [probe.id for probe in self._probes_of(dataset.id) if made.get(probe.id) != probe.plain()]
        if changed and not self.run.is_of_this_version:
            raise CannotRescore("another version of memorybench made this run, and this version makes other probes")
        return changed

    def selected_cases(self, dataset: AuditDataset) -> list[str]:
        return [probe.id for probe in self._made_probes(dataset)]

    def _made_probes(self, dataset: AuditDataset) -> Sequence[Probe]:
        saved = {name: value for name, value in self.run.run.spec.items() if name in AuditSpec.model_fields}
        spec = AuditSpec.model_validate(saved)
        if spec.probe_file or spec.probe_model:
            raise CannotRescore("the probes come from a file or a model, so code cannot make them again")
        return make_probes(spec, dataset).probes

    def judge_calls(self, case: Mapping[str, Any]) -> int:
        return 1

    def canaries(self) -> Sequence[Canary]:
        names = dict.fromkeys(benchmark for benchmark, _ in self.run.cases)
        used = judge_prompts().used(question_of(probe) for name in names for probe in self._probes_of(name))
        return choose_canaries(used)


class _ProbingWithoutData(_Probing):
    """Computes verdicts on recorded answers. Without the conversations, prompts and evidence are unknown."""

    async def _answer(self, steps: Steps, probe: Probe, repeat: int) -> _Reply:
        assert isinstance(steps, ReplayedSteps)
        step = steps.next("answer")
        if probe.question not in str(step.inputs.get("prompt")):
            raise Contradiction("the recorded answer belongs to another question than that of the trial")
        return _Reply(Completion.model_validate(step.result).text, context="")

    async def _judge(self, steps: Steps, probe: Probe, answer: str) -> Judgement:
        judgement = await super()._judge(steps, probe, answer)
        if probe.options and judgement.by_judge:
            chosen = None if judgement.choice is None else probe.options[judgement.choice]
            if judgement.correct != (chosen == probe.expected_answer):
                raise Contradiction("the recorded verdict contradicts the option that the judge chose")
        return judgement

    def _evidence_scores(self, probe: Probe, memories: Sequence[Memory] | None) -> list[Score]:
        return []

    async def _score_pair(self, steps: Steps, probe: Probe, judgement: Judgement, repeat: int) -> list[Score]:
        assert isinstance(steps, ReplayedSteps)
        if "answer" not in steps.unused():
            return []  # the twin has no answer; its own trial reports the reason
        return await super()._score_pair(steps, probe, judgement, repeat)


def rescorer(run: RecordedRun) -> _AuditRescorer:
    return _AuditRescorer(run)
