"""Retrieval metrics: score a ranking of ids by the ids of the gold evidence.

To add a metric, write its formula and its entry in `RETRIEVAL_METRICS` below; to add a cutoff such as recall@7, add it
to the metric's entry. Config names, `--threshold` names, scores, measures and table columns follow from the entry. A
package adds a `RetrievalMetric` by an entry point of the group `memorybench.metrics`.

Each formula is about one question. It is None where there is no gold evidence: such questions are left out of the mean.
A provider that does not report the sources of its memories has no ranking, so no formula is applied to it.

An id that is retrieved twice counts once, at its first rank; ids further down move up. So if turns are ranked by the
ids of their sessions, the first k are k different sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from math import log2
from typing import ClassVar

from msgspec import Struct

from memorybench.core.measures import Measure, RetrievalMetric
from memorybench.core.trials import Outcome

from .rates import Rate


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The share of the gold ids that are among the first k (Manning, Raghavan, Schütze 2008, § 8.3)."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else sum(hits) / len(set(gold))


def recall_any(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 if any gold id is among the first k, else 0 (LongMemEval, Wu et al. 2024); also called hit rate."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else float(any(hits))


def recall_all(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 if all gold ids are among the first k, else 0 (LongMemEval, Wu et al. 2024)."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else float(sum(hits) == len(set(gold)))


def precision(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The number of gold ids among the first k, divided by k (Manning, Raghavan, Schütze 2008, § 8.4).

    Divided by k even if fewer ids were retrieved; otherwise a provider that returns a single sure id would win.
    """
    hits = _hits(ranked, gold, k)
    return None if hits is None else sum(hits) / k


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The sum of 1 / log2(rank + 1) over the gold ids among the first k, divided by the best possible sum.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20, 2002, in the form of Burges et
    al. 2005, which discounts the second rank as well.
    """
    hits = _hits(ranked, gold, k)
    return None if hits is None else _discounted(hits) / _discounted(_ideal(gold, k))


def ndcg_any(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """LongMemEval's nDCG (Wu et al. 2024, `run_retrieval.py`), which differs from the standard: the first gain counts
    in full and the others are discounted by log2(rank), so the first two ranks weigh the same.

    The ideal is that of all gold in the corpus, cut at k. Equal to the official figures to the last digit, except
    where a corpus contains one id several times: the official code counts each.
    """
    hits = _hits(ranked, gold, k)
    return None if hits is None else _first_in_full(hits) / _first_in_full(_ideal(gold, k))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 / the rank of the first gold id; 0 if it is not among the first k. Its mean is MRR (Voorhees 1999)."""
    hits = _hits(ranked, gold, k)
    if hits is None:
        return None
    return 1 / (hits.index(1.0) + 1) if 1.0 in hits else 0.0


_UNROLLED = 8
"""numpy adds fewer terms than this from left to right, and more terms in another order."""


def _hits(ranked: Sequence[str], gold: Collection[str], k: int) -> list[float] | None:
    if not gold:
        return None
    gold_ids, first = set(gold), dict.fromkeys(ranked[:k])
    if len(first) < k:  # an id is repeated, or the ranking is shorter than k
        first = dict.fromkeys(islice(dict.fromkeys(ranked), k))
    return [float(id in gold_ids) for id in first]


def _ideal(gold: Collection[str], k: int) -> list[float]:
    return [1.0] * min(k, len(set(gold)))


def _first_in_full(gains: Sequence[float]) -> float:
    return gains[0] + _discounted(gains[1:]) if gains else 0.0


def _discounted(gains: Sequence[float]) -> float:
    """Return the sum of the gains, each divided by log2(rank + 1)."""
    if len(gains) < _UNROLLED or sum(map(bool, gains)) <= 2:
        total = 0.0
        for place, gain in enumerate(gains, start=2):
            total += gain / log2(place)
        return total
    # numpy, because its order of addition decides the last digit of the official figures
    import numpy as np

    return float(np.sum(np.asarray(gains) / np.log2(np.arange(2, len(gains) + 2))))


CUTOFFS = (1, 3, 5, 10)
RETRIEVAL_METRICS = (
    RetrievalMetric(
        "recall",
        recall,
        CUTOFFS,
        columns=("recall@5", "recall@10", "recall@1", "recall@3"),
        narrow_columns=("recall@5",),
        both_levels=True,
    ),
    RetrievalMetric("recall_any", recall_any, CUTOFFS, columns=("recall_any@5",), narrow_columns=("recall_any@5",)),
    RetrievalMetric("recall_all", recall_all, CUTOFFS, columns=("recall_all@5",)),
    RetrievalMetric("precision", precision, CUTOFFS, columns=("precision@5",)),
    RetrievalMetric("ndcg", ndcg, CUTOFFS, columns=("ndcg@10",), narrow_columns=("ndcg@10",)),
    RetrievalMetric("ndcg_any", ndcg_any, CUTOFFS),
    RetrievalMetric("mrr", reciprocal_rank, columns=("mrr",), both_levels=True),
)

PROVENANCE_UNKNOWN = "provenance_unknown"
"""Name of the score of a search that found nothing, and so does not show whether the provider reports sources."""


class RetrievalMean(Struct, frozen=True):
    """The mean of a retrieval score. A search that finds nothing counts as 0.

    There is no mean for a provider that returns memories, but never reports their sources.
    """

    is_share: ClassVar[bool] = True

    name: str

    def read(self, outcome: Outcome) -> tuple[float, ...] | None:
        value = outcome.score(self.name)
        if value is None:  # memories without a score: of a question without gold, or without sources
            return () if outcome.score("context_tokens") else None
        return value, float(outcome.score(PROVENANCE_UNKNOWN) is None)

    def measure(self, rows: Sequence[tuple[float, ...]], clusters: Sequence[str], planned: int) -> Measure:
        rate = Rate(self.name, self.name)
        scored = [(row, cluster) for row, cluster in zip(rows, clusters, strict=True) if row]
        if len(scored) < len(rows) and not any(has_sources for (_, has_sources), _ in scored):
            return rate.measure([], [], planned)
        return rate.measure([(value,) for (value, _), _ in scored], [cluster for _, cluster in scored], planned)


def retrieval_metrics(plugins: Iterable[object] = ()) -> tuple[RetrievalMetric, ...]:
    """Return the built-in retrieval metrics and those among `plugins`."""
    return (*RETRIEVAL_METRICS, *(plugin for plugin in plugins if isinstance(plugin, RetrievalMetric)))
