"""What a person sees at the end of a run: figures first, then what they rest on, then what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memorybench.core.trials import STATUSES
from memorybench.text.sanitize import sanitize

from . import figures
from .lift import written
from .summary import Result, Summary, subjects_of

if TYPE_CHECKING:
    from rich.console import Console

    from memorybench.journal.rows import Run

_HEADLINES = ("accuracy", "answer_f1", "recall@5")
_WIDE = 130
_FIXED_WIDTH, _COLUMN_WIDTH = 49, 10
"""What provider, headline, context and n take beside the longest name, and what each further column takes."""
_NARROW_COLUMNS = (
    "corrected_accuracy",
    "corrected_answer_f1",
    "corrected_recall@5",
    "recall@5",
    "recall_any@5",
    "ndcg@10",
)
_WIDE_COLUMNS = (
    "corrected_accuracy",
    "corrected_answer_f1",
    "corrected_recall@5",
    "answer_f1",
    "recall@1",
    "recall@3",
    "recall@5",
    "recall@10",
    "recall_any@5",
    "recall_all@5",
    "precision@5",
    "ndcg@10",
    "mrr",
)
_LIMIT_UNSCORED = 0.02
_TIMED = {name: place for place, name in enumerate(("add", "settle", "search", "answer", "judge", "canary"))}


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


def headline(results: Sequence[Result]) -> str:
    """The first of the headline measures that any of these has a value for."""
    measured = {measure.name for result in results for measure in result.measures if measure.value is not None}
    return next((name for name in _HEADLINES if name in measured), _HEADLINES[-1])


def show_header(out: Console, title: str, facts: Mapping[str, str]) -> None:
    from rich import box
    from rich.align import Align
    from rich.table import Table

    table = Table(box=box.ROUNDED, show_header=True, header_style="bold", width=min(out.width, 80))
    table.add_column(Align.center(title), overflow="fold")
    for name, fact in facts.items():
        table.add_row(f"{name}: {sanitize(fact)}")
    out.print(table)


def show_hints(out: Console, hints: Mapping[str, str]) -> None:
    """Commands to try, each with what it is good for; below each other where a line would break."""
    for command, purpose in hints.items():
        line = f"  {command}    {purpose}"
        out.print(line if len(line) <= out.width else f"  {command}\n      {purpose}", soft_wrap=True)


def show_results(out: Console, summary: Summary) -> None:
    for kind, text in summary.notes:
        if kind == "self-judged":
            out.print(f"self-judged: {sanitize(text)}", style="bold yellow")
    for benchmark in summary.benchmarks:
        out.print()
        _results_table(out, summary, benchmark)
        _groups_table(out, summary, benchmark)
        _lift_table(out, summary, benchmark)
    _latency_table(out, summary)
    out.print()
    out.print(accounting(summary))
    for line in caveats(summary):
        out.print(line, style="yellow")


def _results_table(out: Console, summary: Summary, benchmark: str) -> None:
    from rich import box
    from rich.table import Table

    results = summary.overall(benchmark)
    main = headline(results)
    names = _WIDE_COLUMNS if out.width >= _WIDE else _NARROW_COLUMNS
    room = out.width - _FIXED_WIDTH - max(len(sanitize(result.subject)) for result in results)
    fitting = max(0, room // _COLUMN_WIDTH)
    extra = [name for name in names if name != main and _any(results, name)][:fitting]
    table = Table(box=box.ROUNDED, title=f"RESULTS: {sanitize(benchmark)}", title_justify="left", title_style="bold")
    table.add_column("provider", no_wrap=True)
    table.add_column(f"{main} [95%]", justify="right", no_wrap=True, style="bold")
    for name in extra:
        table.add_column(_short(name), justify="right", no_wrap=True)
    table.add_column("context", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for result in results:
        found = result.measure(main)
        table.add_row(
            sanitize(result.subject),
            figures.with_interval(found),
            *(figures.value(result.measure(name)) for name in extra),
            figures.value(result.measure("context_tokens")),
            f"{found.n}/{found.planned}" if found else figures.ABSENT,
        )
    out.print(table)


def _groups_table(out: Console, summary: Summary, benchmark: str) -> None:
    """The headline measure by question type; types as rows, so that any number of them fits."""
    from rich import box
    from rich.table import Table

    grouped = summary.grouped(benchmark)
    subjects = [result.subject for result in summary.overall(benchmark)]
    main = headline(summary.overall(benchmark))
    found = {(next(iter(r.group.items())), r.subject): r.measure(main) for r in grouped}
    groups = list(dict.fromkeys(group for group, _ in found))
    groups = [group for group in groups if group[0] == "question_type"] or groups
    shown = [group for group in groups if any((m := found.get((group, s))) and m.n for s in subjects)]
    if len(shown) < 2:
        return
    subjects = [s for s in subjects if any((m := found.get((group, s))) and m.value is not None for group in shown)]
    title = f"{main} by {shown[0][0].replace('_', ' ')}"
    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
    table.add_column("", overflow="fold")
    for subject in subjects:
        table.add_column(sanitize(subject), justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    for group in shown:
        measures = [found.get((group, subject)) for subject in subjects]
        n = max((measure.n for measure in measures if measure), default=0)
        table.add_row(sanitize(group[1]), *(figures.value(measure) for measure in measures), str(n))
    out.print(table)


def _lift_table(out: Console, summary: Summary, benchmark: str) -> None:
    from rich import box
    from rich.table import Table

    pairs = [pair for pair in summary.lifts if pair.benchmark == benchmark]
    if not pairs:
        return
    title = f"lift in {pairs[0].measure}, points [95%] (* can be told apart)"
    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
    baselines = list(dict.fromkeys(pair.second for pair in pairs))
    table.add_column("")
    for baseline in baselines:
        table.add_column(f"over {baseline}", justify="right")
    for provider in dict.fromkeys(pair.first for pair in pairs):
        table.add_row(sanitize(provider), *(written(pairs, provider, baseline) for baseline in baselines))
    out.print(table)


def show_runs(out: Console, runs: Sequence[tuple[Run, Mapping[str, int]]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.ROUNDED, title="RUNS", title_justify="left", title_style="bold")
    for heading in ("run", "suite", "benchmarks × providers", "status", "scored", "started (UTC)"):
        table.add_column(heading, overflow="fold")
    for run, counts in runs:
        what = f"{', '.join(run.spec.get('benchmarks', ()))} × {', '.join(subjects_of(run))}"
        started = run.created.replace("T", " ")[:16]
        table.add_row(run.id, run.suite, sanitize(what), run.status, f"{counts['scored']}/{run.planned}", started)
    out.print(table)


def show_comparison(
    out: Console, benchmark: str, results: Sequence[Result], measure: str, sentences: Sequence[str]
) -> None:
    from rich import box
    from rich.table import Table

    title = f"COMPARISON: {sanitize(benchmark)}"
    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
    table.add_column("provider")
    table.add_column(f"{measure} [95%]", justify="right")
    table.add_column("n", justify="right")
    for result in results:
        found = result.measure(measure)
        n = f"{found.n}/{found.planned}" if found else figures.ABSENT
        table.add_row(sanitize(result.subject), figures.with_interval(found), n)
    out.print(table)
    for sentence in sentences:
        out.print(sanitize(sentence))


def _latency_table(out: Console, summary: Summary) -> None:
    from rich import box
    from rich.table import Table

    stages = [stage for stage in summary.stages if stage.seconds and stage.name in _TIMED]
    if not stages:
        return
    title = "latency (settle: time until searchable)"
    table = Table(box=box.ROUNDED, title=title, title_justify="left", title_style="bold")
    for heading in ("step", "of"):
        table.add_column(heading, no_wrap=True)
    for heading in ("p50", "p95", "n", "tokens", "cost"):
        table.add_column(heading, justify="right", no_wrap=True)
    for stage in sorted(stages, key=lambda stage: (_TIMED[stage.name], stage.subject)):
        tokens = stage.spent.input_tokens + stage.spent.output_tokens
        table.add_row(
            stage.name,
            sanitize(stage.subject),
            *(_time(figures.percentile(stage.seconds, percent)) for percent in (50, 95)),
            f"{len(stage.seconds):,}",
            f"{tokens:,}" if tokens else figures.ABSENT,
            figures.money(stage.spent),
        )
    out.print(table)


def _time(seconds: float | None) -> str:
    return figures.ABSENT if seconds is None else figures.seconds(seconds)


def accounting(summary: Summary) -> str:
    """planned = scored + unscored + failed + skipped + blocked, always printed."""
    counts = summary.counts
    parts = " + ".join(f"{counts[status]} {status}" for status in STATUSES)
    pending = f" + {summary.pending} pending" if summary.pending else ""
    return f"planned {counts['planned']} = {parts}{pending}; spent {figures.money(summary.spent)}"


def caveats(summary: Summary) -> list[str]:
    """What a reader must know before believing the figures."""
    lines = [f"{kind}: {sanitize(text)}" for kind, text in summary.notes if kind == "self-judged"]
    counts = summary.counts
    if summary.status != "complete":
        lines.append(f"The run is {summary.status}: figures are of the trials settled so far.")
    if counts["planned"] and counts["unscored"] / counts["planned"] > _LIMIT_UNSCORED:
        share = figures.share(counts["unscored"] / counts["planned"])
        lines.append(f"Inconclusive: {share} of the trials could not be scored.")
    if counts["failed"]:
        lines.append(f"{counts['failed']} trials failed: memorybench results {summary.run_id} --failures")
    if summary.possibly_charged_twice:
        lines.append(f"{summary.possibly_charged_twice} paid calls may have been charged twice.")
    others = [(kind, text) for kind, text in summary.notes if kind != "self-judged"]
    lines += [sanitize(text if text.startswith(kind) else f"{kind}: {text}") for kind, text in others]
    if summary.suite == "bench" and any(_unsure(result) for result in summary.results if not result.group):
        lines.append("No interval: all questions are about one history. --seed N with --limit draws from all of them.")
    return lines


def _unsure(result: Result) -> bool:
    """A share without an interval: nothing shows how much another history would differ."""
    return any(m.value is not None and m.low is None and not m.unit and m.n > 1 for m in result.measures)


def _any(results: Sequence[Result], name: str) -> bool:
    return any((measure := result.measure(name)) is not None and measure.n for result in results)


def _short(name: str) -> str:
    if name.startswith("corrected_"):
        return f"corr. {_short(name.removeprefix('corrected_'))}"
    return {"recall_any@5": "any@5", "recall_all@5": "all@5", "precision@5": "prec@5", "ndcg@10": "nDCG@10"}.get(
        name, name
    )
