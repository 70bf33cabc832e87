"""Tests an entailment judge with pairs of notes whose relation is known, before its verdicts count."""

from __future__ import annotations

from itertools import zip_longest

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps

from .asking import all_of
from .canaries import STEP, CanaryReport, count_verdicts
from .canary_cases import PAIRS
from .matching_judge import PROMPT, EntailmentJudge


def _taking_turns(*kinds: str) -> list[tuple[str, tuple[str, str]]]:
    rows = zip_longest(*([(kind, pair) for pair in PAIRS[kind]] for kind in kinds))
    return [one for row in rows for one in row if one is not None]


_WRONG = ("vague", "negated", "swapped roles", "near miss", "other unit", "stale")
IN_ORDER = [
    one
    for row in zip_longest(_taking_turns("paraphrased", "verbatim"), _taking_turns(*_WRONG))
    for one in row
    if one is not None
]


async def check_entailment(steps: Steps, judge: EntailmentJudge, limit: int | None = None) -> CanaryReport:
    """Ask the judge about pairs of facts whose verdict is known. Unreadable replies are counted separately.

    Verdicts are recorded steps, so a run that is resumed, or that reuses another, does not pay for them again.

    `limit` takes the first pairs, in which right and wrong ones alternate.
    """
    chosen = IN_ORDER[:limit]
    verdicts = await all_of(*(_says(steps, judge, *pair) for _, pair in chosen))
    rows = [(PROMPT.name, kind, verdict) for (kind, _), verdict in zip(chosen, verdicts, strict=True)]
    return CanaryReport(judge=judge.judge.model.subject.name, counts=count_verdicts(rows))


async def _says(steps: Steps, judge: EntailmentJudge, first: str, second: str) -> bool | None:
    try:
        return await judge.says(steps, first, second, STEP)
    except Unreadable:
        return None
