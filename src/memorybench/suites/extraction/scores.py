"""The findings about one output as scores. An undefined score is left out: a case without facts has no recall."""

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
"""Each operation, the score that counts how often it was done, and the score that counts how often it was due."""
COUNTED: tuple[Label, ...] = ("hallucinated", "duplicate", "unlisted", "contradiction", "misfiled")
"""Labels whose number is reported."""
COUNTS = (
    "tp", "fp", "fn", "tp_open", "fp_open", "fn_open", "undecided",
    "covered", "uncovered", "supported", "unsupported", "facts",
)  # fmt: skip
_counts = attrgetter(*COUNTS)


def scores_of(findings: Findings, unknown: Collection[str] = ()) -> tuple[Score, ...]:
    """Returns all defined scores except those named in `unknown`."""
    labels = [remark.label for remark in findings.remarks]
    flawless = findings.flawless
    values: dict[str, float | None] = {
        "correct": None if findings.undecided and flawless else flawless,
        "precision": share(findings.tp, findings.fp),
        "recall": share(findings.tp, findings.fn),
        "f1": f1(findings.tp, findings.fp, findings.fn),
        "coverage_precision": share(findings.supported, findings.unsupported),
        "coverage_recall": share(findings.covered, findings.uncovered),
        "conflict_resolution": findings.conflict_resolved,
        "minimalism": findings.unchanged,
        "must_not_store": not findings.violations if findings.forbidden else None,
        "violations": len(findings.violations) if findings.forbidden else None,
    }
    values.update(zip(COUNTS, _counts(findings), strict=True))
    values.update(zip(COUNTED, map(labels.count, COUNTED), strict=True))
    values.update(zip(Operations._fields, findings.operations, strict=True))
    return tuple([_score(name, value) for name, value in values.items() if value is not None and name not in unknown])


@lru_cache(maxsize=4_000)  # most values are small counts, and validating a new record is slower than a lookup
def _score(name: str, value: float) -> Score:
    return Score(name=name, value=float(value))


def share(right: float, wrong: float) -> float | None:
    return right / (right + wrong) if right + wrong else None


def f1(tp: float, fp: float, fn: float) -> float | None:
    """2 tp / (2 tp + fp + fn), the harmonic mean of precision and recall.

    It is 0 if only one of the two is defined and something is wrong, and None if nothing was due and nothing was done.
    """
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
