"""What a run would cost: calls, tokens and dollars. An estimate, made without asking anybody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memorybench.core.errors import BadInput
from memorybench.core.records import Record
from memorybench.models.prices import Usage, price

from .models import Chosen

REPLY_TOKENS, VERDICT_TOKENS, JUDGE_TOKENS = 60, 4, 260
"""What answers and verdicts usually are, and a judge's prompt without question and answer."""
PROMPT_TOKENS = 80
_CANARIES_PER_PROMPT = 24


class Expected(Record):
    benchmark: str
    arm: str
    stage: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """None: no price is known. What memory systems charge is theirs to tell."""


def asked(benchmark: str, arm: str, stage: str, model: Chosen, sizes: Sequence[int], reply: int) -> Expected:
    """Calls of one model, from the tokens of each prompt."""
    costs = [_price(model, size, reply) for size in sizes]  # each by itself: rates may step up with the length
    return Expected(
        benchmark=benchmark,
        arm=arm,
        stage=stage,
        calls=len(sizes),
        input_tokens=sum(sizes),
        output_tokens=reply * len(sizes),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def canaries(benchmark: str, judge: Chosen, prompts: int) -> Expected:
    return asked(benchmark, "", "canary", judge, [JUDGE_TOKENS] * prompts * _CANARIES_PER_PROMPT, VERDICT_TOKENS)


def check_prices(models: Iterable[Chosen | None], budget: float | None) -> None:
    """A budget can only be held where every price is known; that is said before the first call, not after it."""
    for model in models:
        if budget is not None and model is not None and _price(model, 1000, 100) is None:
            raise BadInput(
                "--budget", f"can not be held: no price is known for {model.name}", remedy="run without --budget"
            )


def _price(model: Chosen, inputs: int, outputs: int) -> float | None:
    if model.address is None or model.address.priced_as is None:
        return 0.0
    return price(model.address.model, model.address.priced_as, Usage(inputs, outputs))
