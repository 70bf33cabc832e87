"""Estimates calls, tokens and dollars of a run without any call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import computed_field

from memorybench.core.errors import BadInput
from memorybench.core.records import Record

from .wiring import ResolvedModel

REPLY_TOKENS, VERDICT_TOKENS, JUDGE_TOKENS = 60, 4, 260
"""Usual sizes of an answer, a verdict, and a judge prompt without question and answer."""
PROMPT_TOKENS = 80
_CANARIES_PER_PROMPT = 24


class Estimate(Record):
    benchmark: str
    subject: str
    stage: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """None: unknown. It includes models only, not what memory services charge."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def arm(self) -> str:
        """The name of `subject` in the JSON of version 0.1."""
        return self.subject


def model_calls(
    benchmark: str, subject: str, stage: str, model: ResolvedModel, sizes: Sequence[int], reply: int
) -> Estimate:
    """Estimate the calls of one model from the tokens of each prompt."""
    costs = [model.price(size, reply) for size in sizes]  # per prompt, because rates may depend on its length
    return Estimate(
        benchmark=benchmark,
        subject=subject,
        stage=stage,
        calls=len(sizes),
        input_tokens=sum(sizes),
        output_tokens=reply * len(sizes),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def canary_calls(benchmark: str, judge: ResolvedModel, prompts: int) -> Estimate:
    sizes = [JUDGE_TOKENS] * prompts * _CANARIES_PER_PROMPT
    return model_calls(benchmark, "", "canary", judge, sizes, VERDICT_TOKENS)


def check_prices(models: Iterable[ResolvedModel | None], budget: float | None) -> None:
    """Raise BadInput if a budget cannot be enforced because a price is unknown."""
    for model in models:
        if budget is not None and model is not None and model.price(1000, 100) is None:
            raise BadInput("--budget", f"the price of {model.name} is unknown", remedy="use --budget none")
