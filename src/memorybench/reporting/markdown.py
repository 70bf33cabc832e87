"""report.md: the figures of a run, to be read and passed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memorybench.text.sanitize import sanitize

from . import figures
from .lift import written
from .summary import Result, Summary
from .terminal import accounting, caveats, headline

_COLUMNS = (
    "corrected_accuracy",
    "corrected_answer_f1",
    "corrected_recall@5",
    "corrected_recall@10",
    "recall@1",
    "recall@3",
    "recall@5",
    "recall@10",
    "recall_any@5",
    "recall_all@5",
    "precision@5",
    "ndcg@10",
)


def as_markdown(summary: Summary, facts: Mapping[str, str]) -> str:
    parts = [titled(f"memorybench {summary.suite}: {summary.run_id}", summary)]
    parts += [f"> {line}" for line in caveats(summary)]
    parts.append(listed(facts))
    for benchmark in summary.benchmarks:
        parts += [f"## {cell(benchmark)}", _results(summary.overall(benchmark)), *_groups(summary, benchmark)]
        parts += _lifts(summary, benchmark)
    if summary.stages:
        parts += ["## Time and money", stages(summary)]
    parts.append(accounting(summary))
    return "\n\n".join(parts) + "\n"


def titled(title: str, summary: Summary) -> str:
    """The first line: it says where a model has judged its own answers."""
    own = any(kind == "self-judged" for kind, _ in summary.notes)
    return f"# {cell(title)}{' (self-judged)' if own else ''}"


def listed(facts: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {cell(fact)}" for name, fact in facts.items())


def _results(results: Sequence[Result]) -> str:
    main = headline(results)
    names = [name for name in (*_COLUMNS, "mrr", "context_tokens") if name != main]
    shown = [name for name in names if any((m := result.measure(name)) and m.n for result in results)]
    rows = [["provider", f"{main} [95 %]", *shown, "n of planned"]]
    for result in results:
        found = result.measure(main)
        n = f"{found.n} of {found.planned}" if found else figures.ABSENT
        values = [figures.value(result.measure(name)) for name in shown]
        rows.append([result.subject, figures.with_interval(found), *values, n])
    return table(rows)


def _groups(summary: Summary, benchmark: str) -> list[str]:
    results, grouped = summary.overall(benchmark), summary.grouped(benchmark)
    main = headline(results)
    labels = dict.fromkeys(next(iter(result.group.items())) for result in grouped)
    if len(labels) < 2:
        return []
    rows = [["", *(result.subject for result in results), "n"]]
    for label in labels:
        found = {result.subject: result.measure(main) for result in grouped if label in result.group.items()}
        n = max((measure.n for measure in found.values() if measure), default=0)
        if n:
            rows.append([label[1], *(figures.with_interval(found.get(result.subject)) for result in results), str(n)])
    return [f"### {main} by {next(iter(labels))[0].replace('_', ' ')}", table(rows)]


def _lifts(summary: Summary, benchmark: str) -> list[str]:
    pairs = [pair for pair in summary.lifts if pair.benchmark == benchmark]
    if not pairs:
        return []
    baselines = list(dict.fromkeys(pair.second for pair in pairs))
    rows = [["", *(f"over {baseline}" for baseline in baselines)]]
    for provider in dict.fromkeys(pair.first for pair in pairs):
        rows.append([provider, *(written(pairs, provider, baseline) for baseline in baselines)])
    return [f"### Lift in {pairs[0].measure}, points (* can be told apart)", table(rows)]


def stages(summary: Summary) -> str:
    rows = [["step", "subject", "steps", "p50", "p95", "calls", "tokens in", "tokens out", "cost"]]
    for stage in summary.stages:
        times = [figures.percentile(stage.seconds, percent) for percent in (50, 95)]
        rows.append(
            [
                stage.name,
                stage.subject,
                str(stage.steps),
                *(figures.ABSENT if time is None else figures.seconds(time) for time in times),
                str(stage.spent.calls),
                str(stage.spent.input_tokens),
                str(stage.spent.output_tokens),
                figures.money(stage.spent),
            ]
        )
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = ([cell(text) for text in row] for row in rows)
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    return " ".join(sanitize(text).split()).replace("|", "\\|").replace("<", "&lt;")
