"""The findings about one output as scores. What is undefined has none: a case without facts has no recall."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from operator import attrgetter

from memorybench.core.trials import Score

from .findings import Findings, Label, Operations

OPERATIONS = (
    ("add", "added", "to_add"),
    ("update", "updated", "to_update"),
    ("delete", "deleted", "to_delete"),
    ("keep", "kept", "to_keep"),
)
COUNTED: tuple[Label, ...] = ("hallucinated", "duplicate", "unlisted", "contradiction", "misfiled")
"""Labels of found facts whose share is reported."""


COUNTS = (
    "tp", "fp", "fn", "tp_open", "fp_open", "fn_open", "undecided",
    "covered", "uncovered", "supported", "unsupported", "facts",
)  # fmt: skip
_counts = attrgetter(*COUNTS)


def scores_of(found: Findings, unknown: Collection[str] = ()) -> tuple[Score, ...]:
    """All but those that are `unknown`."""
    labels = [remark.label for remark in found.remarks]
    flawless = found.flawless
    values: dict[str, float | None] = {
        "correct": None if found.undecided and flawless else float(flawless),
        "precision": share(found.tp, found.fp),
        "recall": share(found.tp, found.fn),
        "f1": f1(found.tp, found.fp, found.fn),
        "coverage_precision": share(found.supported, found.unsupported),
        "coverage_recall": share(found.covered, found.uncovered),
        "conflict_resolution": _verdict(found.conflict_resolved),
        "minimalism": _verdict(found.unchanged),
        "must_not_store": float(not found.violations) if found.forbidden else None,
        "violations": float(len(found.violations)) if found.forbidden else None,
    }
    values.update(zip(COUNTS, _counts(found), strict=True))
    values.update(zip(COUNTED, map(labels.count, COUNTED), strict=True))
    values.update(zip(Operations._fields, found.operations, strict=True))
    return tuple([_score(name, value) for name, value in values.items() if value is not None and name not in unknown])


@lru_cache(maxsize=4_000)  # mostly small counts: to make one anew each time takes longer than to count
def _score(name: str, value: float) -> Score:
    return Score(name=name, value=value)


def share(right: float, wrong: float) -> float | None:
    return right / (right + wrong) if right + wrong else None


def f1(tp: float, fp: float, fn: float) -> float | None:
    """2 tp / (2 tp + fp + fn): the harmonic mean of precision and recall, and 0 where only one of them is defined and
    something is wrong. None where there was nothing to do and nothing was done."""
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None


def _verdict(passed: bool | None) -> float | None:
    return None if passed is None else float(passed)
