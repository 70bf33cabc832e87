"""Thresholds: the values that the measures of a run must reach."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure, Metric, exceeds
from memorybench.core.records import Record
from memorybench.core.report_sections import Notes, Report
from memorybench.metrics.names import ALIASES, ANSWER_METRIC_NAMES
from memorybench.reporting.formatting import beside, exact
from memorybench.text.spelling import unknown_name

from .summary import Result, Summary

if TYPE_CHECKING:
    from .gate import Gate

Held = Literal["value", "lower"]
"""Which number a threshold is compared with: the estimate (`value`), or the worse end of its interval (`lower`)."""


class Threshold(Record):
    name: str
    least: float
    if_any: bool = False
    """If True, the threshold is skipped if there was nothing to measure. If False, it is then missed."""
    lower_bound: str = ""
    """The name of the measure with the value that `name` would have if every undecided case counted against it.

    If that measure has a value, a threshold on the value is compared with it: an undecided case is not a success. ""
    if there is no such measure.
    """


class Check(Record):
    """The result of one requirement of a finished run: a threshold, or a comparison with a baseline run."""

    where: str
    """The benchmark and the subject, such as `starter × bm25`."""
    name: str
    """The requirement, such as `threshold recall@5`."""
    text: str
    """The result as a sentence, for printing."""
    missed: bool
    value: float | None = None
    """The value of the measure; None if it has no value."""
    on: Held = "value"
    """Which number is compared with the limit: the value (`value`), or the worse end of its interval (`lower`)."""
    limit: float | None = None
    """What the value is compared with: the threshold, or the value of the baseline run."""


def parse_thresholds(texts: Sequence[str]) -> list[Threshold]:
    thresholds = []
    for text in texts:
        name, _, value = text.partition("=")
        try:
            thresholds.append(Threshold(name=name.strip(), least=float(value)))
        except ValueError:
            percent = re.fullmatch(r"\s*(\d+\.?\d*)\s*%\s*", value)
            close = f'write the share: "{name.strip()}={float(percent[1]) / 100:g}"' if percent else ""
            raise BadInput(
                "--threshold",
                f"invalid threshold {text!r}",
                expected="MEASURE=NUMBER, such as recall@5=0.6",
                remedy=close,
            ) from None
    return thresholds


def thresholds_to_save(given: Sequence[Threshold], on: Held) -> dict[str, Any]:
    """Return the given thresholds as fields of the saved spec; empty if none are given."""
    return {"thresholds": {one.name: one.least for one in given}, "threshold_on": on} if given else {}


def saved_thresholds(spec: Mapping[str, Any]) -> tuple[list[Threshold], Held]:
    """Return the thresholds that a run was started with; none if an earlier version made the run."""
    saved = spec.get("thresholds", {}).items()
    return [Threshold(name=name, least=least) for name, least in saved], spec.get("threshold_on", "value")


def check_thresholds(
    given: Sequence[Threshold],
    subjects: Sequence[str],
    metrics: Sequence[Metric],
    targets: Mapping[str, float],
    lower_bounds: Mapping[str, str],
    *,
    are_saved: bool = False,
) -> list[Threshold]:
    """Return the given thresholds and, for measures without one, the default targets. Called before anything is spent.

    Raise BadInput if a threshold names no measure of this run, is not a possible value, or if the run has only
    baselines. Older names of a measure are accepted. `are_saved`: a run was started with these thresholds, so their
    values are accepted, even if an earlier version allowed more.
    """
    if given and not subjects:
        raise BadInput(
            "--threshold",
            "thresholds do not apply to baselines, and the run has only baselines",
            remedy="add a provider",
        )
    known = [metric.name for metric in metrics]
    named = [threshold.model_copy(update={"name": _measure_name(threshold.name, known)}) for threshold in given]
    if not are_saved:
        _check_values(named, metrics)
    usual = [
        Threshold(name=name, least=targets[name], if_any=True)
        for name in known  # a saved spec has another order
        if name in targets and name not in {threshold.name for threshold in named}
    ]
    return [one.model_copy(update={"lower_bound": lower_bounds.get(one.name, "")}) for one in (*usual, *named)]


def _check_values(thresholds: Sequence[Threshold], metrics: Sequence[Metric]) -> None:
    names = [threshold.name for threshold in thresholds]
    for name in names:
        if names.count(name) > 1:
            raise BadInput("--threshold", f"{name} has two thresholds", remedy="leave out one of them")
    shares = {metric.name for metric in metrics if getattr(metric, "is_share", False)}
    for threshold in thresholds:
        if threshold.name in shares and not 0 <= threshold.least <= 1:
            percent = threshold.least / 100
            close = f'did you mean "{threshold.name}={percent:g}"?' if 2 <= threshold.least <= 100 else ""
            raise BadInput(
                "--threshold",
                f"invalid value {threshold.least:g} of {threshold.name}",
                expected="a share between 0 and 1",
                remedy=close,
            )


def _measure_name(name: str, known: Sequence[str]) -> str:
    snake = re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", name)  # as memaudit's report.json spells it
    for spelling in (name, ALIASES.get(name, name), snake):
        if spelling in known:
            return spelling
    if ALIASES.get(name, name) in ANSWER_METRIC_NAMES and "recall@5" in known and "accuracy" not in known:
        problem = f"{name} is a measure of answers, but the run asks for no answers"
        raise BadInput("--threshold", problem, remedy="add --answering-model MODEL, or name a measure of retrieval")
    raise unknown_name("--threshold", f'unknown measure "{name}"', name, known)


def threshold_checks(
    summary: Summary, thresholds: Sequence[Threshold], on: Held, subjects: Sequence[str]
) -> list[Check]:
    """Check every threshold for every benchmark and subject, and return the results.

    A benchmark without a trial for the measure, such as writes for `used` of searches, is left out, unless no benchmark
    has one.
    """
    checks = []
    for threshold in thresholds:
        measures = [
            (result, measure)
            for result in summary.results
            if not result.group and result.subject in subjects and (measure := result.measure(threshold.name))
        ]
        is_planned = any(measure.planned for _, measure in measures)
        for result, measure in measures:
            if is_planned and not measure.planned:
                continue
            is_whole = _is_whole(result) and (measure.value is not None or measure.low is None)
            if threshold.if_any and measure.value is None and (not measure.planned or is_whole):
                continue  # there was nothing to measure
            bound = result.measure(threshold.lower_bound) if threshold.lower_bound else None
            remedy = "" if summary.spec.get("judge") else "; --judge-model decides the undecided cases"
            text, missed = _compare(threshold, measure, bound, on, remedy, is_whole=is_whole)
            where = f"{result.benchmark} × {result.subject}"
            part = f"shard {summary.spec['shard']}: " if summary.spec.get("shard") else ""
            line = f"threshold {'missed' if missed else 'met'}: {part}{where}: {text}"
            checks.append(
                Check(
                    where=where,
                    name=f"threshold {threshold.name}",
                    text=line,
                    missed=missed,
                    value=measure.value,
                    on=on,
                    limit=threshold.least,
                )
            )
    return checks


def _is_whole(result: Result) -> bool:
    """Return whether no planned trial failed or is pending. Then some measure, such as a total, counts all trials."""
    return max(one.n for one in result.measures) == max(one.planned for one in result.measures)


def _compare(
    threshold: Threshold, measure: Measure, bound: Measure | None, on: Held, remedy: str, *, is_whole: bool
) -> tuple[str, bool]:
    """Return the result as a sentence, and whether the threshold is missed. `remedy` ends it if cases are undecided.

    `is_whole`: all trials were performed, and the measure has no undecided cases.
    """
    name, least = threshold.name, threshold.least
    if threshold.if_any and measure.n < measure.planned and bound is None and not is_whole:
        is_undecided = measure.value is None and measure.low is not None  # otherwise, trials failed or are pending
        return f"{name} is decided for {measure.n} of {measure.planned} only{remedy if is_undecided else ''}", True
    if bound is not None and bound.value is not None and on == "value":
        missed = exceeds(least, bound.value)
        lowest = f"{name} could be as low as {beside(least, bound.value)}"
        return f"{lowest}, expected ≥ {exact(least)}{remedy if missed else ''}", missed
    higher = measure.higher_is_better
    safe_end = measure.low if higher else measure.high

    def reaches(value: float | None) -> bool:
        return value is not None and not (exceeds(least, value) if higher else exceeds(value, least))

    value = "no value" if measure.value is None else beside(least, measure.value)
    worse_end = f"{'lower' if higher else 'upper'} bound {'none' if safe_end is None else beside(least, safe_end)}"
    expected = f"expected {'≥' if higher else '≤'} {exact(least)}"
    if on == "lower":
        return f"{worse_end} of {name} {value}, {expected}", not reaches(safe_end)
    return f"{name} {value}, {expected}; {worse_end}", not reaches(measure.value)


def add_checks(report: Report, thresholds: Sequence[Check], gate: "Gate | None") -> Report:
    """Return the report with the results of thresholds and baseline; `checks` of its JSON document lists both."""
    if thresholds:
        notes = Notes(tuple(check.text for check in thresholds), title="Thresholds", detail=True)
        report = replace(report, sections=(*report.sections, notes))
    if gate is not None:
        report = gate.add_to(report)
    checks = [check.plain() for check in (*thresholds, *(gate.checks if gate else ()))]
    return replace(report, document={**report.document, "checks": checks}) if checks else report
