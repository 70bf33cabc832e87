"""Estimates how many calls a run makes and how many tokens they have, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from memorybench.suites.answering import context_of, estimated_tokens
from memorybench.suites.estimates import (
    JUDGE_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    VERDICT_TOKENS,
    Estimate,
    canary_calls,
    model_calls,
)

from .baselines import all_turns, remembered

if TYPE_CHECKING:
    from memorybench.suites.wiring import ResolvedProvider

    from .bench_run import BenchRun
    from .benchmarks import Benchmark


def estimates(run: BenchRun) -> Iterator[Estimate]:
    for benchmark in run.performed:
        for provider in run.providers:
            yield from _of_benchmark(run, benchmark, provider)
    if run.judge is not None:
        from memorybench.judging.canaries import choose_canaries

        used = dict.fromkeys(prompt for one in run.benchmarks for prompt in one.judge_prompts.used(one.questions))
        yield canary_calls(run.benchmarks[0].name, run.judge, choose_canaries(tuple(used), run.canaries))


def _of_benchmark(run: BenchRun, benchmark: Benchmark, provider: ResolvedProvider) -> Iterator[Estimate]:
    name, subject, questions = benchmark.name, provider.name, benchmark.questions
    if not provider.is_baseline and run.recorded is None:
        # of a shared history, the longest beginning contains the others
        ordered = sorted(questions, key=lambda question: question.asked_after)
        haystacks = {question.memory: question.haystack for question in ordered}.values()
        sessions = (session for haystack in haystacks for session in benchmark.dataset.haystack(haystack).sessions)
        by_turn = benchmark.config.ingestion.mode == "incremental"
        adds = sum(len(session.turns) if by_turn else 1 for session in sessions)
        cost = None if provider.spends else 0.0  # prices of services, and the chunks of a model, are unknown
        yield Estimate(benchmark=name, subject=subject, stage="add", calls=adds, cost=cost)
        yield Estimate(benchmark=name, subject=subject, stage="search", calls=len(questions), cost=cost)
    if run.answerer is not None:
        sizes = [size + PROMPT_TOKENS for size in _context_sizes(benchmark, provider)] * run.spec.repeats
        yield model_calls(name, subject, "answer", run.answerer, sizes, REPLY_TOKENS)
    if run.judge is not None:
        calls = benchmark.judge_calls * run.spec.repeats
        sizes = [JUDGE_TOKENS + REPLY_TOKENS] * calls
        yield model_calls(name, subject, "judge", run.judge, sizes, VERDICT_TOKENS)


def _context_sizes(benchmark: Benchmark, provider: ResolvedProvider) -> list[int]:
    """Return the estimated tokens of context for each question.

    For a provider, it is the number of memories shown times the mean size of a turn; for baselines, the size of what
    they show.
    """
    sizes: dict[str, int] = {}
    found = []
    turns_of = lru_cache(maxsize=1)(lambda id: all_turns(benchmark.dataset.haystack(id)))
    for question in benchmark.questions:
        haystack = question.haystack
        if provider.is_baseline and provider.name != "full-context":
            found.append(estimated_tokens(context_of(remembered(provider.name, question, turns_of(haystack)))))
            continue
        if haystack not in sizes:
            everything = turns_of(haystack)
            total = estimated_tokens(context_of(everything))
            share = min(1.0, benchmark.limits.shown / max(1, len(everything)))
            shown = min(round(total * share), benchmark.limits.token_budget or total)
            sizes[haystack] = total if provider.is_baseline else shown
        found.append(sizes[haystack])
    return found
