"""What a benchmark config may ask to see."""

from __future__ import annotations

from collections.abc import Collection

from memorybench.core.errors import BadInput
from memorybench.text.sanitize import preview
from memorybench.text.spelling import join_names, suggestion

CUTS = (1, 3, 5, 10)
_AT_K = ("recall", "recall_any", "recall_all", "precision", "ndcg", "ndcg_any", "session_recall", "turn_recall")
METRICS = frozenset(
    {
        *("accuracy", "exact_match", "answer_f1", "similarity", "mrr", "session_mrr", "turn_mrr"),
        *("miss_not_retrieved", "miss_not_used"),
        *("context_tokens", "latency", "cost"),
        *(f"{name}@{k}" for name in _AT_K for k in CUTS),
    }
)
ALIASES = {
    "accuracy_by_question_type": "accuracy",
    "accuracy_by_category": "accuracy",
    "f1": "answer_f1",
    **{f"{name}_at_{k}": f"{name}@{k}" for name in _AT_K for k in CUTS},
}
"""The spec's names: breakdowns by type and category are always made."""


def metric(name: str, where: str, plugins: Collection[str] = ()) -> str:
    """The name under which `name` is measured."""
    measured = ALIASES.get(name, name)
    if measured in METRICS or measured in plugins:
        return measured
    known = {*METRICS, *ALIASES, *plugins}
    raise BadInput(
        where,
        f"no metric is called {preview(name)}",
        expected=f"one of {join_names({*METRICS, *plugins})}",
        remedy=suggestion(name, known),
    )
