from collections.abc import Sequence
from math import sqrt
from random import Random

import pytest
from scipy.stats import t

from memorybench.metrics.intervals import (
    SHARE,
    UNBOUNDED,
    Interval,
    independent_error,
    interval,
    passes_needed,
    ratio_interval,
    standard_error,
)
from memorybench.suites.extraction import scores


def f1(counts: Sequence[float]) -> float | None:
    return scores.f1(*counts)


def precision(counts: Sequence[float]) -> float | None:
    return scores.share(counts[0], counts[1])


ALONE = [""] * 10


def test_ten_of_ten_is_no_proof_of_perfection() -> None:
    found = interval([1] * 10, ALONE)
    assert found[::2] == (1, 1)
    assert found.low == pytest.approx(0.7225, abs=5e-5)
    assert interval([0] * 10, ALONE) == Interval(0, 0, pytest.approx(1 - 0.7225, abs=5e-5))


def test_wilson_on_a_published_example() -> None:
    """81 of 263, in Newcombe, "Two-sided confidence intervals for the single proportion", 1998: 0.2553 to 0.3662."""
    found = interval([1] * 81 + [0] * 182, [""] * 263)
    assert found.low == pytest.approx(0.2553, abs=5e-5)
    assert found.high == pytest.approx(0.3662, abs=5e-5)


def test_items_of_distinct_clusters_stand_alone() -> None:
    values = [1, 0, 1, 1, 0, 1, 1, 1, 1, 1]
    assert interval(values, list("abcdefghij")) == interval(values, ALONE)


def test_independent_numbers_get_the_t_interval() -> None:
    values = [2.1, 3.4, 1.9, 5.0, 4.2]
    mean = sum(values) / 5
    half = t.ppf(0.975, 4) * sqrt(sum((value - mean) ** 2 for value in values) / 4 / 5)
    assert interval(values, [""] * 5) == pytest.approx((mean, mean - half, mean + half))


def test_equal_clusters_are_worth_as_many_items_as_there_are_clusters() -> None:
    means = [2.0, 3.5, 1.0, 4.0]
    repeated = [mean for mean in means for _ in range(25)]
    clusters = [str(place) for place in range(4) for _ in range(25)]
    assert interval(repeated, clusters) == pytest.approx(interval(means, [""] * 4))


def test_correlated_answers_widen_the_interval() -> None:
    values = [1] * 20 + [0] * 20 + [1] * 20 + [0] * 20
    clusters = [str(place // 20) for place in range(80)]
    assert _width(interval(values, clusters)) > 2 * _width(interval(values, [""] * 80))


def test_one_large_cluster_leaves_fewer_degrees_of_freedom() -> None:
    # the same ten cluster means; the first cluster holds 2 or 60 of the items
    def measured(first: int) -> float:
        sizes = [first] + [2] * 9
        values = [1.5 if place % 2 else 0.5 for place, size in enumerate(sizes) for _ in range(size)]
        clusters = [str(place) for place, size in enumerate(sizes) for _ in range(size)]
        error = standard_error(values, clusters)
        assert error is not None
        return _width(interval(values, clusters)) / error

    assert measured(2) == pytest.approx(2 * t.ppf(0.975, 9))
    assert measured(60) > 2 * measured(2)


def test_clusters_that_are_all_right_count_once_each() -> None:
    clusters = [str(place % 10) for place in range(500)]
    assert interval([1] * 500, clusters) == interval([1] * 10, ALONE)


def test_clusters_that_agree_by_chance_are_not_certain() -> None:
    values = [1, 1, 1, 0] * 3
    clusters = [str(place // 4) for place in range(12)]
    assert 0.3 < _width(interval(values, clusters)) < 0.7


def test_equal_clusters_have_the_standard_error_of_their_items() -> None:
    values, clusters = [1.0, 0.0] * 4, list("aabbccdd")
    assert standard_error(values, clusters) == standard_error(values, [""] * 8)
    assert standard_error([1.0] * 8, clusters) == 0


@pytest.mark.parametrize("values", [[0.2, 0.7, 1.0], [1, 0, 0, 1, 1], [3.5, 3.5], [1e-9, 1e9]])
def test_the_error_of_independent_items_is_that_of_clusters_of_one(values: list[float]) -> None:
    assert independent_error(values) == pytest.approx(standard_error(values, [""] * len(values)))
    assert independent_error(values[:1]) is standard_error(values[:1], [""]) is None


def test_nothing_measured_is_not_zero() -> None:
    assert interval([], []) == Interval(None, None, None)
    assert ratio_interval([], [], f1) == Interval(None, None, None)


def test_one_cluster_tells_nothing_about_others() -> None:
    assert interval([1, 0, 1, 1], ["only"] * 4) == Interval(0.75, None, None)
    assert interval([1, 1, 1, 1], ["only"] * 4) == Interval(1, None, None)
    assert interval([2.5, 3.5], ["only"] * 2) == Interval(3.0, None, None)


def test_clusters_that_are_alike_by_chance_do_not_make_the_interval_narrow() -> None:
    right, clusters = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0], list("aaaabbbbcccddd")
    assert _width(interval(right, clusters)) >= _width(interval(right, [""] * 14))
    halves, clusters = [0.5, 0, 0.5, 0.5, 0, 1, 0.5, 0.5, 0.5, 0, 0.5, 0.5], list("aaabbbcccddd")
    assert _width(interval(halves, clusters, bounds=(0, 1))) >= _width(interval(halves, [""] * 12, bounds=(0, 1)))


def test_numbers_that_never_vary_have_no_interval() -> None:
    assert interval([512.0] * 8, [""] * 8) == Interval(512.0, None, None)
    assert interval([0.0] * 8, [""] * 8, bounds=UNBOUNDED) == Interval(0.0, None, None)


def test_shares_stay_within_their_bounds() -> None:
    low, high = _ends(interval([1.0] * 9 + [0.5], ALONE, bounds=(0, 1)))
    assert 0 < low < 0.95 < high < 1
    assert _ends(interval([1.0] * 9 + [0.5], ALONE))[1] > 1


def test_order_does_not_move_the_last_digit() -> None:
    random = Random(3)
    items = [(random.random(), random.choice("abcdefg")) for _ in range(300)]
    counts = [((random.randrange(5), random.randrange(5), random.randrange(5)), cluster) for _, cluster in items]
    values, clusters = zip(*items, strict=True)
    rows, _ = zip(*counts, strict=True)
    before = interval(values, clusters), ratio_interval(rows, clusters, f1)
    together = list(zip(items, counts, strict=True))
    random.shuffle(together)
    values, clusters = zip(*(item for item, _ in together), strict=True)
    rows, _ = zip(*(count for _, count in together), strict=True)
    assert (interval(values, clusters), ratio_interval(rows, clusters, f1)) == before


def test_a_ratio_of_sums_agrees_with_the_mean_it_is() -> None:
    """With one count a row, recall is a proportion of independent items, and its interval nearly Wilson's."""
    rows = [(1, 0)] * 70 + [(0, 1)] * 30
    found = ratio_interval(rows, [""] * 100, lambda sums: sums[0] / (sums[0] + sums[1]))
    assert found == pytest.approx(interval([1] * 70 + [0] * 30, [""] * 100), abs=0.01)


def test_a_case_without_counts_does_not_pass_for_one_that_agrees() -> None:
    rows = [(4, 1, 0), (3, 0, 2), (5, 1, 1)]
    clusters = ["a", "b", "c"]
    assert ratio_interval([*rows, (0, 0, 0)], [*clusters, "d"], f1) == ratio_interval(rows, clusters, f1)


def test_clusters_in_which_nothing_was_found_say_nothing_about_precision() -> None:
    silent = [(0, 0, 2)] * 20
    assert ratio_interval([(3, 1, 0), *silent], ["a", *"b" * 20], precision) == Interval(0.75, None, None)
    found = ratio_interval([(3, 0, 0)] * 10 + silent, [""] * 30, precision)
    assert found == interval([1] * 10, ALONE)


def test_a_ratio_that_hangs_on_one_cluster_has_no_ends() -> None:
    def second_share(sums: Sequence[float]) -> float | None:
        return sums[0] / sums[1] if sums[1] else None

    assert ratio_interval([(1, 4), (1, 0), (1, 0)], ["a", "b", "c"], second_share) == Interval(0.75, None, None)


def test_a_statistic_that_no_single_item_has_is_measured() -> None:
    """Cohen's kappa of (both, first only, second only, neither): undefined on one pair of verdicts."""

    def kappa(sums: Sequence[float]) -> float | None:
        both, first, second, neither = sums
        n = sum(sums)
        chance = ((both + first) * (both + second) + (neither + first) * (neither + second)) / n**2
        return None if chance == 1 else ((both + neither) / n - chance) / (1 - chance)

    rows = [(1, 0, 0, 0)] * 45 + [(0, 1, 0, 0)] * 15 + [(0, 0, 1, 0)] * 25 + [(0, 0, 0, 1)] * 15
    value, low, high = ratio_interval(rows, [""] * 100, kappa, bounds=(-1, 1))
    assert value == pytest.approx(0.1304, abs=5e-5)
    # the large-sample standard error of this table is 0.0987 (Fleiss, Cohen and Everitt 1969)
    assert (low, high) == pytest.approx((0.1304 - 1.96 * 0.0987, 0.1304 + 1.96 * 0.0987), abs=0.02)


def test_perfect_f1_is_no_proof_of_perfection() -> None:
    found = ratio_interval([(5, 0, 0)] * 10, ALONE, f1)
    assert found.low == pytest.approx(0.7225, abs=5e-5)


def test_at_least_95_percent_takes_59_straight_passes() -> None:
    assert passes_needed(0.95) == 59
    assert 0.95**59 <= 0.05 < 0.95**58
    assert passes_needed(0.99) == 299
    assert passes_needed(0.5, 0.875) == 3


def _ends(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def _width(found: Interval) -> float:
    low, high = _ends(found)
    return high - low


@pytest.mark.parametrize("cluster", ["", "ana"])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_single_item_has_no_interval(value: float, cluster: str) -> None:
    assert interval([value], [cluster], bounds=SHARE) == Interval(value)
