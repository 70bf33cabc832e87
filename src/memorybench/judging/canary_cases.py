"""Canaries: responses and pairs of notes with known verdicts, from catalog/data/judge_canaries.json.

No benchmark contains them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CanaryCase:
    """A question with its gold answer and a response of each kind. Only `verbatim` and `paraphrased` are right.

    If the response of a kind is empty, the judge is not asked about that kind.
    """

    question: str
    gold: str
    verbatim: str
    """The gold answer itself; for a rubric, a response that meets all of it."""
    paraphrased: str
    vague: str = ""
    """A long response on the topic that does not answer the question."""
    negated: str = ""
    stale: str = ""
    """A response with an outdated value, or with the value of something similar."""
    refusal: str = ""
    echo: str = ""
    """A response that repeats the question."""
    hedge: str = ""
    """A response that gives the correct answer as one of several possibilities."""
    both: str = ""
    """A response that names both options or values, and chooses neither."""
    partial: str = ""
    """A response that meets a part of a rubric item, so "fully met" is a wrong verdict."""
    options: tuple[str, ...] = ()
    """The options of a question about the order of events. The gold answer is one of them with its label."""


RIGHT = ("verbatim", "paraphrased")
PARTIAL = "partial"
KINDS = tuple(field.name for field in fields(CanaryCase) if field.name not in ("question", "gold", "options"))

_DATA = json.loads((Path(__file__).parent.parent / "catalog/data/judge_canaries.json").read_text(encoding="utf-8"))
CASES: Mapping[str, tuple[CanaryCase, ...]] = {
    prompt: tuple(CanaryCase(**{**row, "options": tuple(row.get("options", ()))}) for row in rows)
    for prompt, rows in _DATA["responses"].items()
}
"""The canaries, by name of the judge prompt."""
PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    kind: tuple((first, second) for first, second in pairs) for kind, pairs in _DATA["notes"].items()
}
"""Pairs of notes, by kind. Only in `verbatim` and `paraphrased` pairs does the first note say all of the second."""
