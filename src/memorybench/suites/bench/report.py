"""The report of a bench run: providers compared on benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memorybench.core.measures import Measure, Metric
from memorybench.core.report_sections import Column, Notes, Provenance, Report, Section, State, Table, text_column
from memorybench.journal.rows import Run
from memorybench.metrics.retrieval import retrieval_metrics
from memorybench.suites import report_parts as sections
from memorybench.suites.comparison import HEADLINES
from memorybench.suites.sampling import sample_text
from memorybench.suites.search_limits import OVER_BUDGET, over_budget_warning, search_facts
from memorybench.suites.stored_run import StoredRun
from memorybench.suites.summary import Result, Summary, headline

from .contamination import contamination, contamination_warning
from .measures import plugin_metrics, run_metrics
from .scores import MISSES
from .spec import FIRST_MEASURES, MEASURED_ON

MEANINGS = {
    "accuracy": "answers that are right, by the benchmark's method: a judge, exact match, similarity or custom code",
    "rubric_score": "mean of the rubric's items, each judged 0, 0.5 or 1, by weight",
    "rubric_met": "answers that meet every item of the rubric in full",
    "required_share": "texts that the answer must contain and does",
    "excluded_in_answer": "answers with a text that they must not contain",
    "exact_match": "answers equal to a gold answer after normalisation",
    "answer_f1": "word overlap with the gold answer",
    "similarity": "cosine similarity of the answer and the gold answer",
    **MISSES,
    "context_tokens": "estimated tokens of the memories shown to the answering model",
    "bytes_per_memory": "mean size of the text of a memory shown, in UTF-8; not what the store keeps on disk",
    "forbidden_hit": "questions with a memory shown that must not be retrieved, or that has an excluded text",
    "drift": "share of the memories shown that must not be retrieved, or that have an excluded text",
    "over_token_budget": "the first memory alone exceeds --token-budget, so the answering model saw none",
}
"""The meaning of each measure except those of retrieval. `corrected_…` measures use a corrected key (--errata)."""
MAIN_MEASURES = HEADLINES
_CORRECTED_COLUMNS = ("corrected_accuracy", "corrected_answer_f1", "corrected_recall@5")
_FIRST_COLUMNS = ("rubric_score", "recall@5", "recall_any@5", "forbidden_hit", "drift", "context_tokens")
_LAST_COLUMNS = ("answer_f1", "corrected_recall@10")
_ONE_HISTORY = "No interval: all questions are about one history"
_NEEDS_JUDGE = (
    "Word overlap is not accuracy, which needs a judge:"
    " `memorybench score {} --judge-model ollama/llama3.2 --dry-run` shows what one would take."
)
_UNDECIDED = (
    "Accuracy is a range, because code could not decide all answers: from all of these being wrong to all being right."
    " `memorybench score {} --judge-model ollama/llama3.2 --dry-run` shows what a judge would take."
)
_MAX_LABELS = 30
"""A label with more values than this gets no table; report.json has all of them."""


def metrics(run: StoredRun) -> tuple[Metric, ...]:
    special = dict.fromkeys(name for one in run.runs for name in one.spec.get("special_measures", ()))
    measured_on: dict[str, dict[str, None]] = {}
    for one in run.runs:
        for name, benchmarks in one.spec.get(MEASURED_ON, {}).items():
            measured_on.setdefault(name, {}).update(dict.fromkeys(benchmarks))
    joined = {"special_measures": tuple(special), MEASURED_ON: measured_on}
    return run_metrics({**run.spec, **joined}, plugin_metrics())


def _chance(runs: Sequence[Run]) -> dict[str, float]:
    """Return, by benchmark, the mean score to expect by chance, over the questions of all shards."""
    shards: dict[str, list[tuple[float, int]]] = {}
    for run in runs:
        for name, value in run.spec.get("chance", {}).items():
            shards.setdefault(name, []).append((value, run.spec["questions"].get(name, 0)))
    counted = {name: [one for one in own if one[1]] for name, own in shards.items()}
    return {name: sum(value * n for value, n in own) / sum(n for _, n in own) for name, own in counted.items() if own}


def facts(runs: Sequence[Run]) -> dict[str, str]:
    """Return the lines of the report's header, texts by title, for a run or for the shards of one run."""
    run, spec = runs[0], runs[0].spec
    samples: dict[str, dict[str, int]] = {}
    for name in spec["questions"]:
        saved = spec.get("samples", {}).get(name, {})
        of_shards = {**saved, "cases": sum(shard.spec["questions"].get(name, 0) for shard in runs)}
        samples[name] = {key: n for key, n in of_shards.items() if len(runs) == 1 or not key.startswith("clusters")}
    methods = ", ".join(dict.fromkeys(spec["methods"].values()))
    not_judged = "not judged: no judge model, or its key is not set"
    scoring = not_judged if methods == "llm-judge" else f"scored by {methods.replace('f1', 'token F1')}"
    judged = f"judged by {spec['judge']}" if spec["judge"] else scoring
    return {
        "Run ID": " + ".join(shard.id for shard in runs),
        "Benchmarks": ", ".join(f"{name} ({sample_text(sample)})" for name, sample in samples.items()),
        "Providers": ", ".join(spec["providers"]),
        "Answering model": f"{spec.get('answerer', spec.get('reader'))}, {judged}"
        if spec["answered"]
        else "none: retrieval only",
        **({"Repeats": f"{spec['repeats']} per question"} if spec.get("repeats", 1) > 1 else {}),
        **{f"Quirks of {name}": "; ".join(notes) for name, notes in spec.get("data_notes", {}).items() if notes},
        **search_facts(spec),
        **({"Errata": ", ".join(spec["errata"])} if spec.get("errata") else {}),
        "Started": sections.started(run.created),
    }


def report(run: StoredRun) -> Report:
    summary = run.summary
    first = run.spec.get(FIRST_MEASURES, {})
    tables: list[Table | Notes] = []
    for benchmark in summary.benchmarks:
        results = summary.overall(benchmark)
        main = headline(results)
        failed = {one.subject: one.failed for one in summary.failures if one.benchmark == benchmark}
        tables.append(_results_table(benchmark, results, main, failed, first.get(benchmark, ())))
        tables += sections.wide_interval_notes(summary, benchmark, main)
        shares = [m for one in results for m in one.measures if m.value is not None and not m.unit]
        if max((share.clusters for share in shares), default=0) == 1:
            histories = run.spec.get("samples", {}).get(benchmark, {}).get("clusters_available", 2)
            advice = "; --limit N samples from all of them." if histories > 1 else "."
            tables.append(Notes((_ONE_HISTORY + advice,), warning=True))
        if main == "answer_f1" and not run.spec["judge"]:
            tables.append(Notes((_NEEDS_JUDGE.format(run.run.id),), warning=True))
        accuracy = [one for result in results if (one := result.measure("accuracy")) is not None]
        if any(one.value is None and one.low is not None for one in accuracy):
            tables.append(Notes((_UNDECIDED.format(run.run.id),), warning=True))
        tables += _label_tables(summary, benchmark, main)
        tables += sections.difference_tables(summary, benchmark)
    warnings = sections.warnings(summary)
    for result in summary.results:
        over = None if result.group else result.measure(OVER_BUDGET)
        if over is not None and over.value:
            warnings += (over_budget_warning(result.subject, over.value * over.n),)
    known = tuple(contamination(summary, _chance(run.runs)))
    warnings += tuple(map(contamination_warning, known))
    noise, noise_document = _noise_parts(run)
    judge_warnings, corrections, judge_document = _judge_parts(run)
    return Report(
        title=sections.title(f"memorybench eval: {summary.run_id}", summary),
        sections=(
            *judge_warnings,
            *sections.self_judged_notes(summary),
            Provenance(facts(run.runs)),
            *tables,
            *corrections,
            *noise,
            *sections.step_tables(summary, detail=False),
            Notes((sections.accounting(summary),)),
        ),
        warnings=warnings,
        document={
            **sections.document(summary),
            **noise_document,
            **judge_document,
            **({"contamination": list(known)} if known else {}),
        },
    )


def _judge_parts(run: StoredRun) -> tuple[Sequence[Section], Sequence[Section], Mapping[str, Any]]:
    """Return the warnings about the judge, tables of accuracy corrected for its errors, and its part of the JSON."""
    if not run.spec.get("judge"):
        return (), (), {}
    from memorybench.suites.judge_check import check_document, check_warnings, correction_tables, judge_checks

    checks = judge_checks(run, {"accuracy": False})
    return list(check_warnings(checks)), list(correction_tables(run, checks)), check_document(checks)


def _noise_parts(run: StoredRun) -> tuple[Sequence[Section], Mapping[str, Any]]:
    """Return the sections and the JSON about noise, the differences between repeats; empty without repeats."""
    if run.spec.get("repeats", 1) == 1:
        return (), {}
    from memorybench.suites.noise import headline_measures, measure_noise, noise_document, noise_sections

    noise = measure_noise(run, headline_measures(run))
    return noise_sections(noise), noise_document(noise)


def _results_table(
    benchmark: str, results: Sequence[Result], main: str, failed: Mapping[str, int], first: Sequence[str]
) -> Table:
    """Return the table of measures. A narrow terminal shows only the first ones, which begin with those in `first`."""
    retrieval = retrieval_metrics(plugin_metrics())
    narrow = (name for metric in retrieval for name in metric.narrow_columns)
    wide = (name for metric in retrieval for name in metric.columns)
    others = dict.fromkeys((*_CORRECTED_COLUMNS, *first, *_FIRST_COLUMNS, *narrow, *wide, *_LAST_COLUMNS))
    names = [name for name in others if name != main and any((m := r.measure(name)) and m.n for r in results)]
    columns = [Column(name, priority=place) for place, name in enumerate(names, 1)]
    rows = [
        (
            result.subject,
            result.measure(main),
            *(result.measure(name) for name in names),
            result.measure(main),
            *([(State(str(failed[result.subject]), good=False),) if result.subject in failed else 0] if failed else []),
        )
        for result in results
    ]
    return Table(
        benchmark,
        (
            text_column("provider"),
            Column(f"{main} [95%]", "interval"),
            *columns,
            Column("n", "n"),
            *([Column("failed")] if failed else []),
        ),
        tuple(rows),
    )


def _label_tables(summary: Summary, benchmark: str, main: str) -> list[Table]:
    """Return a table of the headline measure for each label. A terminal shows only the first table.

    The first one is that by question type, if questions have types. Labels with one value, or too many, get no table.
    """
    found = {
        (label, result.subject): result.measure(main)
        for result in summary.grouped(benchmark)
        for label in result.group.items()
    }
    names = dict.fromkeys(name for (name, _), _ in found)
    subjects = [result.subject for result in summary.overall(benchmark)]
    tables: list[Table] = []
    for name in sorted(names, key=lambda name: name != "question_type"):
        labels = dict.fromkeys(label for label, _ in found if label[0] == name)
        used = [label for label in labels if any((m := found.get((label, s))) and m.n for s in subjects)]
        if 2 <= len(used) <= _MAX_LABELS:
            tables.append(_label_table(f"{main} by {name.replace('_', ' ')}", found, used, subjects, bool(tables)))
    return tables


def _label_table(
    title: str,
    found: Mapping[tuple[tuple[str, str], str], Measure | None],
    labels: Sequence[tuple[str, str]],
    subjects: Sequence[str],
    detail: bool,
) -> Table:
    """Return a table with one row per value of a label. Subjects without any value are left out."""
    subjects = [s for s in subjects if any((m := found.get((label, s))) and m.value is not None for label in labels)]
    rows = []
    for label in labels:
        measures = [found.get((label, subject)) for subject in subjects]
        rows.append((label[1], *measures, _range_of([measure.n for measure in measures if measure and measure.n])))
    columns = (Column(subject, "interval", priority=place) for place, subject in enumerate(subjects, 1))
    return Table(title, (text_column("", wrap=True), *columns, Column("n")), tuple(rows), level=3, detail=detail)


def _range_of(numbers: Sequence[int]) -> int | str:
    """Return the number if all are equal, else a text such as `3 to 12`: a subject with failed trials has fewer."""
    lowest, highest = min(numbers, default=0), max(numbers, default=0)
    return highest if lowest == highest else f"{lowest} to {highest}"
