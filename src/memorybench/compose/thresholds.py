"""Figures that a run must reach."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from memorybench.datasets.metric_names import ALIASES
from memorybench.documents.spelling import suggestion
from memorybench.reporting.summary import Summary
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.measures import Measure, Metric
from memorybench.vocabulary.records import Record

Held = Literal["value", "lower"]


class Threshold(Record):
    name: str
    least: float
    if_any: bool = False
    """Only held where there is a figure."""

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


def with_targets(texts: Sequence[str], targets: Mapping[str, float]) -> list[Threshold]:
    """The usual targets, each unless told otherwise; a figure that is undefined is held to none of them."""
    given = parse(texts)
    named = {threshold.name for threshold in given}
    usual = [Threshold(name=name, least=least, if_any=True) for name, least in targets.items() if name not in named]
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
            if measure is not None and not (threshold.if_any and measure.value is None):
                lines.append(_held(f"{result.benchmark} × {result.subject}", threshold, measure, on))
    return lines


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
