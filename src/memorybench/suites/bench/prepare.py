"""From a bench spec to a run. Every name is resolved and every problem reported before anything is spent."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from memorybench.core.errors import BadInput
from memorybench.core.records import canonical
from memorybench.datasets.prompts import answer_prompt
from memorybench.files.names import safe_run_id
from memorybench.files.prompts import load_prompt
from memorybench.journal.rows import Fingerprint
from memorybench.journal.run_reader import RunReader
from memorybench.suites.answering import CHOICE, Answering, Scoring, context_of, estimated_tokens
from memorybench.suites.estimates import (
    JUDGE_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    VERDICT_TOKENS,
    Estimate,
    canary_calls,
    model_calls,
)
from memorybench.suites.ingest import IngestOptions
from memorybench.suites.judge_prompts import judge_prompts
from memorybench.suites.repeats import open_repeats
from memorybench.suites.sampling import describe_sample, failed_cases
from memorybench.suites.searching import DEFAULT_SETTINGS, SearchLimits, default_settings
from memorybench.suites.shards import ShardPart, Unit, choose_units
from memorybench.suites.spec import saved_spec
from memorybench.suites.suite import PreparedRun
from memorybench.text.spelling import suggestion

from .baselines import PLACEBO, Candidate, all_turns, partners, remembered
from .contamination import chance_score
from .measures import plugin_metrics, run_metrics, special_measures
from .plan import Bench, BenchPlan
from .selection import choose_questions
from .spec import ANSWERS, DEFAULT_BENCHMARKS, BenchSpec

if TYPE_CHECKING:
    from memorybench.core.contracts import Model
    from memorybench.core.plans import Limits, Plan
    from memorybench.core.questions import Dataset, Question
    from memorybench.datasets.config import BenchmarkConfig, Evaluation, Ingestion
    from memorybench.datasets.errata import Citing
    from memorybench.files.templates import Template
    from memorybench.judging.prompts import JudgePrompts
    from memorybench.suites.suite import Opening, RunPlace
    from memorybench.suites.wiring import ProviderOpener, ResolvedModel, ResolvedProvider, Wiring

    from .recorded import Recorded
    from .spec import ScoreSpec

MODEL_VARIABLE, JUDGE_VARIABLE = "MEMORYBENCH_MODEL", "MEMORYBENCH_JUDGE"
_CLOSED_WORDS = 3
"""Gold answers with more words on average are free text, unless the benchmark says otherwise."""


@dataclass(frozen=True, slots=True)
class _Benchmark:
    """One benchmark, read and checked."""

    config: BenchmarkConfig
    dataset: Dataset
    questions: tuple[Question, ...]
    prompts: Mapping[str, Template]
    judge_prompts: JudgePrompts
    corrected: Mapping[str, Question]
    limits: SearchLimits
    method: str
    """What decides right or wrong, unless there is a judge."""

    @property
    def name(self) -> str:
        return self.dataset.name


def prepare(spec: BenchSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    recorded = None
    if spec.answers_of is not None:
        from .recorded import Recorded

        with RunReader.open(place.results, thorough=False) as run_reader:
            recorded = Recorded.of(run_reader, spec.answers_of)
    if "providers" not in spec.model_fields_set:
        spec = spec.model_copy(update={"providers": _usable(spec.providers, wiring)})
    resolved = (wiring.provider(name, check=recorded is None) for name in spec.providers)
    providers = tuple({provider.name: provider for provider in resolved}.values())  # two spellings are one provider
    spec = spec.model_copy(update={"providers": tuple(provider.name for provider in providers)})
    for flag, names in (("--data-file", spec.data_files), ("--errata", spec.errata)):
        for name in names:
            if name not in spec.benchmarks:
                remedy = suggestion(name, spec.benchmarks)
                raise BadInput(flag, f'"{name}" is not a benchmark of this run', remedy=remedy)
    failed = None
    if spec.failed_in is not None and not spec.chosen:
        failed = failed_cases(place.results, spec.failed_in, [provider.name for provider in providers])
    benchmarks = tuple(_read_benchmark(name, spec, wiring, failed) for name in dict.fromkeys(spec.benchmarks))
    if spec.limit is not None or spec.failed_in is not None:
        chosen = {benchmark.name: tuple(one.id for one in benchmark.questions) for benchmark in benchmarks}
        spec = spec.model_copy(update={"chosen": chosen})
    if recorded is None:
        for benchmark in benchmarks:
            benchmark.limits.check(providers, benchmark.name)
    if PLACEBO in spec.providers:
        for benchmark in benchmarks:
            partners(benchmark.dataset.questions)  # raises before anything is spent
    evaluations = [benchmark.config.evaluation for benchmark in benchmarks]
    for evaluation in evaluations:
        if evaluation.method == "custom":
            wiring.evaluator(evaluation.custom_evaluator)  # raises before anything is spent
    answerer: ResolvedModel | None = None
    if recorded is None:
        defaults = [evaluation.answering_model for evaluation in evaluations]
        answerer = wiring.choose_model(spec.answering_model, MODEL_VARIABLE, defaults)
    unanswered = [benchmark.name for benchmark in benchmarks if benchmark.config.evaluation.method == "retrieval"]
    if unanswered and answerer is not None:
        if spec.answering_model is not None or len(unanswered) < len(benchmarks):
            problem = f"{unanswered[0]} has no answers: only retrieval is measured"
            raise BadInput("--answering-model", problem, remedy="leave it out, or run the other benchmarks separately")
        answerer = None
    judge = None
    if answerer is not None or recorded is not None:
        defaults = [evaluation.judge for evaluation in evaluations if evaluation.method == "llm-judge"]
        judge = wiring.choose_model(spec.judge_model, JUDGE_VARIABLE if defaults else None, defaults)
    elif spec.judge_model is not None:
        raise BadInput("--judge-model", "there are no answers to judge", remedy="add --answering-model MODEL")
    spec.check_canaries(has_judge=judge is not None)
    if spec.repeats > 1 and answerer is None and recorded is None:
        raise BadInput("--repeats", "there are no answers to repeat", remedy="add --answering-model MODEL")
    part = None
    if spec.shard is not None:
        part = choose_units(spec.shard, _units(benchmarks))
    run = _BenchRun(spec, wiring, providers, benchmarks, _part_of(benchmarks, part), answerer, judge, recorded, part)
    answered_by = recorded.answerer.name if recorded else answerer.name if answerer else None
    details = {
        "answered": answered_by is not None,
        DEFAULT_SETTINGS: default_settings(providers) if recorded is None else {},
        ANSWERS: recorded.repeats if recorded else spec.repeats,
        "corrected": any(benchmark.corrected for benchmark in benchmarks),
        "answerer": answered_by,
        "judge": judge.name if judge else None,
        "methods": {benchmark.name: benchmark.method for benchmark in benchmarks},
        "special_measures": special_measures(one for benchmark in benchmarks for one in benchmark.questions),
        "chance": {benchmark.name: chance_score(benchmark.questions) for benchmark in benchmarks},
        "samples": _samples(run.performed),
        "evidence": {benchmark.name: benchmark.dataset.evidence for benchmark in benchmarks},
        "data_notes": {benchmark.name: list(getattr(benchmark.dataset, "notes", ())) for benchmark in benchmarks},
    }
    next_hint = {} if answered_by or unanswered else {_answering_command(spec): "what scoring answers would take"}
    return PreparedRun(
        spec=spec,
        totals=run.totals(run.performed),
        subjects=tuple(provider.name for provider in providers if not provider.is_baseline),
        fingerprints=run.fingerprints(),
        metrics=run_metrics({**details, "token_budget": spec.token_budget}, plugin_metrics()),
        open_plan=run.open_plan,
        repeats=spec.repeats,
        cases={benchmark.name: {one.id: one for one in benchmark.questions} for benchmark in run.performed},
        details=details,
        models=(answerer, judge),
        estimate=run.estimate,
        hints={**next_hint, "memorybench list": "what else can be measured"},
        part=None
        if part is None
        else ShardPart(part, len(_units(benchmarks)), run.totals(benchmarks), {"samples": _samples(benchmarks)}),
    )


def _units(benchmarks: Sequence[_Benchmark]) -> set[Unit]:
    return {(benchmark.name, question.group) for benchmark in benchmarks for question in benchmark.questions}


def _part_of(benchmarks: Sequence[_Benchmark], part: Collection[Unit] | None) -> tuple[_Benchmark, ...]:
    """The benchmarks with the questions on these histories only; None: on all."""
    if part is None:
        return tuple(benchmarks)
    return tuple(
        replace(one, questions=tuple(question for question in one.questions if (one.name, question.group) in part))
        for one in benchmarks
    )


def _samples(benchmarks: Sequence[_Benchmark]) -> dict[str, dict[str, int]]:
    return {
        benchmark.name: describe_sample(benchmark.questions, benchmark.dataset.questions, lambda one: one.group)
        for benchmark in benchmarks
    }


def _answering_command(spec: BenchSpec) -> str:
    """The command that plans a run on the same benchmarks with answers."""
    given = {
        "--benchmarks": spec.benchmarks if spec.benchmarks != DEFAULT_BENCHMARKS else (),
        "--config-dir": spec.config_dirs,
        "--data-file": [f"{name}={path}" for name, path in spec.data_files.items()],
    }
    flags = [word for flag, values in given.items() if values for word in (flag, *values)]
    return shlex.join(("memorybench", "eval", *flags, "--answering-model", "ollama/llama3.2", "--dry-run"))


def prepare_scoring(spec: ScoreSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """A new run over the recorded answers of an old one, with another judge."""
    safe_run_id(spec.run, "RUN")
    with RunReader.open(place.results) as run_reader:
        saved = run_reader.run(spec.run).spec
    answers = saved.get(ANSWERS, 1)
    if spec.repeats is not None and answers not in (1, spec.repeats):
        raise BadInput(
            "--repeats", f"{spec.run} has {answers} answers per question", remedy="leave it out: each is judged once"
        )
    changes = {
        "judge_model": spec.judge_model,
        "judge_prompt": spec.judge_prompt,
        "canaries": spec.canaries,
        "repeats": spec.repeats or answers,
        "reuse": spec.run,
        "answers_of": spec.run,
    }
    old = saved_spec(BenchSpec, saved, changes)
    return prepare(old, wiring.configured(old.config_dirs, spec.consent), place)


def _usable(names: Sequence[str], wiring: Wiring) -> tuple[str, ...]:
    """The default providers without those whose package is not installed."""
    usable = []
    for name in names:
        try:
            wiring.provider(name)
            usable.append(name)
        except BadInput as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return tuple(usable)


def answer_prompts(config: BenchmarkConfig, override: str | None = None) -> Mapping[str, Template]:
    """The answer prompts of a benchmark, by question type; "" for all others."""
    own, where = config.evaluation.answer_prompt, f"{config.name}: evaluation.answerPrompt"
    if override is not None:
        if not own.user_override:
            raise BadInput("--answer-prompt", f"{config.name} keeps its own prompts (answerPrompt.userOverride: false)")
        return {"": answer_prompt(override, "--answer-prompt")}
    texts = {"": own.default or load_prompt("bench-answer"), **own.by_question_type}
    mapping = config.mapping
    if own.default is None and mapping and (mapping.choices or (mapping.questions and mapping.questions.choices_field)):
        texts[CHOICE] = load_prompt("bench-choice")
    return {kind: answer_prompt(text, where) for kind, text in texts.items()}


def _read_benchmark(
    name: str, spec: BenchSpec, wiring: Wiring, failed: Mapping[str, Collection[str]] | None
) -> _Benchmark:
    config = wiring.benchmark(name)
    file = spec.data_files.get(name)
    dataset = wiring.dataset(config, Path(file) if file else None)
    errata = spec.errata.get(name)
    corrected: dict[str, Question] = {}
    if errata:
        if not hasattr(dataset, "cited"):
            raise BadInput("--errata", f"not supported for the answer key of {dataset.name}")
        from memorybench.datasets.errata import load_errata

        found = load_errata(Path(errata), cast("Citing", dataset))
        corrected = {id: erratum.corrected for id, erratum in found.items()}
    return _Benchmark(
        config,
        dataset,
        choose_questions(dataset, spec, None if failed is None else failed.get(dataset.name, ())),
        answer_prompts(config, spec.answer_prompt),
        judge_prompts(config, spec.judge_prompt),
        corrected,
        SearchLimits.of(spec, name, depth=config.search.default_limit, shown=config.search.context_limit),
        spec.methods.get(dataset.name) or _scoring_method(config.evaluation, dataset.questions),
    )


def _scoring_method(evaluation: Evaluation, questions: Sequence[Question]) -> str:
    """Free text is seldom equal to the gold answer, so exact match would call nearly every answer wrong."""
    if evaluation.method != "exact-match" or evaluation.closed_answers:
        return evaluation.method
    words = [min(len(gold.split()) for gold in one.answers) for one in questions if one.answers and not one.choices]
    is_closed = not words or sum(words) <= _CLOSED_WORDS * len(words)
    return "exact-match" if is_closed and evaluation.closed_answers is None else "f1"


@dataclass(frozen=True, slots=True)
class _BenchRun:
    """Resolved names and read data."""

    spec: BenchSpec
    wiring: Wiring
    providers: tuple[ResolvedProvider, ...]
    benchmarks: tuple[_Benchmark, ...]
    performed: tuple[_Benchmark, ...]
    """The benchmarks with the questions of this shard; all, if the run is not one."""
    answerer: ResolvedModel | None
    judge: ResolvedModel | None
    recorded: Recorded | None
    """Who gave the answers that are judged again. Only the judge is opened then."""
    part: Collection[Unit] | None
    """The histories of this shard."""

    def totals(self, benchmarks: Sequence[_Benchmark]) -> dict[tuple[str, str], int]:
        """Planned trials by benchmark and provider."""
        return {
            (benchmark.name, provider.name): len(benchmark.questions) * self.spec.repeats
            for benchmark in benchmarks
            for provider in self.providers
        }

    def fingerprints(self) -> dict[str, Fingerprint]:
        texts = {f"provider {provider.name}": provider.described() for provider in self.providers}
        answering = self.answerer is not None or self.recorded is not None
        for benchmark in self.benchmarks:
            name = benchmark.name
            texts[f"benchmark {name}"] = benchmark.dataset.fingerprint
            texts[f"config of {name}"] = self.wiring.describe_benchmark(benchmark.config.name)
            if benchmark.corrected:
                errata = {id: question.plain() for id, question in benchmark.corrected.items()}
                texts[f"errata of {name}"] = canonical(errata)
            if answering:
                prompts = {kind: str(prompt.parts) for kind, prompt in benchmark.prompts.items()}
                texts[f"answer prompts of {name}"] = canonical(prompts)
            if self.judge is not None:
                used = sorted(repr(prompt) for prompt in benchmark.judge_prompts.used(benchmark.questions))
                texts[f"judge prompts of {name}"] = "\n".join(used)
        if self.recorded is not None:
            texts["answering model"] = f"{self.recorded.answerer.name}\nat here\ntemperature 0"
        elif self.answerer is not None:
            texts["answering model"] = self.answerer.described()
        if self.judge is not None:
            texts["judge model"] = self.judge.described()
        return {name: Fingerprint.of(text) for name, text in texts.items()}

    async def open_plan(self, opening: Opening) -> Plan:
        thresholds = {benchmark.config.search.default_threshold for benchmark in self.benchmarks}
        opener = self.wiring.open_providers(
            opening.stack,
            opening.stores,
            run_id=opening.run_id,
            threshold=thresholds.pop() if len(thresholds) == 1 else None,  # only where the benchmarks agree
        )
        candidates: list[Candidate] = []
        limits: dict[str, Limits] = {}
        for resolved in self.providers:
            if resolved.is_baseline:
                candidates.append(Candidate.baseline(resolved.name))
            elif self.recorded is not None:
                from .recorded import RecordedProvider

                subject = self.recorded.providers[resolved.name]
                candidates.append(Candidate(subject, RecordedProvider(subject)))
            else:
                opened = await opener.open(resolved.name)
                subject = opened.provider.subject
                candidates.append(
                    Candidate(
                        subject,
                        opened.provider,
                        spends=opened.spends,
                        remote=opened.remote,
                        unordered=opened.unordered,
                    )
                )
                limits[subject.key] = opened.limits
        answerers: list[Model] = []
        if self.recorded is not None:
            answerers = self.recorded.models(self.spec.repeats)
        elif self.answerer is not None:
            answerers = await open_repeats(self.answerer, opening.stack, self.spec.seed, self.spec.repeats)
        judge = await self.judge.open(opening.stack) if self.judge else None
        benches = []
        for benchmark in self.benchmarks:
            answering = [await self._answering(benchmark, answerer, judge, opener) for answerer in answerers]
            benches.append(
                Bench(
                    benchmark.dataset,
                    benchmark.questions,
                    limits=benchmark.limits,
                    chunks=benchmark.config.search.include_chunks,
                    ingest_options=_ingest_options(benchmark.config.ingestion),
                    corrected=benchmark.corrected,
                    answering=answering[0] if answering else None,
                    repeated=answering[1:],
                    answered_once=self.recorded is not None and self.recorded.repeats == 1,
                )
            )
        return BenchPlan(
            opening.run_id,
            benches,
            candidates,
            scored=opening.scored,
            limits=limits,
            plugins=plugin_metrics(),
            canaries=self._canaries,
            scope_suffix=opening.scope_suffix,
            part=self.part,
        ).plan()

    async def _answering(
        self, benchmark: _Benchmark, answerer: Model, judge: Model | None, opener: ProviderOpener
    ) -> Answering:
        from memorybench.judging.judge import Judge

        evaluation = benchmark.config.evaluation
        scoring = Scoring(
            method=benchmark.method,
            partial_credit=evaluation.partial_credit,
            official_f1=evaluation.f1_rule == "locomo",
            judge=Judge(judge, benchmark.judge_prompts) if judge else None,
            embedder=await opener.embedder() if evaluation.method == "semantic-similarity" else None,
            custom=self.wiring.evaluator(evaluation.custom_evaluator) if evaluation.method == "custom" else None,
        )
        return Answering(answerer, benchmark.prompts, scoring)

    def estimate(self) -> Iterator[Estimate]:
        for benchmark in self.performed:
            for provider in self.providers:
                yield from self._estimate(benchmark, provider)
        if self.judge is not None:
            from memorybench.judging.canaries import choose_canaries

            used = dict.fromkeys(prompt for one in self.benchmarks for prompt in one.judge_prompts.used(one.questions))
            yield canary_calls(self.benchmarks[0].name, self.judge, choose_canaries(tuple(used), self._canaries))

    @property
    def _canaries(self) -> int:
        if self.judge is None:
            return 0
        from memorybench.suites.judge_check import canary_limit

        asked = sum(map(_judge_calls, self.benchmarks))
        return canary_limit(self.spec.canaries, asked * len(self.providers) * self.spec.repeats)

    def _estimate(self, benchmark: _Benchmark, provider: ResolvedProvider) -> Iterator[Estimate]:
        name, subject, questions = benchmark.name, provider.name, benchmark.questions
        if not provider.is_baseline and self.recorded is None:
            # of a shared history, the longest beginning contains the others
            ordered = sorted(questions, key=lambda question: question.asked_after)
            haystacks = {question.memory: question.haystack for question in ordered}.values()
            sessions = sum(len(benchmark.dataset.haystack(haystack).sessions) for haystack in haystacks)
            cost = None if provider.spends else 0.0  # prices of services, and the chunks of a model, are unknown
            yield Estimate(benchmark=name, subject=subject, stage="add", calls=sessions, cost=cost)
            yield Estimate(benchmark=name, subject=subject, stage="search", calls=len(questions), cost=cost)
        if self.answerer is not None:
            sizes = [size + PROMPT_TOKENS for size in _context_sizes(benchmark, provider)] * self.spec.repeats
            yield model_calls(name, subject, "answer", self.answerer, sizes, REPLY_TOKENS)
        if self.judge is not None:
            calls = _judge_calls(benchmark) * self.spec.repeats
            sizes = [JUDGE_TOKENS + REPLY_TOKENS] * calls
            yield model_calls(name, subject, "judge", self.judge, sizes, VERDICT_TOKENS)


def _judge_calls(benchmark: _Benchmark) -> int:
    """Calls of the judge for each provider: one per question, item of a rubric and corrected question."""
    calls = 0
    for question in benchmark.questions:
        calls += judge_calls(question, is_corrected=question.id in benchmark.corrected)
    return calls


def judge_calls(question: Question, *, is_corrected: bool = False) -> int:
    by_code = question.must_contain or question.must_not_contain
    return len(question.rubric) or (0 if by_code else 1 + is_corrected)


def _context_sizes(benchmark: _Benchmark, provider: ResolvedProvider) -> list[int]:
    """Tokens of context per question: exact for baselines; for providers as many average turns as they may show."""
    sizes: dict[str, int] = {}
    found = []
    turns_of = lru_cache(maxsize=1)(lambda id: all_turns(benchmark.dataset.haystack(id)))
    for question in benchmark.questions:
        haystack = question.haystack
        if provider.is_baseline and provider.name != "full-context":
            found.append(estimated_tokens(context_of(remembered(provider.name, question, turns_of(haystack)))))
            continue
        if haystack not in sizes:
            everything = turns_of(haystack)
            total = estimated_tokens(context_of(everything))
            share = min(1.0, benchmark.limits.shown / max(1, len(everything)))
            shown = min(round(total * share), benchmark.limits.token_budget or total)
            sizes[haystack] = total if provider.is_baseline else shown
        found.append(sizes[haystack])
    return found


def _ingest_options(ingestion: Ingestion) -> IngestOptions:
    return IngestOptions(
        by_turn=ingestion.mode == "incremental",
        batch_size=ingestion.batch_size,
        delay=ingestion.delay_between_batches / 1000,
    )
