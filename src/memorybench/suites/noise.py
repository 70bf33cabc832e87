"""Noise: how much answers and verdicts vary between repeats, and how many questions a given difference needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

from memorybench.core.measures import Metric
from memorybench.core.records import Record
from memorybench.core.report_sections import Column, Notes, Section, Table, columns_and_rows, text_column
from memorybench.metrics.comparison import needed_items
from memorybench.metrics.intervals import standard_error
from memorybench.metrics.rates import BoundedRate
from memorybench.metrics.variance import VarianceComponents, variance_components
from memorybench.reporting import formatting

from .stored_run import StoredRun
from .summary import headline

DETECTED = (2.0, 5.0, 10.0)
"""The differences, in percentage points, for which reports say how many questions they need; --detect replaces them."""
_EXPLANATION = (
    "Standard deviations in points. `answers changed` and `scores changed` are shares of questions whose repeats are"
    " not all alike.",
    "Needed questions: to show that difference from another subject of the run, paired, with 80 % power at the 5 %"
    " level; for a run with one subject, from an unrelated one that varies as much.",
)
_TRUNCATED = "The estimated variance between questions is negative, and 0 is reported: {}."


class NeededQuestions(Record):
    difference: float
    """The difference to detect, as a share: 0.05 is five points."""
    without_repeats: int | None
    with_repeats: int | None
    """The number of questions needed if each is repeated as often as in this run.

    `without_repeats` is the number needed if each question is asked once. Both are None if the variance is 0 or cannot
    be estimated, for example because all questions are about one history.
    """


class Noise(Record):
    """How much one measure of one subject varies between questions and between repeats."""

    benchmark: str
    subject: str
    measure: str
    repeats: int
    n: int
    """The number of questions with two or more values."""
    between_questions: float
    """The variance of the questions' true means."""
    between_repeats: float
    """The variance of the repeats around the mean of their question."""
    truncated: bool
    changed_answers: float
    changed_scores: float
    needed: tuple[NeededQuestions, ...]

    def sentence(self, subject: str) -> str:
        """Return in words how much a second run would differ: half the width of the 95 % interval of the difference."""
        changed = round(self.changed_scores * self.n)
        points = 100 * 1.96 * sqrt(2 * self.between_repeats / (self.n * self.repeats))
        return (
            f"{subject}: {changed} of {self.n} questions changed their {self.measure} between repeats; another run"
            f" of the same would differ by about ±{points:.1f} points (95 %)."
        )


class _Values:
    """The values of one measure of one subject."""

    def __init__(self) -> None:
        self.repeats: dict[str, list[float]] = {}
        self.answers: dict[str, set[str]] = {}
        self.clusters: dict[str, str] = {}

    @property
    def means(self) -> dict[str, float]:
        return {case: sum(values) / len(values) for case, values in self.repeats.items()}

    @property
    def components(self) -> VarianceComponents | None:
        return variance_components(list(self.repeats.values()))


def headline_measures(run: StoredRun) -> dict[str, tuple[str, ...]]:
    """Return, by benchmark, the name of its headline measure in a tuple."""
    return {benchmark: (headline(run.summary.overall(benchmark)),) for benchmark in run.summary.benchmarks}


def measure_noise(run: StoredRun, measures: Mapping[str, Sequence[str]]) -> tuple[Noise, ...]:
    """Return the noise of the given measures of each benchmark; nothing for a run without repeats."""
    repeats = run.spec.get("repeats", 1)
    if repeats == 1:
        return ()
    found: dict[tuple[str, str], dict[str, _Values]] = {}
    metrics: dict[str, Metric] = {metric.name: metric for metric in run.metrics}
    for outcome in run.outcomes():
        trial = outcome.trial
        for name in measures.get(trial.benchmark, ()):
            row = metrics[name].read(outcome)
            is_open = isinstance(metrics[name], BoundedRate) and row is not None and row[0] != row[-1]
            if row and not is_open:  # an empty row has no value
                own = found.setdefault((trial.benchmark, name), {}).setdefault(trial.subject.name, _Values())
                own.repeats.setdefault(trial.case_id, []).append(row[0])
                own.answers.setdefault(trial.case_id, set()).add(outcome.shown.got)
                own.clusters[trial.case_id] = trial.cluster
    differences = [points / 100 for points in run.spec.get("detect") or DETECTED]
    rows = []
    for (benchmark, name), by_subject in found.items():
        for subject, values in by_subject.items():
            components = values.components
            if components is None:
                continue
            repeated = {case for case, own in values.repeats.items() if len(own) > 1}
            others = [other for other_name, other in by_subject.items() if other_name != subject]
            rows.append(
                Noise(
                    benchmark=benchmark,
                    subject=subject,
                    measure=name,
                    repeats=repeats,
                    n=len(repeated),
                    between_questions=components.between_items,
                    between_repeats=components.between_repeats,
                    truncated=components.truncated,
                    changed_answers=sum(len(values.answers[case]) > 1 for case in repeated) / len(repeated),
                    changed_scores=sum(len(set(values.repeats[case])) > 1 for case in repeated) / len(repeated),
                    needed=_needed(values, others, repeats, differences),
                )
            )
    return tuple(rows)


def _needed(
    values: _Values, others: Sequence[_Values], repeats: int, differences: Sequence[float]
) -> tuple[NeededQuestions, ...]:
    """Return how many questions are needed to detect each difference from another subject.

    The variance is that of the differences to each of the others, averaged. Without others, it is estimated as that of
    the difference between two subjects like this one.
    """
    pairs = [pair for other in others if (pair := _pair_variance(values, other, repeats)) is not None]
    if not others:
        alone = _variance(values.means, values.clusters, values.components, repeats)
        pairs = [] if alone is None else [(2 * alone[0], 2 * alone[1])]
    questions = sum(part for part, _ in pairs) / len(pairs) if pairs else None
    noise = sum(part for _, part in pairs) / len(pairs) if pairs else 0.0
    return tuple(
        NeededQuestions(
            difference=difference,
            without_repeats=None if questions is None else needed_items(difference, questions + noise),
            with_repeats=None if questions is None else needed_items(difference, questions + noise / repeats),
        )
        for difference in differences
    )


def _pair_variance(first: _Values, second: _Values, repeats: int) -> tuple[float, float] | None:
    mine, theirs = first.means, second.means
    differences = {case: mine[case] - theirs[case] for case in mine.keys() & theirs.keys()}
    own, other = first.components, second.components
    if own is None or other is None:
        return None
    noise = VarianceComponents(0.0, own.between_repeats + other.between_repeats)
    return _variance(differences, first.clusters, noise, repeats)


def _variance(
    means: Mapping[str, float], clusters: Mapping[str, str], components: VarianceComponents | None, repeats: int
) -> tuple[float, float] | None:
    """Return two variances: between questions, and of one repeat.

    The first has the noise of repeats removed and is multiplied by the design effect of clusters. None if it is
    unknown.
    """
    cases = sorted(means)
    error = standard_error([means[case] for case in cases], [clusters[case] for case in cases])
    if error is None or components is None:
        return None
    noise = components.between_repeats
    return max(0.0, len(cases) * error**2 - noise / repeats), noise


def noise_document(rows: Sequence[Noise]) -> dict[str, Any]:
    """Return the part of report.json about noise; empty for a run without repeats."""
    return {"noise": [row.model_dump() for row in rows]} if rows else {}


def noise_sections(rows: Sequence[Noise]) -> list[Section]:
    if not rows:
        return []
    several = len({row.benchmark for row in rows}) > 1

    def subject(row: Noise) -> str:
        return f"{row.benchmark} × {row.subject}" if several else row.subject

    columns, spreads = columns_and_rows(
        rows,
        (text_column("subject"), subject),
        (text_column("measure"), lambda row: row.measure),
        (Column("SD between questions"), lambda row: f"{100 * sqrt(row.between_questions):.1f}"),
        (Column("SD between repeats"), lambda row: f"{100 * sqrt(row.between_repeats):.1f}"),
        (Column("answers changed", priority=2), lambda row: formatting.share(row.changed_answers)),
        (Column("scores changed", priority=1), lambda row: formatting.share(row.changed_scores)),
        (Column("n"), lambda row: row.n),
    )
    differences = [f"{100 * one.difference:g} points" for one in rows[0].needed]
    needed_columns = (text_column("subject"), text_column("measure"), Column("repeats"), *map(Column, differences))
    needed = tuple(
        (subject(row), row.measure, times, *(getattr(one, field) for one in row.needed))
        for row in rows
        for times, field in ((1, "without_repeats"), (row.repeats, "with_repeats"))
        if times == 1 or any(one.without_repeats != one.with_repeats for one in row.needed)
    )
    truncated = ", ".join(f"{row.measure} of {subject(row)}" for row in rows if row.truncated)
    lines = (*_EXPLANATION, *([_TRUNCATED.format(truncated)] if truncated else []))
    return [
        Table(f"Noise over {rows[0].repeats} repeats", columns, spreads),
        Notes(tuple(row.sentence(subject(row)) for row in rows)),
        Table("Questions needed to detect a difference", needed_columns, needed, level=3),
        Notes(lines),
    ]
