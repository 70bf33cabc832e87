"""Checks whether questions can be answered without a memory: compares the baselines without memory with chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from memorybench.core.questions import Question
from memorybench.reporting import formatting
from memorybench.suites.answering import RUBRIC_SCORE
from memorybench.suites.summary import Summary

WITHOUT_MEMORY = ("none", "placebo")
_ANSWER_MEASURES = ("accuracy", RUBRIC_SCORE)
_TOLERANCE = 0.05
"""How far above chance the lower end of the interval may be without a warning, because a judge makes errors."""


def chance_score(questions: Sequence[Question]) -> float:
    """Return the mean score to expect from a model that has no memory and knows nothing about the user.

    A question with choices counts as the share of its choices that are right. Questions that need no memory count as 1:
    those that the history does not answer, and those whose answer only must not contain certain texts. All others count
    as 0.
    """
    return fmean(map(_chance, questions)) if questions else 0.0


def _chance(question: Question) -> float:
    has_gold = question.answers or question.must_contain or question.rubric
    if question.choices and question.answers:
        return sum(str(choice) in question.answers for choice in question.choices) / len(question.choices)
    if question.abstain or (question.must_not_contain and not has_gold):
        return 1.0
    return 0.0


def contamination(summary: Summary, chance: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    """Yield a dict for each answer measure of `none` and `placebo` that is clearly above `chance`, by benchmark."""
    for result in summary.results:
        baseline = result.subject.partition(" + ")[0]
        if result.group or baseline not in WITHOUT_MEMORY or result.benchmark not in chance:
            continue
        for name in _ANSWER_MEASURES:
            measure = result.measure(name)
            if measure is None or measure.value is None:
                continue
            expected = chance[result.benchmark]
            lower = measure.value if measure.low is None else measure.low
            if lower > expected + _TOLERANCE:
                yield {
                    "benchmark": result.benchmark,
                    "subject": result.subject,
                    "measure": name,
                    "value": measure.value,
                    "low": measure.low,
                    "high": measure.high,
                    "chance": expected,
                }


def contamination_warning(found: Mapping[str, Any]) -> str:
    value, expected = (formatting.share(found[name]) for name in ("value", "chance"))
    return (
        f"{found['benchmark']}: {found['subject']} has {found['measure']} {value}, above chance ({expected}), without a"
        " memory of the history. The model knows or guesses these answers: read differences from this baseline, not the"
        " scores themselves."
    )
