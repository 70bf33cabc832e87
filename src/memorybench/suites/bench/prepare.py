"""Prepares a bench run from its spec. Every name is resolved and every problem reported before anything is spent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memorybench.core.errors import BadInput
from memorybench.files.names import safe_run_id
from memorybench.journal.run_reader import RunReader
from memorybench.metrics.names import ALIASES
from memorybench.suites.registry import verb_of
from memorybench.suites.sampling import failed_cases
from memorybench.suites.search_limits import DEFAULT_SETTINGS, default_settings
from memorybench.suites.shards import ShardPart, choose_units
from memorybench.suites.spec import saved_spec, with_folders
from memorybench.suites.suite import PreparedRun, Variation
from memorybench.text.spelling import suggestion

from .baselines import PLACEBO, partners
from .bench_run import BenchRun
from .benchmarks import Benchmark, part_of, read_benchmark, samples_of, units_of
from .contamination import chance_score
from .estimating import estimates
from .measures import measured_on, plugin_metrics, run_metrics, special_measures
from .spec import ANSWERS, FIRST_MEASURES, MEASURED_ON, BenchSpec

if TYPE_CHECKING:
    from memorybench.suites.suite import RunPlace
    from memorybench.suites.wiring import ResolvedModel, ResolvedProvider, Wiring

    from .recorded import Recorded
    from .spec import ScoreSpec

MODEL_VARIABLE, JUDGE_VARIABLE = "MEMORYBENCH_MODEL", "MEMORYBENCH_JUDGE"


def prepare(spec: BenchSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    recorded = _recorded(spec, place)
    spec, providers = _resolve_providers(spec, wiring, check=recorded is None)
    _check_names(spec)
    spec, benchmarks = _read_benchmarks(spec, wiring, place)
    _check_benchmarks(spec, wiring, benchmarks, () if recorded else providers)
    answerer = None if recorded else _choose_answerer(spec, wiring, benchmarks)
    judge = _choose_judge(spec, wiring, benchmarks, has_answers=answerer is not None or recorded is not None)
    part = None if spec.shard is None else choose_units(spec.shard, units_of(benchmarks))
    run = BenchRun(spec, wiring, providers, benchmarks, part_of(benchmarks, part), answerer, judge, recorded, part)
    details = _details(run)
    scoring = Variation({"answering_model": "ollama/llama3.2"}, "what scoring answers would take", ("--dry-run",))
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
        estimate=partial(estimates, run),
        hints={with_folders(("memorybench", "list"), spec): "what else can be measured"},
        variations=(scoring,) if details["answerer"] is None and not _unanswered(benchmarks) else (),
        part=None
        if part is None
        else ShardPart(part, len(units_of(benchmarks)), run.totals(benchmarks), {"samples": samples_of(benchmarks)}),
    )


def _recorded(spec: BenchSpec, place: RunPlace) -> Recorded | None:
    """Return the recorded answers to judge again; None if the run makes its own answers."""
    if spec.answers_of is None:
        return None
    from .recorded import Recorded

    with RunReader.open(place.results, thorough=False) as run_reader:
        return Recorded.of(run_reader, spec.answers_of)


def _resolve_providers(
    spec: BenchSpec, wiring: Wiring, *, check: bool
) -> tuple[BenchSpec, tuple[ResolvedProvider, ...]]:
    """Look up the providers; return the spec with their full names, and the providers."""
    names = spec.providers if "providers" in spec.model_fields_set else _usable(spec.providers, wiring)
    resolved = (wiring.provider(name, check=check) for name in names)
    providers = tuple({provider.name: provider for provider in resolved}.values())  # two spellings are one provider
    return spec.model_copy(update={"providers": tuple(provider.name for provider in providers)}), providers


def _check_names(spec: BenchSpec) -> None:
    for flag, names in (("--data-file", spec.data_files), ("--errata", spec.errata)):
        for name in names:
            if name not in spec.benchmarks:
                raise BadInput(
                    flag, f'"{name}" is not a benchmark of this run', remedy=suggestion(name, spec.benchmarks)
                )


def _read_benchmarks(spec: BenchSpec, wiring: Wiring, place: RunPlace) -> tuple[BenchSpec, tuple[Benchmark, ...]]:
    """Read the benchmarks; return the spec with the ids of the sampled questions, and the benchmarks."""
    failed = None
    if spec.failed_in is not None and not spec.chosen:
        failed = failed_cases(place.results, spec.failed_in, spec.providers)
    benchmarks = tuple(read_benchmark(name, spec, wiring, failed) for name in dict.fromkeys(spec.benchmarks))
    if spec.limit is not None or spec.failed_in is not None:
        chosen = {benchmark.name: tuple(one.id for one in benchmark.questions) for benchmark in benchmarks}
        spec = spec.model_copy(update={"chosen": chosen})
    return spec, benchmarks


def _check_benchmarks(
    spec: BenchSpec, wiring: Wiring, benchmarks: Sequence[Benchmark], searched: Sequence[ResolvedProvider]
) -> None:
    """Raise BadInput if a benchmark cannot be run with these providers. Called before anything is spent.

    Reasons: a provider needs one threshold and the benchmarks have several, a provider returns fewer memories than a
    search asks for, there is no other history for `placebo`, or the custom evaluator cannot be loaded. `searched` are
    the providers that the run searches.
    """
    thresholds = {benchmark.config.search.default_threshold for benchmark in benchmarks}
    for provider in searched if len(thresholds) > 1 else ():
        if provider.uses_threshold:
            raise BadInput(
                f'provider "{provider.name}"',
                "a run sends one threshold, but its benchmarks differ in search.defaultThreshold",
                remedy="run these benchmarks separately",
            )
    for benchmark in benchmarks:
        if searched:
            benchmark.limits.check(searched, benchmark.name)
        if PLACEBO in spec.providers:
            partners(benchmark.dataset.questions)
        if benchmark.config.evaluation.method == "custom":
            wiring.evaluator(benchmark.config.evaluation.custom_evaluator)


def _unanswered(benchmarks: Sequence[Benchmark]) -> list[str]:
    """Return the names of the benchmarks that measure retrieval only and have no answers."""
    return [benchmark.name for benchmark in benchmarks if benchmark.config.evaluation.method == "retrieval"]


def _choose_answerer(spec: BenchSpec, wiring: Wiring, benchmarks: Sequence[Benchmark]) -> ResolvedModel | None:
    """Return the answering model; None if only retrieval is measured."""
    defaults = [benchmark.config.evaluation.answering_model for benchmark in benchmarks]
    answerer = wiring.choose_model(spec.answering_model, MODEL_VARIABLE, defaults)
    unanswered = _unanswered(benchmarks)
    problem = "".join(f"{name} measures only retrieval: no model answers its questions" for name in unanswered[:1])
    if unanswered and answerer is not None:
        if spec.answering_model is not None or len(unanswered) < len(benchmarks):
            remedy = f"leave out the flag, or run {unanswered[0]} separately without it"
            raise BadInput("--answering-model", problem, remedy=remedy)
        answerer = None
    if answerer is None and spec.repeats > 1:
        remedy = "leave the flag out" if unanswered else "add --answering-model MODEL"
        raise BadInput("--repeats", problem or "no model answers the questions", remedy=remedy)
    return answerer


def _choose_judge(
    spec: BenchSpec, wiring: Wiring, benchmarks: Sequence[Benchmark], *, has_answers: bool
) -> ResolvedModel | None:
    judge = None
    if has_answers:
        evaluations = [benchmark.config.evaluation for benchmark in benchmarks]
        defaults = [evaluation.judge for evaluation in evaluations if evaluation.method == "llm-judge"]
        judge = wiring.choose_model(spec.judge_model, JUDGE_VARIABLE if defaults else None, defaults)
    elif spec.judge_model is not None:
        raise BadInput("--judge-model", "no model answers the questions", remedy="add --answering-model MODEL")
    spec.check_canaries(has_judge=judge is not None)
    return judge


def _details(run: BenchRun) -> dict[str, Any]:
    """Return the data about the run that is saved with its spec, because the report needs it."""
    benchmarks, recorded = run.benchmarks, run.recorded
    answered_by = recorded.answerer.name if recorded else run.answerer.name if run.answerer else None
    return {
        "answered": answered_by is not None,
        DEFAULT_SETTINGS: default_settings(run.providers) if recorded is None else {},
        ANSWERS: recorded.repeats if recorded else run.spec.repeats,
        FIRST_MEASURES: {
            benchmark.name: [ALIASES.get(name, name) for name in benchmark.config.metrics] for benchmark in benchmarks
        },
        "corrected": any(benchmark.corrected for benchmark in benchmarks),
        "answerer": answered_by,
        "judge": run.judge.name if run.judge else None,
        "methods": {benchmark.name: benchmark.method for benchmark in benchmarks},
        MEASURED_ON: measured_on({benchmark.name: benchmark.questions for benchmark in benchmarks}),
        "special_measures": special_measures(one for benchmark in benchmarks for one in benchmark.questions),
        "chance": {benchmark.name: chance_score(benchmark.questions) for benchmark in benchmarks},
        "samples": samples_of(run.performed),
        "evidence": {benchmark.name: benchmark.dataset.evidence for benchmark in benchmarks},
        "data_notes": {benchmark.name: list(getattr(benchmark.dataset, "notes", ())) for benchmark in benchmarks},
    }


def prepare_scoring(spec: ScoreSpec, wiring: Wiring, place: RunPlace) -> PreparedRun:
    """Prepare a new run that judges the recorded answers of an earlier run, with another judge."""
    safe_run_id(spec.run, "RUN")
    with RunReader.open(place.results) as run_reader:
        run = run_reader.run(spec.run)
    if run.suite != "bench":
        raise BadInput("RUN", f"{run.id} is a run of {verb_of(run.suite)}", expected="a run of eval")
    saved = run.spec
    answers = saved.get(ANSWERS, 1)
    if spec.repeats is not None and answers not in (1, spec.repeats):
        raise BadInput(
            "--repeats",
            f"run {spec.run} recorded {answers} answers per question",
            remedy="leave out --repeats; each answer is judged once",
        )
    changes = {
        "judge_model": spec.judge_model,
        "judge_prompt": spec.judge_prompt,
        "canaries": spec.canaries,
        "repeats": spec.repeats or answers,
        "reuse": spec.run,
        "answers_of": spec.run,
        "config_dirs": tuple(dict.fromkeys((*saved.get("config_dirs", ()), *spec.config_dirs))),
    }
    old = saved_spec(BenchSpec, saved, changes)
    return prepare(old, wiring.configured(old.config_dirs, spec.consent), place)


def _usable(names: Sequence[str], wiring: Wiring) -> tuple[str, ...]:
    """Return the default providers that can be used. Print why others are left out, such as a missing package."""
    usable = []
    for name in names:
        try:
            wiring.provider(name)
            usable.append(name)
        except BadInput as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return tuple(usable)
