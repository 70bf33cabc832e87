"""Tests an entailment judge with pairs of notes whose relation is known, before its verdicts count."""

from __future__ import annotations

from itertools import zip_longest

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps

from .canaries import STEP, CanaryReport, count_verdicts
from .matching_judge import PROMPT, EntailmentJudge, all_of

PAIRS: dict[str, tuple[tuple[str, str], ...]] = {
    "verbatim": (
        ("pets: Has a goose called Hortense", "pets: Has a goose called Hortense"),
        ("costs: The kiln costs 480 EUR a year", "costs: The kiln costs 480 EUR a year"),
    ),
    "paraphrased": (
        ("diet: Eats neither meat nor fish", "diet: Is a vegetarian"),
        ("schedule: Is at the pool before breakfast each day", "schedule: Swims early every morning"),
        ("channels: Sells everything by post and nothing in shops", "channels: Mail order only"),
        ("contract: Runs for 24 months", "contract: The term is two years"),
        ("team: Mira manages Olek", "team: Olek reports to Mira"),
    ),
    "vague": (
        ("goals: Would like to do more with the garden", "goals: Wants to plant twelve apple trees"),
        ("work: Has a job in a hospital", "work: Is the head nurse of the children's ward"),
    ),
    "negated": (
        ("constraints: No deliveries on Sundays", "constraints: Deliveries on Sundays"),
        ("preferences: Enjoys being called in the evening", "preferences: Does not want calls in the evening"),
    ),
    "stale": (
        ("home: Lives in Aarhus", "home: Lives in Odense"),
        ("pricing: The basic plan is 15 EUR", "pricing: The basic plan is 18 EUR"),
    ),
    "near miss": (
        ("health: Is allergic to walnuts", "health: Is allergic to peanuts"),
        ("team: Half of the team works remotely", "team: The team works remotely"),
    ),
    "swapped roles": (
        ("team: Mira manages Olek", "team: Olek manages Mira"),
        ("partners: Vega supplies Orion", "partners: Orion supplies Vega"),
    ),
    "other unit": (
        ("shipping: A parcel weighs up to 5 kg", "shipping: A parcel weighs up to 5 lb"),
        ("pricing: Costs 12 EUR a month", "pricing: Costs 12 EUR a year"),
    ),
}
"""By kind: the first note, and the second, which it says (verbatim, paraphrased) or does not."""


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
