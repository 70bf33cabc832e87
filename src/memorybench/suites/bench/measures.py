"""The measures of a bench run, in the order in which reports list them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memorybench.core.measures import Metric, RetrievalMetric
from memorybench.core.questions import Question
from memorybench.core.trials import Outcome
from memorybench.metrics.rates import BoundedRate, Mean, Rate
from memorybench.metrics.retrieval import RetrievalMean, retrieval_metrics
from memorybench.suites.answering import EXCLUDED, RUBRIC_MET, RUBRIC_SCORE
from memorybench.suites.registry import load_plugins
from memorybench.suites.search_limits import OVER_BUDGET

from .scores import DRIFT, FORBIDDEN_HIT, MEMORY_BYTES, MISSES, OTHER_LEVEL
from .spec import MEASURED_ON

METRICS = "memorybench.metrics"
"""The entry point group of third-party metrics."""

CORRECTED = {"accuracy": "correct", "answer_f1": "answer_f1", "recall@5": "recall@5", "recall@10": "recall@10"}
"""The measures that are also computed with a corrected answer key, each with the name of its score."""


SPECIAL = (RUBRIC_SCORE, RUBRIC_MET, "required_share", EXCLUDED)
"""Measures of answers that only some benchmarks have: those with rubrics, or with required or excluded texts."""


def special_measures(questions: Iterable[Question]) -> list[str]:
    """Return the names of the measures that these questions need for rubrics and for required or forbidden content."""
    found: dict[str, None] = {}
    for question in questions:
        if question.rubric:
            found |= dict.fromkeys((RUBRIC_SCORE, RUBRIC_MET))
        if question.must_contain:
            found["required_share"] = None
        if question.must_not_contain:
            found[EXCLUDED] = None
        if question.must_not_contain or question.forbidden:
            found |= dict.fromkeys((FORBIDDEN_HIT, DRIFT))
    return list(found)


def measured_on(questions: Mapping[str, Sequence[Question]]) -> dict[str, list[str]]:
    """Return the benchmarks, with their `questions`, that have each of the measures that not every question has."""
    found: dict[str, list[str]] = {}
    for benchmark, own in questions.items():
        accuracy = [] if all(question.rubric for question in own) else ["accuracy"]
        for name in (*special_measures(own), *accuracy):
            found.setdefault(name, []).append(benchmark)
    return found


class UnjudgedAccuracy(BoundedRate, frozen=True):
    """The share of right answers in a run without a judge, in which code cannot decide every answer.

    The decided answers may be better or worse than the others, so the undecided ones widen the interval. Code cannot
    read every reply to a multiple-choice question; and it knows that an answer with an excluded text is wrong, but not
    that an answer without such a text is right.
    """

    def is_open(self, outcome: Outcome) -> bool:
        return outcome.status == "unscored" or (
            outcome.score(EXCLUDED) == 0 and outcome.score("exact_match") is not None
        )


def run_metrics(spec: Mapping[str, Any], plugins: Sequence[Metric | RetrievalMetric] = ()) -> tuple[Metric, ...]:
    """Return the metrics that apply to a saved run, in the order of the report, from its saved spec alone."""
    metrics: list[Metric] = []
    special = spec.get("special_measures", ())
    on = {name: tuple(benchmarks) for name, benchmarks in spec.get(MEASURED_ON, {}).items()}
    accuracy = Rate if spec.get("judge") else UnjudgedAccuracy
    if spec["answered"]:
        metrics += [
            accuracy("accuracy", "correct", benchmarks=on.get("accuracy", ())),
            *(Rate(name, name, name != EXCLUDED, benchmarks=on.get(name, ())) for name in SPECIAL if name in special),
            Rate("exact_match", "exact_match"),
            Rate("answer_f1", "answer_f1"),
            Rate("similarity", "similarity"),
            *(Rate(name, name, higher_is_better=False) for name in MISSES),
        ]
    if spec.get("corrected"):
        kinds = {name: accuracy if name == "accuracy" else Rate for name in CORRECTED}
        metrics += [kinds[name](f"corrected_{name}", f"corrected_{score}") for name, score in CORRECTED.items()]
    retrieval = retrieval_metrics(plugins)
    metrics += [RetrievalMean(name) for metric in retrieval for name in metric.score_names]
    for level in dict.fromkeys(OTHER_LEVEL[level] for level in spec["evidence"].values()):
        names = [name for metric in retrieval if metric.both_levels for name in metric.score_names]
        metrics += [RetrievalMean(f"{level}_{name}") for name in names]
    metrics.append(Mean("context_tokens", "context_tokens", higher_is_better=False, unit="tokens"))
    metrics.append(Mean(MEMORY_BYTES, MEMORY_BYTES, higher_is_better=False, unit="bytes"))
    unwanted = [name for name in (FORBIDDEN_HIT, DRIFT) if name in special]
    metrics += [Rate(name, name, higher_is_better=False, benchmarks=on.get(name, ())) for name in unwanted]
    if spec.get("token_budget"):
        metrics.append(Rate(OVER_BUDGET, OVER_BUDGET, higher_is_better=False))
    return (*metrics, *(plugin for plugin in plugins if not isinstance(plugin, RetrievalMetric)))


def plugin_metrics() -> tuple[Metric | RetrievalMetric, ...]:
    """Return the metrics of installed plug-in packages. A metric that cannot be loaded is skipped with a warning."""
    return tuple(load_plugins(METRICS, "metric"))
