"""From a bench spec to a run: every name is resolved, and every refusal said, before anything is spent or written."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memorybench import __version__
from memorybench.catalog.catalog import Catalog
from memorybench.catalog.entries import Entry
from memorybench.datasets.config import BenchmarkConfig
from memorybench.datasets.prompts import answer_prompt
from memorybench.engine.budget import Budget
from memorybench.engine.run import Ending, Watch, perform
from memorybench.journal.book import Book
from memorybench.journal.rows import Fingerprint, Run
from memorybench.suites.bench.arms import Arm
from memorybench.suites.bench.measures import measures
from memorybench.suites.bench.plan import Bench, BenchPlan, Reading
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.measures import Metric
from memorybench.vocabulary.plans import Limits
from memorybench.vocabulary.questions import Dataset, Question
from memorybench.vocabulary.records import Record, canonical

from .datasets import open_dataset
from .models import Chosen, choose_model, open_chosen
from .providers import ProviderOpener

if TYPE_CHECKING:
    from memorybench.documents.templates import Template

DEFAULT_BENCHMARKS = ("starter",)
DEFAULT_ARMS = ("bm25", "dense", "hybrid", "none", "full-context", "oracle")
STORES = "stores"
_ANSWER_PROMPT = """\
You answer questions about what was said in earlier conversations. Use only the memories below.

Question: ${question}
Asked on: ${questionDate}

Memories:
${retrievedContext}

If the memories do not tell, say "I don't know". Otherwise answer in a few words.
"""


class BenchSpec(Record):
    """All that a bench run depends on. Saved with the run: `--resume` needs nothing else."""

    benchmarks: tuple[str, ...] = DEFAULT_BENCHMARKS
    providers: tuple[str, ...] = DEFAULT_ARMS
    limit: int | None = None
    start: int | None = None
    end: int | None = None
    question_types: tuple[str, ...] = ()
    seed: int | None = None
    answering_model: str | None = None
    config_dirs: tuple[str, ...] = ()
    reuse: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything is resolved, nothing is opened."""

    spec: BenchSpec
    catalog: Catalog
    arms: tuple[Entry, ...]
    benches: tuple[tuple[BenchmarkConfig, Dataset, tuple[Question, ...]], ...]
    reader: Chosen | None
    fingerprints: Mapping[str, Fingerprint]

    @property
    def planned(self) -> int:
        return sum(len(questions) for _, _, questions in self.benches) * len(self.arms)

    @property
    def saved(self) -> dict[str, Any]:
        """The spec as the journal keeps it, with what a report must know without the dataset."""
        return {
            **self.spec.model_dump(mode="json"),
            "answered": self.reader is not None,
            "questions": {dataset.name: len(questions) for _, dataset, questions in self.benches},
            "evidence": {dataset.name: dataset.evidence for _, dataset, _ in self.benches},
        }

    def metrics(self) -> tuple[Metric, ...]:
        return bench_metrics(self.saved, plugin_metrics(self.catalog))

    def row(self, run_id: str) -> Run:
        return Run(
            id=run_id,
            suite="bench",
            spec=self.saved,
            fingerprints=self.fingerprints,
            program=f"memorybench {__version__}",
            planned=self.planned,
        )


def prepare(spec: BenchSpec, folder: Path) -> Prepared:
    """Resolves all names, from configs dropped into `folder`, too. Raises before anything is opened or spent."""
    catalog = Catalog(folder, [Path(place) for place in spec.config_dirs])
    arms = tuple(catalog.chosen("provider", name) for name in dict.fromkeys(spec.providers))
    benches = []
    for name in dict.fromkeys(spec.benchmarks):
        config = catalog.benchmark(name)
        dataset = open_dataset(config, catalog)
        benches.append((config, dataset, choose(dataset, spec)))
    reader = choose_model(spec.answering_model, [config.evaluation.answering_model for config, _, _ in benches])
    fingerprints = {f"benchmark {dataset.name}": Fingerprint.of(dataset.fingerprint) for _, dataset, _ in benches}
    for entry in arms:
        fingerprints[f"provider {entry.name}"] = Fingerprint.of(_described(catalog, entry))
    if reader is not None:
        fingerprints["answering model"] = Fingerprint.of(reader.name)
        for config, _, _ in benches:
            fingerprints[f"answer prompts of {config.name}"] = Fingerprint.of(canonical(_prompt_texts(config)))
    return Prepared(spec, catalog, arms, tuple(benches), reader, fingerprints)


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


def prompts(config: BenchmarkConfig) -> Mapping[str, Template]:
    """The answer prompts of a benchmark, by question type; "" for all others."""
    where = f"{config.name}: evaluation.answerPrompt"
    return {kind: answer_prompt(text, where) for kind, text in _prompt_texts(config).items()}


def _prompt_texts(config: BenchmarkConfig) -> dict[str, str]:
    told = config.evaluation.answer_prompt
    return {"": told.default or _ANSWER_PROMPT, **told.by_question_type}


def bench_metrics(spec: Mapping[str, Any], plugins: Sequence[Metric] = ()) -> tuple[Metric, ...]:
    """The measures of a saved run: neither dataset nor provider is needed."""
    levels = tuple(dict.fromkeys(spec["evidence"].values()))
    return (*measures(answered=spec["answered"], levels=levels), *plugins)


def plugin_metrics(catalog: Catalog) -> tuple[Metric, ...]:
    """Metrics of installed plug-ins: they read outcomes only, so they go with every report."""
    return tuple(catalog.plugin("metric", entry.name).load() for entry in catalog.entries("metric"))


async def run_bench(
    prepared: Prepared,
    book: Book,
    output: Path,
    *,
    concurrency: int,
    budget: Budget | None,
    watch: Watch | None,
) -> Ending:
    """Opens what was prepared and performs it."""
    stores = output / book.run.id / STORES
    async with AsyncExitStack() as stack:
        arms, limits = [], {}
        opener = ProviderOpener(stack, prepared.catalog, stores)
        for entry in prepared.arms:
            if entry.kind == "baseline":
                arms.append(Arm.baseline(entry.name))
                continue
            opened = await opener.open(entry)
            arms.append(Arm.of(opened.provider, spends=opened.spends))
            limits[opened.provider.subject.key] = opened.limits
        reader = None
        if prepared.reader is not None:
            reader = await open_chosen(stack, prepared.reader, seed=prepared.spec.seed)
            limits[reader.subject.key] = Limits()
        benches = [
            Bench(
                dataset,
                questions,
                depth=config.search.default_limit,
                shown=config.search.context_limit,
                reading=Reading(reader, prompts(config), config.evaluation.method) if reader else None,
            )
            for config, dataset, questions in prepared.benches
        ]
        plan = BenchPlan(book.run.id, benches, arms, scored=book.scored(), limits=limits).plan()
        ending = await perform(plan, book, concurrency=concurrency, budget=budget, watch=watch)
    if ending.status == "complete":
        await asyncio.to_thread(shutil.rmtree, stores, ignore_errors=True)  # cleared, and made anew if need be
    return ending


def _described(catalog: Catalog, entry: Entry) -> str:
    """What a resumed run must find unchanged. What ships with the program changes with its version."""
    if entry.kind == "baseline":
        return f"baseline {entry.name}"
    config = catalog.provider(entry.name)
    told = canonical(config)
    return f"{told}\nmemorybench {__version__}" if (config.adapter or "").startswith("builtin:") else told
