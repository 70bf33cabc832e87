"""What a ranking of ids is worth, given the ids of the gold evidence.

For one question each; a report shows their means. All are None where there is no gold evidence: nothing could be
found, so such questions are left out instead of counting as all found or as nothing found. A system that does not
say where its memories came from has no ranking to give: do not call these for it.

An id that is retrieved twice counts once, at its first place; ids further down move up. So a ranking of turns that is
named by their sessions is cut at k different sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The share of the gold that stands among the first k (Manning, Raghavan, Schütze 2008, § 8.3)."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else sum(hits) / len(set(gold))


def recall_any(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 if any of the gold stands among the first k (LongMemEval, Wu et al. 2024); others call it hit rate."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else float(any(hits))


def recall_all(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """1 if all of the gold stands among the first k (LongMemEval, Wu et al. 2024)."""
    hits = _hits(ranked, gold, k)
    return None if hits is None else float(sum(hits) == len(set(gold)))


def precision(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """The share of k that is gold (Manning, Raghavan, Schütze 2008, § 8.4).

    Divided by the k that was asked for, also where fewer came back: else answering with one sure id would win.
    """
    hits = _hits(ranked, gold, k)
    return None if hits is None else sum(hits) / k


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """Binary gains, discounted by log2(place + 1), over the best that k places allow.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 20, 2002, in the form of
    Burges et al. 2005, where the second place is discounted, too.
    """
    hits = _hits(ranked, gold, k)
    return None if hits is None else _discounted(hits) / _discounted(_ideal(gold, k))


def ndcg_any(ranked: Sequence[str], gold: Collection[str], k: int) -> float | None:
    """LongMemEval's own (Wu et al. 2024, its `run_retrieval.py`), which is not the standard: the first gain in full,
    then each discounted by log2(place), so that the first two places weigh the same.

    The ideal is of all gold in the corpus, cut at k. Equal to the official figures to the last digit, but where a
    corpus holds one id several times: there the official code counts each.
    """
    hits = _hits(ranked, gold, k)
    if hits is None:
        return None
    return _first_in_full(hits) / _first_in_full(_ideal(gold, k))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float | None:
    """1 / the place of the first gold id, 0 where none was retrieved; the mean of many is MRR (Voorhees 1999)."""
    hits = _hits(ranked, gold, len(ranked))
    if hits is None:
        return None
    return 1 / (hits.index(1.0) + 1) if 1.0 in hits else 0.0


def _hits(ranked: Sequence[str], gold: Collection[str], k: int) -> list[float] | None:
    if not gold:
        return None
    wanted = set(gold)
    return [float(found in wanted) for found in list(dict.fromkeys(ranked))[:k]]


def _ideal(gold: Collection[str], k: int) -> list[float]:
    return [1.0] * min(k, len(set(gold)))


def _first_in_full(gains: Sequence[float]) -> float:
    return gains[0] + _discounted(gains[1:]) if gains else 0.0


def _discounted(gains: Sequence[float]) -> float:
    """Each gain over log2(place + 1)."""
    # numpy, because the order in which it adds is in the last digit of the official figures
    import numpy as np

    return float(np.sum(np.asarray(gains) / np.log2(np.arange(2, len(gains) + 2))))
