"""Responses and pairs of notes with known verdicts (catalog/data/judge_canaries.json). They are in no benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CanaryCase:
    """A question with its gold answer and one response of each kind. The first two are right, the others wrong."""

    question: str
    gold: str
    verbatim: str
    """The unchanged gold answer; for a rubric, a response that fulfils all of it."""
    paraphrased: str
    vague: str = ""
    """A long response on the topic that does not answer the question."""
    negated: str = ""
    stale: str = ""
    """An outdated value, or one of something similar."""
    refusal: str = ""
    echo: str = ""
    """The question itself; "": not asked."""
    hedge: str = ""
    """The correct answer as one of several possibilities; "": not asked."""
    both: str = ""
    """Both options or values, without a choice; "": not asked."""
    partial: str = ""
    """A response that meets a part of a rubric's item; "": not asked. A judge that calls it fully met errs."""
    options: tuple[str, ...] = ()
    """The options of a question about an order; the gold is one of them with its label."""


RIGHT = ("verbatim", "paraphrased")
PARTIAL = "partial"
KINDS = tuple(field.name for field in fields(CanaryCase) if field.name not in ("question", "gold", "options"))

_DATA = json.loads((Path(__file__).parent.parent / "catalog/data/judge_canaries.json").read_text(encoding="utf-8"))
CASES: Mapping[str, tuple[CanaryCase, ...]] = {
    prompt: tuple(CanaryCase(**{**row, "options": tuple(row.get("options", ()))}) for row in rows)
    for prompt, rows in _DATA["responses"].items()
}
"""By the name of the judge prompt."""
PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    kind: tuple((first, second) for first, second in pairs) for kind, pairs in _DATA["notes"].items()
}
"""By kind: a note, and a second one, which the first says (verbatim, paraphrased) or does not."""
