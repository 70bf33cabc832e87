"""What an entailment judge says of notes whose relation is known: asked once, before its verdicts count."""

from __future__ import annotations

from memorybench.core.errors import Unreadable
from memorybench.core.plans import Steps

from .canaries import STEP, CanaryCount, CanaryReport
from .facts import MemoryFact
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
}
"""By kind: the first note, and the second, which it says (verbatim, paraphrased) or does not."""
_RIGHT = ("verbatim", "paraphrased")


async def check_entailment(steps: Steps, judge: EntailmentJudge) -> CanaryReport:
    """Recorded as steps: a resumed or reusing run does not pay again. What can not be read is counted by itself."""
    counts = await all_of(*(_count(steps, judge, kind) for kind in PAIRS))
    return CanaryReport(judge=judge.judge.model.subject.name, counts=tuple(counts))


async def _count(steps: Steps, judge: EntailmentJudge, kind: str) -> CanaryCount:
    said = await all_of(*(_says(steps, judge, first, second) for first, second in PAIRS[kind]))
    right = kind in _RIGHT
    return CanaryCount(
        prompt=PROMPT.name,
        kind=kind,
        right=right,
        agreed=sum(verdict == right for verdict in said),
        n=sum(verdict is not None for verdict in said),
        unreadable=sum(verdict is None for verdict in said),
    )


async def _says(steps: Steps, judge: EntailmentJudge, first: str, second: str) -> bool | None:
    try:
        return await judge.says(steps, MemoryFact(text=first), MemoryFact(text=second), STEP)
    except Unreadable:
        return None
