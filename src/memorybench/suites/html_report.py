"""The report of a run as one HTML file that needs no server. Needs jinja2 (the extra `view`)."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memorybench import __version__
from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure
from memorybench.core.report_sections import Notes, Provenance, Report, Table
from memorybench.reporting.formatting import with_interval
from memorybench.text.spelling import join_choices

from .failures import FAILURE_REASONS, right_text
from .registry import suite_of
from .report_questions import list_questions
from .stored_run import StoredRun
from .suite import SAVED_BASELINE, STARTED_WITH

if TYPE_CHECKING:
    from memorybench.journal.rows import Run

    from .comparison import Pair
    from .run_comparison import RunComparison

Charts = Callable[[], Sequence[tuple[str, str]]]
"""A function that returns (title, SVG) of each chart."""
MakePage = Callable[["StoredRun", "Report"], str | None]
StartPage = Callable[["Run"], AbstractContextManager[MakePage]]
"""A function that takes a run whose trials have ended, and returns a context manager. This yields a function that makes
the page of the run from its report."""
FEWEST_CHARTED = 20
"""Runs with fewer questions than this get no charts: drawing takes longer than such a run, whose intervals are wide."""
MISSING = "jinja2 is not installed; pip install 'memorybench[view]'"
_LONGEST_VALUE = 1000
_PATH = re.compile(
    r"\w+://\S+"
    r"|(?<![\w.~-])(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/]+[^\\/\s\"',;:()\[\]{}=]+)+"
    r"|(?:[\w.@+-]+[\\/])+[\w@+-][\w.@+-]*\.(?:jsonl?|ya?ml|csv|parquet|db|md|txt|py)\b"
)
"""Matches a URL, or a path: an absolute one, or one with a file extension. `ollama/llama3.2` does not match."""
_MOST_SENTENCES = 4
_MOST_FIGURES = 3
_MOST_NAMES = 5


def is_installed() -> bool:
    return find_spec("jinja2") is not None


def check_installed(where: str = "--format html") -> None:
    if not is_installed():
        problem, remedy = MISSING.split("; ")
        raise BadInput(where, problem, remedy=remedy)


def to_html(
    stored: StoredRun,
    report: Report,
    charts: Charts = tuple,
    comparison: RunComparison | None = None,
    why_no_charts: str = "",
) -> str:
    """Return the report as an HTML page. `comparison` compares the providers of the run with each other."""
    from memorybench.reporting.html import report_page

    listed = list_questions(stored)
    questions = listed.questions
    baselines = tuple(dict.fromkeys(pair.second for pair in stored.summary.differences))
    subjects = dict.fromkeys(one.subject for one in stored.summary.results)
    memories = [name for name in subjects if name not in baselines]
    is_complete = stored.summary.status == "complete"
    heading, verdict = verdict_of(report, comparison, memories, baselines, is_complete=is_complete)
    facts = next((one.facts for one in report.sections if isinstance(one, Provenance)), {})
    return report_page(
        report,
        charts(),
        why_no_charts=why_no_charts,
        heading=heading,
        verdict=verdict,
        facts=facts,
        baselines=baselines,
        sections=[one for one in report.sections if not isinstance(one, Provenance)],
        questions=questions,
        total=listed.total,
        with_memories=listed.with_memories,
        tables=listed.tables,
        counts_turns=set(stored.spec.get("evidence", {}).values()) != {"session"},
        several_benchmarks=len({one.benchmark for one in questions}) > 1,
        subjects=list(dict.fromkeys(name for one in questions for name in one.marks)),
        types=list(dict.fromkeys(one.type for one in questions if one.type)),
        marks=sorted(
            {name for one in questions for marks in one.marks.values() for mark in marks for name in mark.names}
        ),
        reasons=FAILURE_REASONS,
        right=right_text(stored.run),
        noun=suite_of(stored.run).case_noun(stored.run),
        provenance=[_without_folders(notes) for notes in provenance_notes(stored)],
        run_id=stored.summary.run_id,
        version=__version__,
    )


def page_without_charts(stored: StoredRun, report: Report) -> str | None:
    """Return the report as an HTML page without charts; None if jinja2 is not installed."""
    few = f"it has fewer than {FEWEST_CHARTED} questions" if not has_charts(stored.run) else "drawing takes a second"
    return to_html(stored, report, why_no_charts=few) if is_installed() else None


def has_charts(run: Run) -> bool:
    """Return whether the page of a run gets charts by default: if the run has enough questions."""
    questions: Mapping[str, int] = run.spec.get("questions", {})
    return sum(questions.values()) >= FEWEST_CHARTED


@contextmanager
def start_without_charts(run: Run) -> Iterator[MakePage]:
    yield page_without_charts


def verdict_of(
    report: Report,
    comparison: RunComparison | None,
    providers: Sequence[str] = (),
    baselines: Collection[str] = (),
    among: str = "",
    *,
    is_complete: bool = True,
) -> tuple[str, Sequence[str]]:
    """Return the main finding of a run as a heading, such as which provider is best, and sentences with the figures.

    If the report has its own verdict, that is returned under the report's title. Else, without a comparison, the
    heading names the one of `providers` with the best figure. A run that is not complete has no finding, only its
    title: its questions are asked in the order of the benchmark, not at random.

    `baselines` are not compared. If there are any, the heading says so, and a sentence names those that are better.
    `among` is the phrase in the heading for who is compared, such as "among the memories"; "" for the default.
    """
    if not is_complete:
        return report.title, ()
    among = among or ("among the memories" if baselines else "")
    if report.verdict or comparison is None or not comparison.comparisons:
        leading = None if report.verdict else _lead(report, providers, baselines, among)
        return leading or (report.title, report.verdict or _main_figures(report))
    benchmarks = dict.fromkeys(pair.benchmark for pair in comparison.comparisons)
    found = [_verdict_on(name, comparison.comparisons, report, baselines, among) for name in benchmarks]
    verdicts = {name: one for name, one in zip(benchmarks, found, strict=True) if one is not None}
    if not verdicts:
        return report.title, ()
    sentences = [
        f"{name}: {line}" if len(verdicts) > 1 else line for name, (_, own) in verdicts.items() for line in own
    ]
    if comparison.tests > 1:
        sentences.append(
            f"p-values are adjusted by Holm's method for {comparison.tests} tests; intervals are not adjusted."
        )
    return "; ".join(lead for lead, _ in verdicts.values()), sentences


def _verdict_on(
    benchmark: str, pairs: Sequence[Pair], report: Report, baselines: Collection[str], among: str
) -> tuple[str, list[str]] | None:
    """Return a sentence that names the best subject on a benchmark by its first measure, and sentences on the others.

    Return None if no subject has a value.
    """
    first = next(pair for pair in pairs if pair.benchmark == benchmark)
    pairs = [pair for pair in pairs if (pair.benchmark, pair.measure) == (benchmark, first.measure)]
    sides = [side for pair in pairs for side in ((pair.first, pair.first_value), (pair.second, pair.second_value))]
    values = {name: value for name, value in sides if value is not None}
    if not values:
        return None
    best = (max if first.higher_is_better else min)(values, key=lambda name: values[name])
    tied = [name for name, value in values.items() if value == values[best]]
    own = [pair for pair in pairs if best in (pair.first, pair.second)]
    rank = f"{'have' if len(tied) > 1 else 'has'} the {'highest' if first.higher_is_better else 'lowest'}"
    others = [pair.second if pair.first == best else pair.first for pair in own]
    sentences = [
        f"{best} against {other}: {pair.sentence()}" if pair.comparison.significant else pair.sentence()
        for other, pair in zip(others, own, strict=True)
    ]
    lead = f"{benchmark}: {join_choices(tied, 'and')} {rank} {first.measure} {among}".rstrip()
    if len(tied) == 1 and own:
        lead += f", {_significance([(n, p.comparison.significant) for n, p in zip(others, own, strict=True)])}"
    tables = [one for one in report.sections if isinstance(one, Table) and one.title == benchmark]
    found = [
        figures for figures in map(_provider_figures, tables) if first.measure in {m.name for m in figures.values()}
    ]
    return lead, [*sentences[:_MOST_SENTENCES], *_better_baselines(found[0] if found else {}, best, baselines)]


def _significance(others: Sequence[tuple[str, bool]]) -> str:
    """Return in words than which other subjects the best one is significantly better.

    `others` are their names, each with whether the best one is significantly better.
    """
    beaten = list(dict.fromkeys(name for name, significant in others if significant))
    if len(beaten) == len(dict(others)):
        return f"significantly better than {'all others' if len(beaten) > 1 else beaten[0]}"
    if not beaten:
        return "not significantly better than any other"
    return f"significantly better only than {join_choices(beaten, 'and')}"


def _provider_figures(table: Table) -> dict[str, Measure]:
    """Return the main figure of each row of a table of providers; empty for another table."""
    if table.columns[0].heading != "provider":
        return {}
    column = next((n for n, one in enumerate(table.columns) if one.shows == "interval"), 0)
    return {str(row[0]): cell for row in table.rows if isinstance(cell := row[column], Measure)}


def _better_baselines(figures: Mapping[str, Measure], best: str, baselines: Collection[str]) -> list[str]:
    """Return a sentence that names the baselines with a better figure than `best`; an empty list if there are none."""
    own = figures.get(best)
    if own is None or own.value is None:
        return []
    sign = 1 if own.higher_is_better else -1
    better = [
        f"{name} ({with_interval(one)})"
        for name in baselines
        if (one := figures.get(name)) is not None and one.value is not None and sign * (one.value - own.value) > 0
    ]
    rank = "higher" if own.higher_is_better else "lower"
    return [f"Baselines with a {rank} {own.name}: {', '.join(better)}."] if better else []


def _lead(
    report: Report, providers: Sequence[str], baselines: Collection[str], among: str
) -> tuple[str, list[str]] | None:
    """Return which provider has the best figure, and sentences with the best figures.

    None if fewer than two providers were measured. Intervals do not test a difference, so the last sentence names the
    command that does.
    """
    for table in report.sections:
        if not isinstance(table, Table):
            continue
        figures = _provider_figures(table)
        found = [(name, figures[name]) for name in providers if name in figures and figures[name].n]
        if len(found) < 2 or any(measure.value is None for _, measure in found):  # a range has no rank
            continue
        sign = -1 if found[0][1].higher_is_better else 1
        ranked = sorted(found, key=lambda one: sign * (one[1].value or 0.0))
        best, measure = ranked[0]
        rank = "highest" if measure.higher_is_better else "lowest"
        sentences = [f"{name}: {one.name} {with_interval(one)}" for name, one in ranked[: _MOST_SENTENCES - 1]]
        sentences += _better_baselines(figures, best, baselines)
        sentences.append("`memorybench compare RUN` tests whether the differences are significant.")
        return f"{table.title}: {best} has the {rank} {measure.name} {among}".rstrip(), sentences
    return None


def _main_figures(report: Report) -> list[str]:
    """Return the first figures of a report as sentences: of the scenarios, or of each provider or extractor."""
    tables = [one for one in report.sections if isinstance(one, Table)]
    for table in tables:
        if table.columns[0].heading == "scenario":
            return [_scenario_sentence(table)]
    sentences = []
    for table in tables:
        column = next((n for n, one in enumerate(table.columns) if one.shows == "interval"), 0)
        found = {
            str(row[0]): cell for row in table.rows if isinstance(cell := row[column], Measure) and _has_figure(cell)
        }
        texts = [(name, with_interval(measure)) for name, measure in found.items()]
        if texts and table.columns[0].heading == "measure":
            sentences.append(f"{table.title}: {', '.join(f'{name} {text}' for name, text in texts[:_MOST_FIGURES])}")
        elif texts and table.columns[0].heading == "provider":
            sentences += [f"{name}: {found[name].name} {text}" for name, text in texts]
    return sentences[:_MOST_SENTENCES]


def _has_figure(measure: Measure) -> bool:
    """Return whether a measure has a value, or the range that undecided results leave."""
    return measure.value is not None or measure.low is not None


def _scenario_sentence(table: Table) -> str:
    states = {str(row[0]): [one for cell in row if isinstance(cell, tuple) for one in cell] for row in table.rows}
    failed = [name for name, own in states.items() if any(one.good is False for one in own)]
    undecided = sum(all(one.good is None for one in own) for own in states.values())
    sentence = f"{len(failed)} of {len(states)} scenario{'s' * (len(states) != 1)} failed"
    sentence += f", {undecided} were not decided" if undecided else ""
    more = f" and {len(failed) - _MOST_NAMES} more" if len(failed) > _MOST_NAMES else ""
    return f"{sentence}: {', '.join(failed[:_MOST_NAMES])}{more}" if failed else sentence


def provenance_notes(stored: StoredRun) -> list[Notes]:
    """Return sections that say how a run was made: its settings and its fingerprints."""
    run = stored.run
    started = run.spec.get(STARTED_WITH, {})
    left_out = {STARTED_WITH, *([] if run.spec.get(SAVED_BASELINE) else [SAVED_BASELINE])}
    settings = {name: value for name, value in run.spec.items() if name not in left_out}
    facts = {
        "run": run.id,
        "folder": str(stored.folder),
        "command": shlex.join(map(str, started.get("command_line", ()))),
        "program": run.program,
        "versions": ", ".join(f"{name} {version}" for name, version in started.get("versions", {}).items()),
        "started": run.created,
        "finished": run.finished or "",
    }
    return [
        Notes(tuple((name, fact) for name, fact in facts.items() if fact), title="How it was made"),
        Notes(tuple((name, _plain(value)) for name, value in settings.items()), title="Settings"),
        Notes(tuple((name, mark.digest) for name, mark in sorted(run.fingerprints.items())), title="Fingerprints"),
    ]


def _without_folders(notes: Notes) -> Notes:
    """Return the notes with only the file names of paths, because the page is sent to other people."""

    def shorten(text: str) -> str:
        return _PATH.sub(lambda found: found[0] if "://" in found[0] else re.split(r"[\\/]", found[0])[-1], text)

    lines = [shorten(line) if isinstance(line, str) else (line[0], shorten(line[1])) for line in notes.lines]
    return replace(notes, lines=tuple(lines))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:_LONGEST_VALUE]
