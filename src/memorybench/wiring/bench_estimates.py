"""What a bench run would take, by stage and arm."""

from __future__ import annotations

from collections.abc import Iterator

from memorybench.suites.answering import context_of, estimated_tokens
from memorybench.suites.bench.baselines import remembered

from .bench import Prepared, PreparedBench
from .estimates import JUDGE_TOKENS, PROMPT_TOKENS, REPLY_TOKENS, VERDICT_TOKENS, Expected, asked, canaries


def expected(prepared: Prepared) -> Iterator[Expected]:
    for bench in prepared.benches:
        for entry in prepared.arms:
            yield from _arm(prepared, bench, entry.name, entry.kind == "baseline")
        if prepared.judge is not None:
            prompts = len(bench.judge_prompts.used(bench.questions))
            yield canaries(bench.dataset.name, prepared.judge, prompts)


def _arm(prepared: Prepared, bench: PreparedBench, arm: str, baseline: bool) -> Iterator[Expected]:
    name, questions = bench.dataset.name, bench.questions
    if not baseline:
        haystacks = dict.fromkeys(question.haystack for question in questions)
        sessions = sum(len(bench.dataset.haystack(haystack).sessions) for haystack in haystacks)
        asks = prepared.catalog.provider(arm).enhancement_model is not None  # the number of chunks is unknown
        yield Expected(benchmark=name, arm=arm, stage="add", calls=sessions, cost=None if asks else 0.0)
        yield Expected(benchmark=name, arm=arm, stage="search", calls=len(questions))
    if prepared.reader is None:
        return
    contexts = _context_sizes(bench, arm, baseline)
    yield asked(name, arm, "answer", prepared.reader, [size + PROMPT_TOKENS for size in contexts], REPLY_TOKENS)
    if prepared.judge is not None:
        twice = sum(question.id in bench.corrected for question in questions)
        sizes = [JUDGE_TOKENS + REPLY_TOKENS] * (len(questions) + twice)
        yield asked(name, arm, "judge", prepared.judge, sizes, VERDICT_TOKENS)


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
