"""Scores from the findings about one output. An undefined score is left out: a case without facts has no recall."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter

from memorybench.core.trials import Score

from .findings import Findings, Label

OPERATIONS = (
    ("add", "added", "to_add", "added_open"),
    ("update", "updated", "to_update", "updated_open"),
    ("delete", "deleted", "to_delete", "deleted_open"),
    ("keep", "kept", "to_keep", "kept_open"),
)
"""Each operation with the names of its three scores: how often it was done, was due, and may also have been done."""
COUNTED: tuple[Label, ...] = ("hallucinated", "unexpected", "duplicate", "unlisted", "misfiled")
"""The labels of facts that are counted in reports."""
COUNTS = (
    "tp", "fp", "fn", "tp_open", "fp_open", "fn_open", "undecided",
    "covered", "uncovered", "uncovered_open", "supported", "unsupported", "unsupported_open",
    "said", "unsaid", "unsaid_open", "facts",
)  # fmt: skip
UNREADABLE = "unreadable"
"""The name of a score: the number of questions that the judge gave no readable reply to. Left out if there is none."""
IN_TEXT = "json_in_text"
"""The name of a score: 1 if the memory was JSON inside a longer reply; of a trace, the number of such lists."""
_counts = attrgetter(*COUNTS)


def scores_of(findings: Findings) -> tuple[Score, ...]:
    """Return all defined scores.

    A rate that undecided pairs could change is undefined. Counts are the least that is certain.
    """
    labels = [remark.label for remark in findings.remarks]
    flawless = findings.flawless
    is_open = bool(findings.tp_open or findings.fp_open or findings.fn_open)
    certain = not findings.possible_violations
    values: dict[str, float | None] = {
        "correct": None if flawless and (is_open or not certain) else flawless,
        "precision": None if is_open else share(findings.tp, findings.fp),
        "recall": None if is_open else share(findings.tp, findings.fn),
        "f1": None if is_open else f1(findings.tp, findings.fp, findings.fn),
        "coverage_precision": None if findings.unsupported_open else share(findings.supported, findings.unsupported),
        "coverage_recall": None if findings.uncovered_open else share(findings.covered, findings.uncovered),
        "conflict_resolution": findings.conflict_resolved,
        "minimalism": findings.unchanged,
        "must_not_store": _keeps_out(findings) if findings.forbidden else None,
        "violations": len(findings.violations) if findings.forbidden else None,
        UNREADABLE: len(findings.unreadable) or None,
    }
    values.update(zip(COUNTS, _counts(findings), strict=True))
    values.update(zip(COUNTED, map(labels.count, COUNTED), strict=True))
    for (_, *names), counts in zip(OPERATIONS, findings.operations, strict=True):
        values.update(zip(names, counts, strict=True))
    return tuple([_score(name, value) for name, value in values.items() if value is not None])


def _keeps_out(findings: Findings) -> bool | None:
    """Whether no forbidden text is stored; None if that is undecided."""
    return False if findings.violations else None if findings.possible_violations else True


@lru_cache(maxsize=4_000)  # most values are small counts, and validating a new record is slower than a lookup
def _score(name: str, value: float) -> Score:
    return Score(name=name, value=float(value))


def share(right: float, wrong: float) -> float | None:
    return right / (right + wrong) if right + wrong else None


def f1(tp: float, fp: float, fn: float) -> float | None:
    """Return 2 tp / (2 tp + fp + fn), the harmonic mean of precision and recall.

    It is 0 if only one of the two is defined and something is wrong, and None if nothing was due and nothing was done.
    """
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
