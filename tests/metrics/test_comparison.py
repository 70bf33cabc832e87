from itertools import product
from random import Random

import numpy as np
import pytest
from scipy.stats import binomtest

from memorybench.metrics.comparison import DRAWN, Comparison, compare, flip_p, holm, mcnemar_p, needed_items
from memorybench.metrics.intervals import interval


def test_the_difference_is_measured_item_by_item() -> None:
    first, second = _arms([1, 1, 0, 1, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1, 1])
    found = compare(first, second, {}, planned=8)
    assert (found.n, found.planned, found.difference) == (8, 8, 0.125)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0 < found.high
    assert not found.significant


def test_swapping_the_arms_turns_the_sign_and_nothing_else() -> None:
    random = Random(1)
    first, second = _arms([random.random() for _ in range(40)], [random.random() for _ in range(40)])
    clusters = {item: str(int(item) % 20) for item in first}
    ours, theirs = compare(first, second, clusters, 40), compare(second, first, clusters, 40)
    assert ours.difference == pytest.approx(-(theirs.difference or 0))
    assert ours.low == pytest.approx(-(theirs.high or 0))
    assert (ours.p, ours.needed) == (theirs.p, theirs.needed)


def test_the_interval_is_that_of_the_one_function() -> None:
    first, second = _arms([0.4, 0.9, 0.3, 0.8, 0.5], [0.1, 0.7, 0.6, 0.2, 0.4])
    clusters = {"0": "a", "1": "a", "2": "b", "3": "b", "4": "c"}
    found = compare(first, second, clusters, 5)
    differences = [first[item] - second[item] for item in first]
    assert (found.difference, found.low, found.high) == pytest.approx(interval(differences, list("aabbc")))


def test_items_that_one_arm_lacks_are_left_out() -> None:
    first, second = {"a": 1.0, "b": 0.0, "c": 1.0}, {"b": 1.0, "c": 1.0, "d": 0.0}
    found = compare(first, second, {}, planned=4)
    assert (found.n, found.planned, found.difference) == (2, 4, -0.5)


def test_no_common_items_is_no_difference_rather_than_zero() -> None:
    found = compare({"a": 1.0}, {"b": 1.0}, {}, planned=2)
    assert found == Comparison(n=0, planned=2, difference=None)


@pytest.mark.parametrize(("gained", "lost"), [(0, 0), (1, 0), (5, 5), (9, 2), (12, 30), (80, 40)])
def test_mcnemar_is_the_exact_binomial_test(gained: int, lost: int) -> None:
    differences = [1.0] * gained + [-1.0] * lost + [0.0] * 17
    expected = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar_p(differences) == pytest.approx(expected)


def test_flipping_independent_items_is_mcnemar() -> None:
    differences = [1.0] * 9 + [-1.0] * 2 + [0.0] * 5
    assert flip_p(differences) == pytest.approx(mcnemar_p(differences))


def test_flips_worked_out_by_hand() -> None:
    """Of 3, 1, −2 the sum is 2. Of the eight ways to sign 3, 1, 2 six reach 2 or −2: ±6, ±4, ±2; only ±0 do not."""
    assert flip_p([3, 1, -2]) == 6 / 8
    assert flip_p([3, 1, 2]) == 2 / 8
    assert flip_p([0, 0]) == 1


def test_ties_survive_rounding() -> None:
    assert flip_p([0.1, 0.2, -0.3]) == 1
    assert flip_p([0.1, 0.7, 0.2]) == flip_p([1, 7, 2])


def test_enumerated_flips_are_all_flips() -> None:
    sums = [0.3, -1.2, 0.8, 2.0, -0.1, 0.7]
    reached = [
        abs(sum(sign * size for sign, size in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=6)
    ]
    assert flip_p(sums) == sum(total >= sum(sums) - 1e-9 for total in reached) / 64


def test_drawn_flips_come_near_the_exact_share() -> None:
    sums = [1.0] * 20 + [-1.0] * 8
    assert flip_p(sums) == pytest.approx(binomtest(8, 28).pvalue, abs=0.005)


def test_drawn_flips_are_the_same_in_any_order_and_never_reach_zero() -> None:
    random = Random(5)
    sums = [random.gauss(1, 1) for _ in range(60)]
    shuffled = random.sample(sums, 60)
    assert flip_p(sums) == flip_p(shuffled)
    assert flip_p([1.0] * 60) == 1 / (DRAWN + 1)


def test_clusters_decide_what_is_luck() -> None:
    """A lead on 30 questions of three conversations is three leads, not thirty."""
    first, second = _arms([1.0] * 30, [0.0] * 30)
    by_conversation = compare(first, second, {item: str(int(item) % 3) for item in first}, 30)
    alone = compare(first, second, {}, 30)
    assert by_conversation.p == 2 / 8
    assert not by_conversation.significant
    assert alone.p == pytest.approx(2 / 2**30)
    assert alone.significant


def test_arms_that_agree_on_everything_are_not_proven_alike() -> None:
    first, second = _arms([1, 0] * 5, [1, 0] * 5)
    found = compare(first, second, {}, 10)
    assert (found.difference, found.p, found.needed) == (0, 1, None)
    assert (found.low, found.high) == pytest.approx((-0.2775, 0.2775), abs=5e-5)


def test_a_win_on_every_item_is_not_a_certain_lead_of_one() -> None:
    first, second = _arms([1] * 10, [0] * 10)
    found = compare(first, second, {}, 10)
    assert found.high == 1
    assert found.low == pytest.approx(2 * 0.7225 - 1, abs=1e-4)


def test_one_cluster_has_a_difference_but_no_verdict() -> None:
    first, second = _arms([1, 1, 1], [0, 1, 0])
    found = compare(first, second, dict.fromkeys(first, "only"), 3)
    assert found.difference == pytest.approx(2 / 3)
    assert (found.low, found.high, found.p, found.significant, found.needed) == (None, None, 1, False, None)


def test_holm_on_a_known_example() -> None:
    """p of 0.01, 0.04, 0.03, 0.005: times 3, 1, 2, 4, and never below a smaller one's."""
    judged = holm([_with_p(p) for p in (0.01, 0.04, 0.03, 0.005)])
    assert [c.adjusted_p for c in judged] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [c.significant for c in judged] == [True, False, False, True]
    assert [c.p for c in judged] == [0.01, 0.04, 0.03, 0.005]


@pytest.mark.parametrize(("p", "tests"), [(1000 / 20_000, 1), (500 / 20_000, 2), (200 / 20_000, 5)])
def test_a_p_value_of_exactly_5_percent_is_not_significant(p: float, tests: int) -> None:
    first, *_ = holm([Comparison(n=9, planned=9, difference=0.1, p=p) for _ in range(tests)])
    assert first.adjusted_p == pytest.approx(0.05)
    assert not first.significant


def test_holm_leaves_out_what_was_not_compared() -> None:
    nothing = Comparison(n=0, planned=5, difference=None)
    assert holm([_with_p(0.04), nothing]) == (_with_p(0.04, adjusted_p=0.04, significant=True), nothing)
    assert holm([_with_p(0.9), _with_p(0.8)])[0].adjusted_p == 1


def test_needed_items_are_those_of_the_level_that_holm_used() -> None:
    """Three tests, of which one is significant: the next must have p < 0.05 / 2, and so must the last."""
    clear = compare(*_arms([1] * 30, [0] * 30), {}, 30)
    close = compare(*_arms([1] * 8 + [0] * 22, [0] * 8 + [1] * 5 + [0] * 17), {}, 30)
    closer = compare(*_arms([1] * 7 + [0] * 23, [0] * 7 + [1] * 5 + [0] * 18), {}, 30)
    judged = holm([close, clear, closer])
    assert [one.significant for one in judged] == [False, True, False]
    assert close.variance is not None
    assert close.difference is not None
    assert close.needed == needed_items(close.difference, close.variance)
    assert judged[0].needed == needed_items(close.difference, close.variance, level=1 - 0.05 / 2)
    assert (judged[2].needed or 0) > (closer.needed or 0) > 0
    assert holm([close])[0].needed == close.needed
    assert "variance" not in close.plain()


def test_it_says_how_many_questions_would_tell() -> None:
    assert needed_items(0.05, 0.2038) == 640
    assert needed_items(0.05, 0.21) == 660
    assert needed_items(0.5, 0.01) == 6  # five coins that fall alike are no proof yet


def test_needed_items_are_unknown_if_the_scores_do_not_vary() -> None:
    assert needed_items(0.02, 0) is None
    assert needed_items(0.02, 1e-33) is None, "what is left of a variance after rounding"
    first, second = _arms([1] * 10, [0] * 10)
    assert compare(first, second, {}, 10).needed is None
    first, second = _arms([0.3, 0.7, 0.9], [0.2, 0.6, 0.8])
    assert compare(first, second, {}, 3).needed is None, "the differences are equal up to rounding"


def test_correlated_items_are_needed_in_greater_number() -> None:
    first, second = _arms([1] * 30 + [0] * 20, [0] * 20 + [1] * 10 + [0] * 20)
    clusters = {item: str(int(item) // 10) for item in first}
    alone, grouped = compare(first, second, {}, 50).needed, compare(first, second, clusters, 50).needed
    assert alone is not None
    assert grouped is not None
    assert grouped > 3 * alone


def test_that_many_questions_do_tell_four_times_in_five() -> None:
    """Arms of which the first alone is right on 20 % of the items, the second alone on 10 %."""
    items = needed_items(0.1, 0.3 - 0.1**2)
    assert items is not None
    counts = np.random.default_rng(2).multinomial(items, [0.2, 0.1, 0.7], size=1500).tolist()
    told = [mcnemar_p([1.0] * gained + [-1.0] * lost) < 0.05 for gained, lost, _ in counts]
    assert 0.75 < sum(told) / len(told) < 0.85


def test_equal_arms_are_told_apart_no_more_than_once_in_twenty() -> None:
    """Ten clusters of unequal size, each with a lean of its own, none for either arm on the whole."""
    draw = np.random.default_rng(4)
    sizes = np.array([3, 4, 5, 6, 8, 10, 14, 20, 28, 40])
    sums = draw.normal(0, 1, (2000, 10)) * sizes
    told = [flip_p(run) < 0.05 for run in sums.tolist()]
    assert 0.035 < sum(told) / len(told) < 0.065


def _arms(first: list[float], second: list[float]) -> tuple[dict[str, float], dict[str, float]]:
    return {str(i): value for i, value in enumerate(first)}, {str(i): value for i, value in enumerate(second)}


def _with_p(p: float, adjusted_p: float | None = None, significant: bool = False) -> Comparison:
    return Comparison(n=9, planned=9, difference=0.1, p=p, adjusted_p=adjusted_p, significant=significant)
