"""Whether today is worse than a baseline of other items."""

import random
import tracemalloc

import pytest
from scipy import stats

from memorybench.metrics.drift import PERMUTED, drifts, permutation_p, welch


def values(mean: float, count: int, seed: int) -> list[float]:
    dice = random.Random(seed)
    return [min(1.0, max(0.0, dice.gauss(mean, 0.15))) for _ in range(count)]


def test_welch_is_scipys() -> None:
    first, second = values(0.8, 40, 1), values(0.7, 25, 2)
    expected = stats.ttest_ind(first, second, equal_var=False)
    low, high = expected.confidence_interval(0.95)
    assert welch(first, second) == pytest.approx((expected.pvalue, low, high))


@pytest.mark.slow
def test_the_permutation_test_is_scipys() -> None:
    first, second = values(0.8, 12, 1), values(0.7, 9, 2)
    expected = stats.permutation_test(
        (first, second), lambda a, b: a.mean() - b.mean(), n_resamples=20_000, vectorized=False, rng=1
    )
    assert permutation_p(first, second) == pytest.approx(expected.pvalue, abs=0.01)


@pytest.mark.slow
def test_the_memory_of_a_permutation_test_does_not_grow_with_the_items() -> None:
    """A day on which every search succeeded has no variance, so it is permuted, however many items it has."""
    tracemalloc.start()
    try:
        [drift] = drifts({"succeeded": [1.0] * 1000}, {"succeeded": [0.0] * 1000})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert drift.test == "permutation test"
    assert drift.better
    assert peak < 8_000_000


@pytest.mark.parametrize("count", [60, PERMUTED])
def test_a_clear_fall_is_called_worse_with_the_test_used(count: int) -> None:
    [drift] = drifts({"precision": values(0.6, count, 1)}, {"precision": values(0.9, count, 2)})
    assert drift.worse
    assert drift.low is not None
    assert drift.high is not None
    assert drift.low < drift.high < 0
    assert drift.test == ("permutation test" if 2 * count <= PERMUTED else "Welch's t")
    assert drift.test in drift.sentence()


def test_a_clear_rise_is_called_better() -> None:
    [drift] = drifts({"recall": values(0.9, 60, 1)}, {"recall": values(0.6, 60, 2)})
    assert not drift.worse
    assert ": better (permutation test, p < 0.001)" in drift.sentence()
    assert drift.p is not None
    assert drift.p < 0.01


def test_luck_is_not_called_worse_more_often_than_it_should_be() -> None:
    alarms = 0
    for seed in range(200):
        [drift] = drifts({"f1": values(0.8, 300, seed)}, {"f1": values(0.8, 300, seed + 1000)})
        alarms += drift.worse
    assert alarms / 200 < 0.07  # half of the 5 %: a fall, not a rise


def test_several_figures_are_judged_together() -> None:
    today, before = values(0.75, 50, 3), values(0.82, 50, 4)
    [alone] = drifts({"a": today}, {"a": before})
    among = drifts(dict.fromkeys("abc", today), dict.fromkeys("abc", before))
    assert alone.p is not None
    assert among[0].adjusted_p == pytest.approx(min(1.0, 3 * alone.p))


def test_three_traces_that_all_fell_prove_nothing() -> None:
    [drift] = drifts({"f1": [0.5, 0.5, 0.5]}, {"f1": [1.0, 1.0, 1.0]})
    assert drift.difference == -0.5
    assert drift.p is not None
    assert drift.p > 0.05
    assert not drift.worse


def test_figures_that_do_not_differ_are_alike() -> None:
    [drift] = drifts({"f1": [1.0] * 500}, {"f1": [1.0] * 500})
    assert (drift.difference, drift.p, drift.worse) == (0, 1, False)


def test_what_may_be_luck_is_called_no_change() -> None:
    [drift] = drifts({"f1": values(0.8, 30, 1)}, {"f1": values(0.8, 30, 2)})
    assert ": no significant change (" in drift.sentence()


def test_nothing_to_compare_gives_no_number() -> None:
    [drift] = drifts({"f1": [0.5]}, {})
    assert (drift.value, drift.baseline, drift.difference, drift.p) == (0.5, None, None, None)
    assert "nothing to compare" in drift.sentence()
