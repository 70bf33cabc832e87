"""From a bench spec to a run: every name is resolved, and every refusal said, before anything is spent or written."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import Field

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.core.contracts import Model
from memorybench.core.errors import BadInput
from memorybench.core.measures import Metric
from memorybench.core.questions import Dataset, Question
from memorybench.core.records import Record, canonical
from memorybench.datasets.config import BenchmarkConfig, Ingestion
from memorybench.datasets.errata import Citing, load_errata
from memorybench.datasets.prompts import answer_prompt
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch, perform
from memorybench.files.prompts import load_prompt
from memorybench.files.templates import Template
from memorybench.journal.rows import Fingerprint, Run
from memorybench.journal.run_writer import RunWriter
from memorybench.judging.judge import Judge
from memorybench.judging.prompts import JudgePrompts
from memorybench.suites.answering import Reading, Scoring
from memorybench.suites.bench.baselines import Arm
from memorybench.suites.bench.measures import plugin_metrics, run_metrics
from memorybench.suites.bench.plan import Bench, BenchPlan
from memorybench.suites.ingest import IngestOptions
from memorybench.text.spelling import suggestion

from .code import load_evaluator
from .datasets import open_dataset
from .environment import environment
from .judging import judge_prompts
from .models import JUDGE_VARIABLE, MODEL_VARIABLE, Chosen, choose_model, open_chosen
from .providers import ProviderOpener, check_provider, described, lines
from .recorded import Recorded, RecordedModel, RecordedProvider

DEFAULT_BENCHMARKS = ("starter",)
DEFAULT_ARMS = ("bm25", "dense", "hybrid", "none", "full-context", "oracle")
STORES = "stores"


class BenchSpec(Record):
    """All that a bench run depends on. Saved with the run: `--resume` needs nothing else."""

    benchmarks: tuple[str, ...] = DEFAULT_BENCHMARKS
    providers: tuple[str, ...] = DEFAULT_ARMS
    limit: int | None = Field(default=None, ge=1)
    start: int | None = Field(default=None, ge=1)
    end: int | None = Field(default=None, ge=1)
    question_types: tuple[str, ...] = ()
    seed: int | None = None
    answering_model: str | None = None
    judge_model: str | None = None
    answer_prompt: str | None = None
    """The text itself: a file may change before the run is resumed."""
    judge_prompt: str | None = None
    data_files: Mapping[str, str] = Field(default_factory=dict)
    errata: Mapping[str, str] = Field(default_factory=dict)
    """By benchmark: the file."""
    config_dirs: tuple[str, ...] = ()
    reuse: str | None = None
    answers_of: str | None = None
    """A run whose recorded answers are only judged anew."""
    allow_code: bool = False


@dataclass(frozen=True, slots=True)
class PreparedBench:
    """One benchmark, read and checked."""

    config: BenchmarkConfig
    dataset: Dataset
    questions: tuple[Question, ...]
    prompts: Mapping[str, Template]
    judge_prompts: JudgePrompts
    corrected: Mapping[str, Question]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything is resolved, nothing is opened."""

    spec: BenchSpec
    catalog: Catalog
    arms: tuple[Entry, ...]
    benches: tuple[PreparedBench, ...]
    reader: Chosen | None
    judge: Chosen | None
    fingerprints: Mapping[str, Fingerprint]
    recorded: Recorded | None = None
    """Where its answers are there already: who gave them. Nobody but the judge is opened."""

    @property
    def reuse(self) -> str | None:
        return self.spec.reuse

    @property
    def planned(self) -> int:
        return sum(len(bench.questions) for bench in self.benches) * len(self.arms)

    @property
    def saved(self) -> dict[str, Any]:
        """The spec as the journal keeps it, with what a report must know without the dataset."""
        return {
            **self.spec.model_dump(mode="json"),
            "answered": self.reader is not None,
            "corrected": any(bench.corrected for bench in self.benches),
            "reader": self.reader.name if self.reader else None,
            "judge": self.judge.name if self.judge else None,
            "methods": {bench.dataset.name: bench.config.evaluation.method for bench in self.benches},
            "questions": {bench.dataset.name: len(bench.questions) for bench in self.benches},
            "evidence": {bench.dataset.name: bench.dataset.evidence for bench in self.benches},
            "data_notes": {bench.dataset.name: list(getattr(bench.dataset, "notes", ())) for bench in self.benches},
        }

    def metrics(self) -> tuple[Metric, ...]:
        return run_metrics(self.saved, plugin_metrics(self.catalog))

    def row(self, run_id: str) -> Run:
        return Run(
            id=run_id,
            suite="bench",
            spec=self.saved,
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=self.planned,
        )

    def totals(self) -> dict[tuple[str, str], int]:
        return {(bench.dataset.name, arm.name): len(bench.questions) for bench in self.benches for arm in self.arms}

    async def perform(
        self, run_writer: RunWriter, output: Path, *, concurrency: int, budget: Budget, watch: Watch | None
    ) -> Ending:
        return await run_bench(self, run_writer, output, concurrency=concurrency, budget=budget, watch=watch)


def prepare(spec: BenchSpec, folder: Path, *, recorded: Recorded | None = None) -> Prepared:
    """Resolves all names, from configs dropped into `folder`, too. Raises before anything is opened or spent."""
    reader = Chosen(recorded.reader.name, None) if recorded else None
    catalog = Catalog(folder, [Path(place) for place in spec.config_dirs])
    arms = tuple(catalog.chosen("provider", name) for name in dict.fromkeys(spec.providers))
    for entry in arms:
        if entry.kind != "baseline" and reader is None:
            check_provider(catalog, entry, allow_code=spec.allow_code)
    _refuse_strangers(spec)
    benches = tuple(_prepared_bench(catalog, name, spec) for name in dict.fromkeys(spec.benchmarks))
    evaluations = [bench.config.evaluation for bench in benches]
    for told in evaluations:
        if told.method == "custom":
            load_evaluator(told.custom_evaluator, spec.allow_code)  # raises before anything is asked
    if reader is None:
        reader = choose_model(spec.answering_model, MODEL_VARIABLE, [told.answering_model for told in evaluations])
    judge = None
    if reader is not None:
        own = [told.judge for told in evaluations if told.method == "llm-judge"]
        judge = choose_model(spec.judge_model, JUDGE_VARIABLE if own else None, own)
    elif spec.judge_model is not None:
        raise BadInput("--judge-model", "there is no answer to judge", remedy="name an --answering-model as well")
    marks = _fingerprints(catalog, arms, benches, reader, judge)
    return Prepared(spec, catalog, arms, benches, reader, judge, marks, recorded)


def _prepared_bench(catalog: Catalog, name: str, spec: BenchSpec) -> PreparedBench:
    config = catalog.benchmark(name, environment())
    file = spec.data_files.get(name)
    dataset = open_dataset(config, catalog, file=Path(file) if file else None)
    errata = spec.errata.get(name)
    return PreparedBench(
        config,
        dataset,
        choose(dataset, spec),
        prompts(config, spec.answer_prompt),
        judge_prompts(config, spec.judge_prompt),
        _corrected(dataset, Path(errata)) if errata else {},
    )


def _corrected(dataset: Dataset, file: Path) -> Mapping[str, Question]:
    if not hasattr(dataset, "cited"):
        raise BadInput("--errata", f"the answer key of {dataset.name} can not be corrected by a file")
    return {id: erratum.corrected for id, erratum in load_errata(file, cast("Citing", dataset)).items()}


def _refuse_strangers(spec: BenchSpec) -> None:
    """--data-file and --errata may only speak of benchmarks that are run."""
    for flag, told in (("--data-file", spec.data_files), ("--errata", spec.errata)):
        for name in told:
            if name not in spec.benchmarks:
                raise BadInput(
                    flag, f'"{name}" is not among the benchmarks of this run', remedy=suggestion(name, spec.benchmarks)
                )


def _fingerprints(
    catalog: Catalog,
    arms: Sequence[Entry],
    benches: Sequence[PreparedBench],
    reader: Chosen | None,
    judge: Chosen | None,
) -> dict[str, Fingerprint]:
    found = {f"provider {entry.name}": Fingerprint.of(described(catalog, entry)) for entry in arms}
    for bench in benches:
        found[f"benchmark {bench.dataset.name}"] = Fingerprint.of(bench.dataset.fingerprint)
        found[f"config of {bench.dataset.name}"] = Fingerprint.of(lines(catalog.benchmark(bench.config.name).plain()))
        if bench.corrected:
            told = {id: question.plain() for id, question in bench.corrected.items()}
            found[f"errata of {bench.dataset.name}"] = Fingerprint.of(canonical(told))
        if reader is not None:
            texts = {kind: str(prompt.parts) for kind, prompt in bench.prompts.items()}
            found[f"answer prompts of {bench.dataset.name}"] = Fingerprint.of(canonical(texts))
        if judge is not None:
            used = sorted(repr(prompt) for prompt in bench.judge_prompts.used(bench.questions))
            found[f"judge prompts of {bench.dataset.name}"] = Fingerprint.of("\n".join(used))
    if reader is not None:
        found["answering model"] = Fingerprint.of(reader.described())
    if judge is not None:
        found["judge model"] = Fingerprint.of(judge.described())
    return found


def choose(dataset: Dataset, spec: BenchSpec) -> tuple[Question, ...]:
    """The questions asked for: by position (1-indexed, inclusive), then by type, then the first few or, with a seed,
    a random few in their old order."""
    total = len(dataset.questions)
    if spec.start is not None and spec.start > total:
        raise BadInput("--start", f"{spec.start} is beyond the {total} questions of {dataset.name}")
    questions = list(dataset.questions[(spec.start or 1) - 1 : spec.end])
    if spec.question_types:
        kinds = sorted({question.kind for question in dataset.questions if question.kind})
        unknown = [kind for kind in spec.question_types if kind not in kinds]
        if unknown:
            raise BadInput(
                "--question-type", f'{dataset.name} has no type "{unknown[0]}"', expected=f"one of {', '.join(kinds)}"
            )
        questions = [question for question in questions if question.kind in spec.question_types]
    if spec.limit is not None and spec.limit < len(questions):
        if spec.seed is None:
            questions = questions[: spec.limit]
        else:
            kept = sorted(random.Random(spec.seed).sample(range(len(questions)), spec.limit))
            questions = [questions[place] for place in kept]
    if not questions:
        raise BadInput("", f"no question of {dataset.name} is left by --start, --end and --question-type")
    return tuple(questions)


def prompts(config: BenchmarkConfig, override: str | None = None) -> Mapping[str, Template]:
    """The answer prompts of a benchmark, by question type; "" for all others."""
    told, where = config.evaluation.answer_prompt, f"{config.name}: evaluation.answerPrompt"
    if override is not None:
        if not told.user_override:
            raise BadInput("--answer-prompt", f"{config.name} keeps its own prompts (answerPrompt.userOverride: false)")
        return {"": answer_prompt(override, "--answer-prompt")}
    texts = {"": told.default or load_prompt("bench-answer"), **told.by_question_type}
    return {kind: answer_prompt(text, where) for kind, text in texts.items()}


async def run_bench(
    prepared: Prepared,
    run_writer: RunWriter,
    output: Path,
    *,
    concurrency: int,
    budget: Budget,
    watch: Watch | None,
) -> Ending:
    """Opens what was prepared and performs it."""
    recorded = prepared.recorded  # its steps are taken over
    stores = (output / run_writer.run.id / STORES).absolute()  # programs that providers start have folders of their own
    async with AsyncExitStack() as stack:
        arms, limits = [], {}
        opener = ProviderOpener(
            stack,
            prepared.catalog,
            stores,
            run=run_writer.run.id,
            allow_code=prepared.spec.allow_code,
            threshold=_threshold(prepared.benches),
        )
        for entry in prepared.arms:
            if entry.kind == "baseline":
                arms.append(Arm.baseline(entry.name))
                continue
            if recorded is not None:
                subject = recorded.providers[entry.name]
                arms.append(Arm(subject, RecordedProvider(subject)))
                continue
            opened = await opener.open(entry)
            arms.append(opened.arm())
            limits[opened.provider.subject.key] = opened.limits
        reader: Model | None = None
        judge: Model | None = None
        if recorded is not None:
            reader = RecordedModel(recorded.reader)
        elif prepared.reader is not None:
            reader = await open_chosen(stack, prepared.reader, seed=prepared.spec.seed)
        if prepared.judge is not None:
            judge = await open_chosen(stack, prepared.judge)
        benches = [
            Bench(
                bench.dataset,
                bench.questions,
                depth=bench.config.search.default_limit,
                shown=bench.config.search.context_limit,
                chunks=bench.config.search.include_chunks,
                ingest_options=_ingest_options(bench.config.ingestion),
                corrected=bench.corrected,
                reading=await _reading(bench, reader, judge, opener, prepared.spec.allow_code) if reader else None,
            )
            for bench in prepared.benches
        ]
        plan = BenchPlan(
            run_writer.run.id,
            benches,
            arms,
            scored=run_writer.scored(),
            limits=limits,
            plugins=plugin_metrics(prepared.catalog),
        ).plan()
        ending = await perform(plan, run_writer, concurrency=concurrency, budget=budget, watch=watch)
    if ending.status == "complete":
        await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)  # cleared, and made anew if need be
    return ending


async def _reading(
    bench: PreparedBench, reader: Model, judge: Model | None, opener: ProviderOpener, allow_code: bool
) -> Reading:
    told = bench.config.evaluation
    scoring = Scoring(
        method=told.method,
        official_f1=told.f1_rule == "locomo",
        judge=Judge(judge, bench.judge_prompts) if judge else None,
        embedder=await opener.embedder() if told.method == "semantic-similarity" else None,
        custom=load_evaluator(told.custom_evaluator, allow_code) if told.method == "custom" else None,
    )
    return Reading(reader, bench.prompts, scoring)


def _threshold(benches: Sequence[PreparedBench]) -> float | None:
    """What requests that use `threshold` send: the benchmarks' own, where they agree."""
    told = {bench.config.search.default_threshold for bench in benches}
    return told.pop() if len(told) == 1 else None


def _ingest_options(ingestion: Ingestion) -> IngestOptions:
    return IngestOptions(
        by_turn=ingestion.mode == "incremental",
        batch_size=ingestion.batch_size,
        delay=ingestion.delay_between_batches / 1000,
    )
