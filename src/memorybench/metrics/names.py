"""The names of built-in metrics that configs and `--threshold` may use."""

from __future__ import annotations

from collections.abc import Collection

from .retrieval import RETRIEVAL_METRICS

_RETRIEVAL_NAMES = (
    *(name for metric in RETRIEVAL_METRICS for name in metric.score_names),
    *(
        f"{level}_{name}"
        for level in ("session", "turn")
        for metric in RETRIEVAL_METRICS
        if metric.both_levels
        for name in metric.score_names
    ),
)
ANSWER_METRIC_NAMES = frozenset(
    {
        *("accuracy", "exact_match", "answer_f1", "similarity", "miss_not_retrieved", "miss_not_used"),
        *("rubric_score", "rubric_met", "required_share", "excluded_in_answer"),
    }
)
"""The metrics that only runs with an answering model have."""
METRIC_NAMES = frozenset(
    {
        *ANSWER_METRIC_NAMES,
        *("forbidden_hit", "drift", "context_tokens", "bytes_per_memory", "latency", "cost"),
        *_RETRIEVAL_NAMES,
    }
)
ALIASES = {
    "accuracy_by_question_type": "accuracy",
    "accuracy_by_category": "accuracy",
    "f1": "answer_f1",
    "context": "context_tokens",
    **{name.removeprefix("recall_"): name for name in _RETRIEVAL_NAMES if name.startswith("recall_any@")},
    **{name.replace("@", "_at_"): name for name in _RETRIEVAL_NAMES if "@" in name},
}
"""By old name of a metric, from the older specification or from tables of earlier versions: its name today.

The old names by question type are aliases, because results by question type are always reported.
"""


def known_metrics(plugins: Collection[str] = ()) -> frozenset[str]:
    """Return every metric name that a benchmark config may list: built-in ones, their aliases and `plugins`."""
    return frozenset({*METRIC_NAMES, *ALIASES, *plugins})
