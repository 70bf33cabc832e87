"""What a run would cost: calls, tokens and dollars, by stage and arm. An estimate, made without asking anybody."""

from __future__ import annotations

from collections.abc import Iterator

from memorybench.models.prices import Usage, price
from memorybench.providers.chunk_memory import wanted_model
from memorybench.suites.answering import context_of, estimated_tokens
from memorybench.suites.bench.arms import remembered
from memorybench.vocabulary.errors import BadInput
from memorybench.vocabulary.records import Record

from .bench import Prepared, PreparedBench
from .models import Chosen

_REPLY_TOKENS, _VERDICT_TOKENS, _JUDGE_TOKENS = 60, 4, 260
"""What answers and verdicts usually are, and a judge's prompt without question and answer."""
_PROMPT_TOKENS = 80
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


def expected(prepared: Prepared) -> Iterator[Expected]:
    for bench in prepared.benches:
        for entry in prepared.arms:
            yield from _arm(prepared, bench, entry.name, entry.kind == "baseline")
        if prepared.judge is not None:
            prompts = len(bench.judge_prompts.used(bench.questions))
            yield _asked(bench, "", "canary", prepared.judge, [_JUDGE_TOKENS] * prompts * _CANARIES_PER_PROMPT, 4)


def _arm(prepared: Prepared, bench: PreparedBench, arm: str, baseline: bool) -> Iterator[Expected]:
    name, questions = bench.dataset.name, bench.questions
    if not baseline:
        haystacks = dict.fromkeys(question.haystack for question in questions)
        sessions = sum(len(bench.dataset.haystack(haystack).sessions) for haystack in haystacks)
        asks = wanted_model(prepared.catalog.provider(arm)) is not None  # a model works on chunks: who knows how many
        yield Expected(benchmark=name, arm=arm, stage="add", calls=sessions, cost=None if asks else 0.0)
        yield Expected(benchmark=name, arm=arm, stage="search", calls=len(questions))
    if prepared.reader is None:
        return
    contexts = _context_sizes(bench, arm, baseline)
    yield _asked(bench, arm, "answer", prepared.reader, [size + _PROMPT_TOKENS for size in contexts], _REPLY_TOKENS)
    if prepared.judge is not None:
        twice = sum(question.id in bench.corrected for question in questions)
        sizes = [_JUDGE_TOKENS + _REPLY_TOKENS] * (len(questions) + twice)
        yield _asked(bench, arm, "judge", prepared.judge, sizes, _VERDICT_TOKENS)


def _context_sizes(bench: PreparedBench, arm: str, baseline: bool) -> list[int]:
    """Tokens of context by question: known for baselines, for providers as many average turns as they may show."""
    sizes: dict[str, int] = {}
    found = []
    for question in bench.questions:
        haystack = bench.dataset.haystack(question.haystack)
        if baseline and arm != "full-context":
            found.append(estimated_tokens(context_of(remembered(arm, question, haystack))))
            continue
        if haystack.id not in sizes:
            everything = remembered("full-context", question, haystack)
            total = estimated_tokens(context_of(everything))
            share = min(1.0, bench.config.search.context_limit / max(1, len(everything)))
            sizes[haystack.id] = total if baseline else round(total * share)
        found.append(sizes[haystack.id])
    return found


def _asked(bench: PreparedBench, arm: str, stage: str, model: Chosen, sizes: list[int], reply: int) -> Expected:
    costs = [_price(model, size, reply) for size in sizes]  # each by itself: rates may step up with the length
    return Expected(
        benchmark=bench.dataset.name,
        arm=arm,
        stage=stage,
        calls=len(sizes),
        input_tokens=sum(sizes),
        output_tokens=reply * len(sizes),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _price(model: Chosen, inputs: int, outputs: int) -> float | None:
    if model.address is None or model.address.priced_as is None:
        return 0.0
    return price(model.address.model, model.address.priced_as, Usage(inputs, outputs))


def check_budget(prepared: Prepared, budget: float | None) -> None:
    """A budget can only be held where every price is known; that is said before the first call, not after it."""
    for model in (prepared.reader, prepared.judge):
        if budget is not None and model is not None and _price(model, 1000, 100) is None:
            raise BadInput(
                "--budget", f"can not be held: no price is known for {model.name}", remedy="run without --budget"
            )
