"""Estimates calls, tokens and dollars of a run without any call."""

from collections.abc import Iterable, Sequence, Sized
from typing import TYPE_CHECKING

from pydantic import computed_field

from memorybench.core.errors import BadInput
from memorybench.core.records import Record

if TYPE_CHECKING:
    from .wiring import ResolvedModel

REPLY_TOKENS, VERDICT_TOKENS, JUDGE_TOKENS = 60, 4, 260
"""The usual numbers of tokens of an answer, of a verdict, and of a judge prompt without question and answer."""
PROMPT_TOKENS = 80


class Estimate(Record):
    benchmark: str
    subject: str
    stage: str
    calls: int
    """The number of calls that are still to be made. Calls that an earlier run recorded are in `reused` instead."""
    reused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    """Dollars; None if unknown, for example because the price of a memory service is not known."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def arm(self) -> str:
        """The value of `subject`, which JSON documents also have under its former name `arm`."""
        return self.subject


def model_calls(
    benchmark: str, subject: str, stage: str, model: "ResolvedModel", sizes: Sequence[int], reply: int
) -> Estimate:
    """Estimate the calls of one model from the tokens of each prompt (`sizes`) and of a usual `reply`."""
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


def unpriced_calls(benchmark: str, subject: str, stage: str, calls: int, *, spends: bool) -> Estimate:
    return Estimate(benchmark=benchmark, subject=subject, stage=stage, calls=calls, cost=None if spends else 0.0)


def dearest_call(estimates: Iterable[Estimate]) -> float:
    """Return the dollars per call of the most expensive stage; 0 if no cost is known."""
    return max((row.cost / row.calls for row in estimates if row.cost and row.calls), default=0.0)


def without_recorded(
    estimate: Estimate, planned: int, scored: int, changes: Iterable[str], *, canaries: int
) -> Estimate:
    """Return the estimate without the calls that an earlier run recorded.

    The earlier run scored `scored` of the `planned` trials and asked `canaries` canaries. `changes` are the differences
    between the two runs; if one of them affects this stage, nothing is subtracted. A change of the judge affects its
    own calls only, a change of answering does not affect add and search, and a change of a provider affects that
    provider only.
    """
    for change in changes:
        if "judge" in change and "judge" not in estimate.stage and estimate.stage != "canary":
            continue
        if "answer" in change and estimate.stage in ("add", "search"):
            continue
        if change.startswith("provider ") and not change.startswith(f"provider {estimate.subject} "):
            continue
        return estimate
    if estimate.stage == "canary":
        left = 1 - min(canaries, estimate.calls) / estimate.calls if estimate.calls else 1.0
    elif estimate.stage == "add":
        left = float(scored < planned)  # a search that is left needs the whole haystack
    else:
        left = 1 - scored / planned if planned else 1.0
    calls = round(estimate.calls * left)
    return estimate.model_copy(
        update={
            "calls": calls,
            "reused": estimate.calls - calls,
            "input_tokens": round(estimate.input_tokens * left),
            "output_tokens": round(estimate.output_tokens * left),
            "cost": 0.0 if not calls and estimate.calls else estimate.cost and estimate.cost * left,
        }
    )


def canary_calls(benchmark: str, judge: "ResolvedModel", canaries: Sized) -> Estimate:
    sizes = [JUDGE_TOKENS] * len(canaries)
    return model_calls(benchmark, "", "canary", judge, sizes, VERDICT_TOKENS)


def check_prices(models: "Iterable[ResolvedModel | None]", budget: float | None) -> None:
    """Raise BadInput if a budget cannot be enforced because a price is unknown."""
    for model in models:
        if budget is not None and model is not None and model.price(1000, 100) is None:
            raise BadInput(
                "--budget",
                f"the price of {model.name} is unknown, so the budget cannot be enforced",
                remedy="use --budget none, or add its price to a model card",
            )
