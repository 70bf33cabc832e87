import gzip
import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memorybench.core.conversation import Haystack, Memory, Session, Turn
from memorybench.core.measures import RetrievalMetric
from memorybench.core.questions import Question
from memorybench.metrics.names import ALIASES, METRIC_NAMES
from memorybench.metrics.retrieval import (
    RETRIEVAL_METRICS,
    ndcg,
    ndcg_any,
    precision,
    recall,
    recall_all,
    recall_any,
    reciprocal_rank,
)
from memorybench.suites.bench.measures import run_metrics
from memorybench.suites.bench.scores import Places, retrieval_scores

GOLDEN = Path(__file__).parents[2] / "../shared/data/longmemeval"
OFFICIAL = {"recall_any": recall_any, "recall_all": recall_all, "ndcg_any": ndcg_any}
RANKED = ["x", "a", "y", "b", "z"]
AT_K = [recall, recall_any, recall_all, precision, ndcg, ndcg_any]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (recall, [0, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3]),
        (recall_any, [0, 1, 1, 1, 1, 1]),
        (recall_all, [0, 0, 0, 0, 0, 0]),
        (precision, [0, 1 / 2, 1 / 3, 2 / 4, 2 / 5, 2 / 6]),
    ],
)
def test_shares_of_the_first_k(metric: Callable[..., float | None], expected: list[float]) -> None:
    assert [metric(RANKED, ["a", "b", "c"], k) for k in range(1, 7)] == pytest.approx(expected)


def test_all_found_is_all_found() -> None:
    assert recall_all(RANKED, ["a", "b"], 3) == 0
    assert recall_all(RANKED, ["a", "b"], 4) == 1


def test_standard_ndcg_discounts_the_second_place() -> None:
    gained, best = 1 / log2(3) + 1 / log2(5), 1 + 1 / log2(3)
    assert ndcg(RANKED, ["a", "b"], 5) == pytest.approx(gained / best)
    assert ndcg(["a", "b"], ["a", "b"], 5) == 1


def test_longmemevals_ndcg_does_not() -> None:
    assert ndcg_any(RANKED, ["a", "b"], 5) == pytest.approx((1 / log2(2) + 1 / log2(4)) / 2)
    assert ndcg_any(["x", "a"], ["a"], 2) == 1


def test_the_ideal_is_cut_at_k() -> None:
    assert ndcg(["a", "b"], ["a", "b", "c", "d"], 2) == 1
    assert ndcg_any(["a", "b"], ["a", "b", "c", "d"], 2) == 1
    assert ndcg(["a", "b"], ["a", "b", "c", "d"], 3) != 1


def test_reciprocal_rank() -> None:
    assert reciprocal_rank(RANKED, ["b", "a"], 5) == 1 / 2
    assert reciprocal_rank(RANKED, ["c"], 5) == 0
    assert reciprocal_rank(RANKED, ["b"], 3) == 0
    assert reciprocal_rank([], ["c"], 0) == 0


@pytest.mark.parametrize("metric", AT_K)
def test_an_id_counts_once_at_its_first_place(metric: Callable[..., float | None]) -> None:
    repeated = ["x", "a", "a", "x", "y", "b", "a", "z"]
    for k in range(1, 8):
        assert metric(repeated, ["a", "b", "b"], k) == metric(RANKED, ["a", "b"], k)
    assert reciprocal_rank(["x", "x", "a"], ["a"], 3) == 1 / 2


@pytest.mark.parametrize("metric", AT_K)
def test_without_gold_there_is_no_figure_and_with_nothing_found_there_is_zero(
    metric: Callable[..., float | None],
) -> None:
    assert metric(RANKED, [], 5) is None
    assert metric([], ["a"], 5) == 0
    assert reciprocal_rank(RANKED, [], 5) is None


def test_names_columns_and_measures_follow_from_the_entries() -> None:
    scores = {name for metric in RETRIEVAL_METRICS for name in metric.score_names}
    columns = {name for metric in RETRIEVAL_METRICS for name in (*metric.columns, *metric.narrow_columns)}
    assert columns <= scores <= METRIC_NAMES
    assert {name.replace("@", "_at_") for name in scores if "@" in name} <= ALIASES.keys()
    assert scores <= {metric.name for metric in run_metrics({"answered": False, "evidence": {"a": "session"}})}


def test_a_new_metric_needs_one_entry() -> None:
    toy = RetrievalMetric("first", lambda ranked, gold, k: float(ranked[0] in gold), cutoffs=(7,), both_levels=True)
    names = [metric.name for metric in run_metrics({"answered": False, "evidence": {"a": "session"}}, [toy])]
    assert names.count("first@7") == names.count("turn_first@7") == 1
    haystack = Haystack(id="h", sessions=(Session(id="s", turns=(Turn(role="user", content="Tea", id="s:1"),)),))
    question = Question(id="q", haystack="h", question="?", answers=("Tea",), gold_sessions=("s",), gold_turns=("s:1",))
    memory = Memory(id="m", content="Tea", sources=("s:1",))
    scores = retrieval_scores([memory], question, Places(haystack), "session", [toy])
    assert {score.name: score.value for score in scores} == {"first@7": 1.0, "turn_first@7": 1.0}


def test_a_metric_of_a_plugin_may_use_lists_and_arrays() -> None:
    halves: Any = lambda ranked, gold, k: np.array(k / 2)  # noqa: E731
    cutoffs: Any = [1, 3]
    scores = RetrievalMetric("toy", halves, cutoffs).scores(["a"], ["a"])
    assert [(score.name, score.value) for score in scores] == [("toy@1", 0.5), ("toy@3", 1.5)]


@pytest.mark.parametrize("level", ["session", "turn"])
def test_longmemevals_official_figures_to_the_last_digit(level: str) -> None:
    compared = 0
    for question in _golden(level):
        ranked, gold = question["top50"], _gold(question["top50"])
        for name, expected in question["metrics"][level].items() if gold else ():
            metric, k = name.split("@")
            assert OFFICIAL[metric](ranked, gold, int(k)) == expected, (question["question_id"], name)
            compared += 1
    assert compared == 428 * 18


def test_longmemevals_sessions_from_turns_to_the_last_digit() -> None:
    """Its recall is of k different sessions, as ours; its ndcg is of all turns above the place where the k-th came."""
    compared = 0
    for question in _golden("turn"):
        turns, gold = question["top50"], _gold(question["top50"])
        sessions, gold_sessions = [_session(turn) for turn in turns], {_session(turn) for turn in gold}
        for name, expected in question["metrics"]["session"].items() if gold else ():
            metric, at = name.split("@")
            k = int(at)
            ours = (
                ndcg_any(turns, gold, _reach(sessions, k))
                if metric == "ndcg_any"
                else OFFICIAL[metric](sessions, gold_sessions, k)
            )
            assert ours == expected, (question["question_id"], name)
            compared += 1
    assert compared == 428 * 18


@pytest.mark.parametrize("level", ["session", "turn"])
def test_longmemevals_official_means(level: str) -> None:
    """Of the 419 questions that have gold and are not abstentions."""
    summary = json.loads(_present("golden_bm25_oracle_summary.json").read_text())[f"oracle_{level}"][level]
    asked = [q["top50"] for q in _golden(level) if _gold(q["top50"]) and not q["question_id"].endswith("_abs")]
    assert len(asked) == 419
    for name, expected in summary.items():
        metric, k = name.split("@")
        values = [OFFICIAL[metric](ranked, _gold(ranked), int(k)) for ranked in asked]
        assert sum(value for value in values if value is not None) / 419 == pytest.approx(expected, abs=1e-14)


def _golden(level: str) -> list[dict[str, Any]]:
    with gzip.open(_present(f"golden_bm25_oracle_{level}.jsonl.gz"), "rt") as lines:
        return [json.loads(line) for line in lines]


def _present(name: str) -> Path:
    if not (GOLDEN / name).exists():
        pytest.skip(f"LongMemEval's golden file {name} is not here")
    return GOLDEN / name


def _gold(ranked: list[str]) -> set[str]:
    """No question of this split has 50 documents, so all of its gold is ranked."""
    assert len(ranked) < 50
    return {found for found in ranked if "answer" in found}


def _session(turn: str) -> str:
    return turn.rpartition("_")[0]


def _reach(sessions: list[str], k: int) -> int:
    """The place where the k-th different session comes up, else past the end."""
    firsts = [place for place, session in enumerate(sessions, 1) if session not in sessions[: place - 1]]
    return firsts[k - 1] if k <= len(firsts) else len(sessions) + 1
