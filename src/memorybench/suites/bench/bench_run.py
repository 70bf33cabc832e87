"""A bench run after its names are resolved and its data is read: its fingerprints and its plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from memorybench.core.records import canonical
from memorybench.core.trials import Subject
from memorybench.journal.rows import Fingerprint
from memorybench.judging.prompts import prompts_text
from memorybench.suites.answering import Answering, Scoring
from memorybench.suites.ingest import IngestOptions
from memorybench.suites.repeats import open_repeats
from memorybench.suites.shards import Unit

from .baselines import Candidate
from .benchmarks import Benchmark, answer_prompts_text
from .measures import plugin_metrics
from .plan import Bench, BenchPlan
from .spec import BenchSpec

if TYPE_CHECKING:
    from memorybench.core.contracts import Model
    from memorybench.core.plans import Limits, Plan
    from memorybench.suites.suite import Opening
    from memorybench.suites.wiring import ResolvedModel, ResolvedProvider, Wiring
    from memorybench.wiring.providers import ProviderOpener

    from .recorded import Recorded


class BenchRun(Struct, frozen=True):
    """The providers, models and benchmarks of a run, resolved and read, but not opened."""

    spec: BenchSpec
    wiring: Wiring
    providers: tuple[ResolvedProvider, ...]
    benchmarks: tuple[Benchmark, ...]
    performed: tuple[Benchmark, ...]
    """The benchmarks with only the questions of this shard; the same as `benchmarks` if the run is not a shard."""
    answerer: ResolvedModel | None
    judge: ResolvedModel | None
    recorded: Recorded | None
    """The providers and the answering model of an earlier run, whose answers this run judges again.

    Only the judge is then opened. None for a run that makes its own answers.
    """
    part: Collection[Unit] | None
    """The histories of this shard; None if the run is not a shard."""

    def totals(self, benchmarks: Sequence[Benchmark]) -> dict[tuple[str, str], int]:
        """Return the number of planned trials, by benchmark and provider."""
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
                texts[f"answer prompts of {name}"] = answer_prompts_text(benchmark.prompts)
            if self.judge is not None:
                used = benchmark.judge_prompts.used(benchmark.questions)
                texts[f"judge prompts of {name}"] = prompts_text(used)
        if self.recorded is not None:
            texts["answering model"] = f"{self.recorded.answerer.name}\nat here\ntemperature 0"
        elif self.answerer is not None:
            texts["answering model"] = self.answerer.described()
        if self.judge is not None:
            texts["judge model"] = self.judge.described()
        return {name: Fingerprint.of(text) for name, text in texts.items()}

    async def open_plan(self, opening: Opening) -> Plan:
        opener = self.wiring.open_providers(
            opening.stack,
            opening.stores,
            run_id=opening.run_id,
            threshold=self.benchmarks[0].config.search.default_threshold,
        )
        candidates: list[Candidate] = []
        limits: dict[str, Limits] = {}
        for resolved in self.providers:
            if resolved.is_baseline:
                candidates.append(Candidate.baseline(resolved.name))
            elif self.recorded is not None:
                from .recorded import RecordedProvider

                # a provider without an outcome, because the run was interrupted before, has no recorded step either
                subject = self.recorded.providers.get(resolved.name) or Subject(role="provider", name=resolved.name)
                candidates.append(Candidate(subject, RecordedProvider(subject)))
            else:
                opened = await opener.open(resolved.name)
                subject = opened.provider.subject
                opening.check_subject(subject)
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
            ingestion = benchmark.config.ingestion
            benches.append(
                Bench(
                    benchmark.dataset,
                    benchmark.questions,
                    limits=benchmark.limits,
                    chunks=benchmark.config.search.include_chunks,
                    ingest_options=IngestOptions(
                        by_turn=ingestion.mode == "incremental",
                        batch_size=ingestion.batch_size,
                        delay=ingestion.delay_between_batches / 1000,
                        all_recorded=self.recorded is not None,
                    ),
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
            canaries=self.canaries,
            scope_suffix=opening.scope_suffix,
            part=self.part,
        ).plan()

    async def _answering(
        self, benchmark: Benchmark, answerer: Model, judge: Model | None, opener: ProviderOpener
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
        return Answering(answerer, benchmark.prompts, scoring, all_recorded=self.recorded is not None)

    @property
    def canaries(self) -> int:
        """The most canaries, answers with a known verdict, that the judge is checked with; 0 without a judge."""
        if self.judge is None:
            return 0
        from memorybench.suites.judge_check import canary_limit

        asked = sum(benchmark.judge_calls for benchmark in self.benchmarks)
        return canary_limit(self.spec.canaries, asked * len(self.providers) * self.spec.repeats)
