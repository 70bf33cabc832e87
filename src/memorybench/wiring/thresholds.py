"""Figures that a run must reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from memorybench.core.errors import BadInput
from memorybench.core.measures import Measure, Metric
from memorybench.core.records import Record
from memorybench.metrics.names import ALIASES
from memorybench.suites.summary import Summary
from memorybench.text.spelling import suggestion

Held = Literal["value", "lower"]


class Threshold(Record):
    name: str
    least: float
    if_any: bool = False
    """Only held where there is something to measure."""
    at_worst: str = ""
    """The measure that tells how low the figure could be, were everything undecided decided against it. Where that has
    a value, the threshold is held against it: what nobody has decided is no success."""

    @classmethod
    def parse(cls, text: str) -> Threshold:
        name, _, value = text.partition("=")
        try:
            return cls(name=name.strip(), least=float(value))
        except ValueError:
            raise BadInput(
                "--threshold", f"{text!r} is no threshold", expected="NAME=NUMBER, as recall@5=0.6"
            ) from None


def parse(texts: Sequence[str]) -> list[Threshold]:
    return [Threshold.parse(text) for text in texts]


def with_targets(texts: Sequence[str], targets: Mapping[str, float], worst: Mapping[str, str]) -> list[Threshold]:
    """The usual targets, each unless told otherwise; a figure that there is nothing to make of is held to none of
    them. `worst` names the measures of how low a figure could be."""
    given = [one.model_copy(update={"at_worst": worst.get(one.name, "")}) for one in parse(texts)]
    named = {threshold.name for threshold in given}
    usual = [
        Threshold(name=name, least=least, if_any=True, at_worst=worst.get(name, ""))
        for name, least in targets.items()
        if name not in named
    ]
    return [*usual, *given]


def checked(thresholds: Sequence[Threshold], metrics: Sequence[Metric], subjects: Sequence[str]) -> list[Threshold]:
    """Before anything is spent: a threshold must be on something that is measured, of somebody who is held to it.

    A name of the older spec stands for what it is called now, where that is measured.
    """
    if thresholds and not subjects:
        raise BadInput(
            "--threshold", "only baselines are run, and none is held to a threshold", remedy="name a provider"
        )
    known = [metric.name for metric in metrics]
    return [threshold.model_copy(update={"name": _measured(threshold.name, known)}) for threshold in thresholds]


def _measured(name: str, known: Sequence[str]) -> str:
    snake = re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", name)  # as report.json spells memaudit's own
    found = next((spelling for spelling in (name, ALIASES.get(name, name), snake) if spelling in known), name)
    if found not in known:
        raise BadInput("--threshold", f'nothing measures "{name}"', remedy=suggestion(name, known))
    return found


class Missed(Record):
    line: str
    missed: bool


def hold(summary: Summary, thresholds: Sequence[Threshold], on: Held, exempt: Sequence[str]) -> list[Missed]:
    """One line for each threshold and subject. `exempt` subjects, the baselines, are not held to any."""
    lines = []
    overall = [result for result in summary.results if not result.group and result.subject not in exempt]
    for threshold in thresholds:
        for result in overall:
            measure = result.measure(threshold.name)
            worst = result.measure(threshold.at_worst) if threshold.at_worst else None
            if measure is None or (threshold.if_any and _nothing_to_hold(measure)):
                continue
            who = f"{result.benchmark} × {result.subject}"
            lines.append(_undecided(who, threshold, measure, worst) or _held(who, threshold, measure, on))
    return lines


def _nothing_to_hold(measure: Measure) -> bool:
    return measure.value is None and (not measure.planned or measure.n == measure.planned)


def _undecided(who: str, threshold: Threshold, measure: Measure, worst: Measure | None) -> Missed | None:
    """A figure that rests on a part of the pairs is held by what the rest could make of it."""
    if threshold.if_any and measure.n < measure.planned and worst is None:
        said = f"{threshold.name} is decided for {measure.n} of {measure.planned} only"
    elif worst is not None and worst.value is not None and worst.value < threshold.least:
        said = f"{threshold.name} could be as low as {worst.value:.3f}, wanted ≥ {threshold.least:g}"
    else:
        return None
    return Missed(line=f"threshold missed: {who}: {said}; --judge-model decides what code can not", missed=True)


def _held(who: str, threshold: Threshold, measure: Measure, on: Held) -> Missed:
    sure = measure.low if measure.higher_is_better else measure.high
    reached, surely = (_clears(figure, threshold.least, measure.higher_is_better) for figure in (measure.value, sure))
    missed = not (surely if on == "lower" else reached)
    figure = "no value" if measure.value is None else f"{measure.value:.3f}"
    end = "clears" if surely else "does not clear"
    sign = "≥" if measure.higher_is_better else "≤"
    said = "missed" if missed else "met"
    return Missed(
        line=f"threshold {said}: {who}: {threshold.name} {figure}, wanted {sign} {threshold.least:g};"
        f" the interval's end {end} it",
        missed=missed,
    )


def _clears(figure: float | None, least: float, higher_is_better: bool) -> bool:
    if figure is None:
        return False
    return figure >= least if higher_is_better else figure <= least
