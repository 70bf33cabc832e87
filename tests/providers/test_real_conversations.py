"""The embedded providers on the data that they are tuned on. The figures to quote are in docs/hybrid.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean

import pytest

from memorybench.core.contracts import Provider, Scope
from memorybench.core.conversation import Memory
from memorybench.embedding.local import open_local_embedder
from memorybench.providers.bm25 import Bm25
from memorybench.providers.hybrid import Hybrid
from perf.tune_embedded import RETRIEVED, Task, locomo, longmemeval
from tests.providers.embedded import fill, sessions_of

DATA = Path(__file__).parents[2] / "../shared/data"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data is not next to this checkout"),
]

Measure = Callable[[list[Memory], frozenset[str]], float]


def turn_recall_at_10(memories: list[Memory], evidence: frozenset[str]) -> float:
    turns = {(memory.sources or ("", ""))[1] for memory in memories[:10]}
    return len(turns & evidence) / len(evidence)


def session_recall_any_at_5(memories: list[Memory], evidence: frozenset[str]) -> float:
    return float(bool(evidence & set(sessions_of(memories)[:5])))


async def scored(provider: Provider, tasks: Iterable[Task], measure: Measure) -> list[float]:
    values: list[float] = []
    for task in tasks:
        scope = Scope(run="run-1", benchmark="real", provider=provider.subject.name, haystack=task.haystack.id)
        await fill(provider, task.haystack.sessions, scope)
        for question in task.questions:
            memories = list(await provider.search(scope, question.text, RETRIEVED))
            values.append(measure(memories, question.evidence))
        await provider.clear(scope)
    return values


def with_bm25(folder: Path, tasks: Iterable[Task], measure: Measure) -> list[float]:
    async def run() -> list[float]:
        async with Bm25.open_file(folder / "bm25.db") as provider:
            return await scored(provider, tasks, measure)

    return asyncio.run(run())


def with_hybrid(folder: Path, tasks: Iterable[Task], measure: Measure) -> list[float]:
    pytest.importorskip("wordllama", reason="the extra embed is not installed")

    async def run() -> list[float]:
        async with open_local_embedder() as embedder, Hybrid.open_file(folder / "hybrid.db", embedder) as provider:
            return await scored(provider, tasks, measure)

    return asyncio.run(run())


def test_bm25_finds_the_evidence_of_locomo(tmp_path: Path) -> None:
    values = with_bm25(tmp_path, locomo(DATA / "locomo/locomo10.json"), turn_recall_at_10)
    assert len(values) == 1_982
    assert fmean(values) > 0.72


def test_hybrid_finds_more_of_locomo_than_bm25(tmp_path: Path) -> None:
    values = with_hybrid(tmp_path, locomo(DATA / "locomo/locomo10.json"), turn_recall_at_10)
    assert fmean(values) > 0.78


def test_hybrid_finds_the_sessions_of_longmemeval(tmp_path: Path) -> None:
    tasks = longmemeval(DATA / "longmemeval/longmemeval_s_subset.json.gz")
    values = with_hybrid(tmp_path, tasks, session_recall_any_at_5)
    assert len(values) == 44
    assert fmean(values) >= 43 / 44
